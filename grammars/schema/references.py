"""A JSON Schema document: what its references mean."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any
from urllib.parse import unquote, urljoin

from sglite.errors import GrammarError
from sglite.grammars.schema.document import LATER, Place, escape, schema_at


class Document:
    """The whole schema that references point into."""

    def __init__(self, root: Any) -> None:
        name = root.get("$schema") if isinstance(root, dict) else None
        self.draft = next((d for d in LATER if isinstance(name, str) and d in name), "")
        self._whole = root
        self.root = schema_at("", root, draft=self.draft)

    def resolve(self, place: Place, keyword: str = "$ref") -> Place:
        """The schema that the reference of `place` means. Raises GrammarError."""
        assert isinstance(place.schema, dict)
        reference = place.schema[keyword]
        where = place.at(keyword)
        if not isinstance(reference, str):
            raise GrammarError(f"{keyword!r} must be a string", where)
        url, _, fragment = _join(self._base(place.pointer), reference).partition("#")
        fragment = unquote(fragment)
        resource = self._resources.get(url)
        if resource is None:
            raise GrammarError(
                f"reference {reference!r} leaves the document; put the schema under '$defs'", where
            )
        if fragment and not fragment.startswith("/"):
            resource = self._anchors.get((url, fragment))
            if keyword == "$dynamicRef" and self._dynamic.get(fragment, 0) > 1:
                raise GrammarError(
                    f"{keyword!r} is supported where '$dynamicAnchor' {fragment!r} stands once",
                    where,
                )
            fragment = ""
        found = None if resource is None else self._at(resource + fragment)
        if found is None:
            raise GrammarError(f"reference {reference!r} points to nothing", where)
        return schema_at(*found, draft=self.draft)

    def _at(self, pointer: str) -> tuple[str, Any] | None:
        """What stands at a pointer, with the pointer in its one spelling."""
        value: Any = self._whole
        spelled = ""
        for part in pointer.split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            try:
                value = value[int(key)] if isinstance(value, list) else value[key]
            except (KeyError, IndexError, ValueError, TypeError):
                return None
            spelled += f"/{escape(key)}"
        return spelled, value

    def _base(self, pointer: str) -> str:
        """The URI against which a reference at `pointer` is resolved."""
        base = ""
        inner = ""
        for part in pointer.split("/"):
            inner += f"/{part}" if part or inner else ""
            found = self._at(inner)
            if found is not None:
                base = _join(base, self._own_id(found[1]))
        return base.partition("#")[0]

    def _own_id(self, schema: Any) -> str:
        if not isinstance(schema, dict) or ("$ref" in schema and self.draft not in ("", "2019-09")):
            return ""
        name = schema.get("id" if self.draft == "draft-04" else "$id")
        return name if isinstance(name, str) else ""

    @cached_property
    def _resources(self) -> dict[str, str]:
        """The pointer of every schema with an identifier of its own, by its URI."""
        found = {"": ""}
        for pointer, _, base in self._schemas("", self._whole, ""):
            found.setdefault(base, pointer)
        return found

    @cached_property
    def _anchors(self) -> dict[tuple[str, str], str]:
        found: dict[tuple[str, str], str] = {}
        for pointer, schema, base in self._schemas("", self._whole, ""):
            for keyword in ("$anchor", "$dynamicAnchor"):
                if isinstance(schema.get(keyword), str):
                    found.setdefault((base, schema[keyword]), pointer)
            name = self._own_id(schema)
            if name.startswith("#"):  # how drafts up to 7 write an anchor
                found.setdefault((base, name[1:]), pointer)
        return found

    @cached_property
    def _dynamic(self) -> dict[str, int]:
        """How many schemas have each `$dynamicAnchor`."""
        found: dict[str, int] = {}
        for _, schema, _ in self._schemas("", self._whole, ""):
            name = schema.get("$dynamicAnchor")
            if isinstance(name, str):
                found[name] = found.get(name, 0) + 1
        return found

    def _schemas(
        self, pointer: str, value: Any, base: str
    ) -> Iterator[tuple[str, dict[str, Any], str]]:
        """Every object that may be a schema, with its pointer and base URI, outer ones first."""
        if isinstance(value, dict):
            base = _join(base, self._own_id(value)).partition("#")[0]
            yield pointer, value, base
            for key, inner in value.items():
                if key not in ("enum", "const"):
                    yield from self._schemas(f"{pointer}/{escape(str(key))}", inner, base)
        elif isinstance(value, list):
            for i, inner in enumerate(value):
                yield from self._schemas(f"{pointer}/{i}", inner, base)


def _join(base: str, reference: str) -> str:
    if not reference or reference.startswith("#"):
        return base + reference
    return urljoin(base, reference)
