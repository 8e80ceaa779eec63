"""The JSON Schemas of types, as pydantic makes them, and closer where its validation asks for more.

Pydantic's schemas leave out some of what its validators check. What a model writes should pass
both, so the schemes of addresses, versions of UUIDs and the like are added here.
"""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

# Names, and no numbers: pydantic refuses ports above 65535, hosts like 1.2.3.999 and bad punycode.
_HOST = (
    r"(?![^/?#]*[xX][nN]--)([A-Za-z0-9][A-Za-z0-9-]*\.)*[A-Za-z][A-Za-z0-9-]*(:[0-9]{1,4})?"
    r"(?=[/?#]|$)"
)
_WITH_HOSTS = {"http", "https", "ws", "wss", "ftp"}
_YEAR = r"[1-9][0-9]{3}"
_LEAP_YEAR = r"([1-9][0-9](0[48]|[2468][048]|[13579][26])|([2468][048]|[13579][26])00)"
DATE = (
    rf"({_YEAR}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    rf"|02-(0[1-9]|1[0-9]|2[0-8]))|{_LEAP_YEAR}-02-29)"
)
TIME = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
NAIVE_DATETIME = f"{DATE}T{TIME}"

_NO_LEAP_SECOND = "^[^:]*:[0-9]{2}:[0-5][0-9]"

# Names of formats that pydantic made up, in the terms of JSON Schema.
_FORMATS: dict[str, dict[str, Any]] = {
    **{
        f"uuid{version}": {"format": "uuid", "pattern": f"^.{{14}}{version}.{{4}}[89abAB]"}
        for version in (1, 3, 4, 5, 6, 7, 8)
    },
    "ipvanyaddress": {"anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]},
}


class _Schemas(GenerateJsonSchema):
    def url_schema(self, schema: core_schema.UrlSchema) -> dict[str, Any]:
        found = super().url_schema(schema)
        schemes = schema.get("allowed_schemes")
        if schemes:
            host = _HOST if _WITH_HOSTS.issuperset(schemes) else ""
            found["pattern"] = f"^({'|'.join(schemes)})://{host}"
        return found

    def time_schema(self, schema: core_schema.TimeSchema) -> dict[str, Any]:
        return {**super().time_schema(schema), "pattern": _NO_LEAP_SECOND}

    def datetime_schema(self, schema: core_schema.DatetimeSchema) -> dict[str, Any]:
        found = super().datetime_schema(schema)
        if schema.get("tz_constraint") != "naive":
            return {**found, "pattern": _NO_LEAP_SECOND}
        return {"type": "string", "pattern": f"^{NAIVE_DATETIME}$"}  # the format has a time zone


def json_schema_of(adapter: TypeAdapter[Any]) -> dict[str, Any]:
    """The schema of what `adapter` validates. Raises as pydantic does."""
    schema = adapter.json_schema(mode="validation", schema_generator=_Schemas)
    _translate(schema)
    return schema


def _translate(schema: Any) -> None:
    if isinstance(schema, list):
        for part in schema:
            _translate(part)
    elif isinstance(schema, dict):
        for key, part in schema.items():
            if key not in ("const", "enum", "default", "examples"):
                _translate(part)
        known = _FORMATS.get(schema["format"]) if isinstance(schema.get("format"), str) else None
        if known is not None:
            del schema["format"]
            schema.update(known)
