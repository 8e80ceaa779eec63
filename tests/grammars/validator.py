"""The truth that the tests of constraints go by: is this JSON text valid against this schema?

`jsonschema`, with these parts replaced where it departs from the specification (drafts 2020-12 of
core and validation, unless said):

- multipleOf: floats make 19.99 no multiple of 0.01. Here exact, at any size. Core 4.2.1: "An
  arbitrary-precision, base-10 decimal number value"; validation 6.2.1: "valid only if division by
  this keyword's value results in an integer".
- pattern, patternProperties, additionalProperties: Python's `re` takes `$` before a last newline,
  digits beyond ASCII, and no classes of Unicode. Validation 6.3.3: "SHOULD be a valid regular
  expression, according to the ECMA-262 regular expression dialect".
- uniqueItems: [[1], [true], [1]] passes, since only sorted neighbours are compared. Validation
  6.4.3: "all of its elements are unique". One notion of equality for it, enum and const: core
  4.2.2: "of the same type and have the same value according to the data model".
- unevaluatedItems, unevaluatedProperties: rebuilt, so that the keys and items that count are found
  with the keywords of this file. Core 7.7.1.2: "Schema objects that produce a false assertion
  result MUST NOT produce any annotation results".
- integers: as floats only up to 2^53. Validation 6.1.1: "any number with a zero fractional part".
  By value in draft 4 as well, on purpose, although its core, 3.5, has "A JSON number without a
  fraction or exponent part": numbers have no other identity in JSON, and later drafts said so.
- dependencies: not checked from 2019-09 on. Here in every draft: the metaschema keeps it "to
  prevent incompatible extensions as they remain in common use".
- keys that stand twice: the last one counts. Here no instance. Core 4.2.1: "an object cannot have
  two properties with the same key".
- lone surrogates: taken. Here no instance: RFC 8259, 8.2, calls the behaviour of software that
  receives them "unpredictable", and UTF-8 has no bytes for them.
- format: see `formats_oracle`.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from decimal import Context, Decimal, Overflow, Underflow
from typing import Any

import attrs
import jsonschema
from ecma import search
from formats_oracle import FORMATS
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend
from referencing import Registry
from referencing.jsonschema import lookup_recursive_ref, specification_with

_EXACT = Context(prec=999_999, Emax=10**17, Emin=-(10**17))
_EXACT.traps[Underflow] = True
_LONG = 4000  # digits beyond which int() refuses


class OutOfReach(ArithmeticError):  # noqa: N818
    """A number with an exponent that Decimal does not have: nothing here can judge it."""


# JSON texts


def load(text: str | bytes) -> Any:
    """The value of a JSON text: numbers with a fraction or an exponent are Decimals. Raises
    ValueError for no JSON, for a key that stands twice and for lone surrogates; OutOfReach."""
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    return json.loads(
        _decoded(text),
        parse_float=_decimal,
        parse_int=lambda digits: int(digits) if len(digits) < _LONG else Decimal(digits),
        parse_constant=_no_number,
        object_pairs_hook=_object,
    )


def _decimal(text: str) -> Decimal:
    try:
        return _EXACT.create_decimal(text)
    except (Overflow, Underflow) as error:
        raise OutOfReach(f"{text} has too great an exponent") from error


def exact(value: Any) -> Any:
    """A plain value as `load` gives it."""
    return load(json.dumps(value, allow_nan=False))


def _decoded(text: str) -> str:
    strings = json.JSONDecoder(object_pairs_hook=lambda pairs: [x for pair in pairs for x in pair])
    _no_surrogates(strings.decode(text) if "\\u" in text else text)
    return text


def _no_surrogates(value: Any) -> None:
    if isinstance(value, str):
        value.encode("utf-8")
    elif isinstance(value, list):
        for part in value:
            _no_surrogates(part)


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError(f"a key stands twice in {[key for key, _ in pairs]}")
    return made


# Values


def identity(value: Any) -> Any:
    """Equal for exactly the values that JSON Schema calls equal; can be hashed."""
    if isinstance(value, bool) or value is None:
        return (str(value),)
    if isinstance(value, str):
        return ("string", value)
    if isinstance(value, list):
        return ("array", tuple(map(identity, value)))
    if isinstance(value, dict):
        return ("object", frozenset((key, identity(part)) for key, part in value.items()))
    return ("number", Decimal(value))


def is_multiple(value: int | Decimal, unit: int | Decimal) -> bool:
    """Exact at any size, without ever writing a number out."""
    (digits, power), (unit_digits, unit_power) = _scaled(value), _scaled(unit)
    if power >= unit_power:
        return digits % unit_digits * pow(10, power - unit_power, unit_digits) % unit_digits == 0
    shift = unit_power - power
    return digits == 0 or (shift <= len(str(digits)) and digits % (unit_digits * 10**shift) == 0)


def _scaled(value: int | Decimal) -> tuple[int, int]:
    _, digits, exponent = Decimal(value).as_tuple()
    assert isinstance(exponent, int)
    return int("".join(map(str, digits))), exponent


def _is_integer(_: Any, value: Any) -> bool:
    if isinstance(value, Decimal):
        return is_multiple(value, 1)
    return isinstance(value, int) and not isinstance(value, bool)


# Keywords: generators of errors, as jsonschema has them

Errors = Iterator[ValidationError]


def _pattern(validator: Any, pattern: str, value: Any, schema: Any) -> Errors:
    if isinstance(value, str) and not search(pattern, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, value: Any, schema: Any) -> Errors:
    if isinstance(value, dict):
        for pattern, inner in patterns.items():
            for key, part in value.items():
                if search(pattern, key):
                    yield from validator.descend(part, inner, path=key, schema_path=pattern)


def _extra_keys(value: dict[str, Any], schema: dict[str, Any]) -> list[str]:
    patterns = schema.get("patternProperties", {})
    named = schema.get("properties", {})
    return [k for k in value if k not in named and not any(search(p, k) for p in patterns)]


def _additional_properties(validator: Any, inner: Any, value: Any, schema: Any) -> Errors:
    if isinstance(value, dict):
        for key in _extra_keys(value, schema):
            yield from validator.descend(value[key], inner, path=key)


def _multiple_of(validator: Any, unit: Any, value: Any, schema: Any) -> Errors:
    if validator.is_type(value, "number") and not is_multiple(value, unit):
        yield ValidationError(f"{value} is no multiple of {unit}")


def _unique_items(validator: Any, asked: Any, value: Any, schema: Any) -> Errors:
    if asked and isinstance(value, list) and len(set(map(identity, value))) < len(value):
        yield ValidationError(f"{value} has equal items")


def _enum(validator: Any, values: Any, value: Any, schema: Any) -> Errors:
    if identity(value) not in map(identity, values):
        yield ValidationError(f"{value!r} is none of {values!r}")


def _const(validator: Any, wanted: Any, value: Any, schema: Any) -> Errors:
    if identity(value) != identity(wanted):
        yield ValidationError(f"{value!r} is not {wanted!r}")


def _unevaluated_properties(validator: Any, inner: Any, value: Any, schema: Any) -> Errors:
    if isinstance(value, dict):
        for key in value.keys() - _evaluated(validator, value, skip=True):
            yield from validator.descend(value[key], inner, path=key)


def _unevaluated_items(validator: Any, inner: Any, value: Any, schema: Any) -> Errors:
    if isinstance(value, list):
        for i in set(range(len(value))) - _evaluated(validator, value, skip=True):
            yield from validator.descend(value[i], inner, path=i)


def _evaluated(validator: Any, value: Any, skip: bool = False) -> set[Any]:
    """The keys or the places that a schema which holds has evaluated; `skip`: but for its own
    unevaluated*."""
    schema = validator.schema
    if not isinstance(schema, dict):
        return set()
    done = _by_own_keywords(validator, value, skip)
    for inner in _in_place(validator, value):
        if inner.is_valid(value):
            done |= _evaluated(inner, value)
    return done


def _by_own_keywords(validator: Any, value: Any, skip: bool) -> set[Any]:
    schema = validator.schema
    if isinstance(value, dict):
        if "additionalProperties" in schema or ("unevaluatedProperties" in schema and not skip):
            return set(value)
        return value.keys() - set(_extra_keys(value, schema))
    every = set(range(len(value)))
    items = schema.get("items")
    first = schema.get("prefixItems", items if isinstance(items, list) else [])
    if "unevaluatedItems" in schema and not skip:
        return every
    if isinstance(items, dict | bool):
        return every
    if isinstance(items, list) and "additionalItems" in schema:
        return every
    done = every & set(range(len(first)))
    if "contains" in schema and "2019-09" not in validator.META_SCHEMA["$id"]:
        inner = _below(validator, schema["contains"])
        done |= {i for i in every if inner.is_valid(value[i])}
    return done


def _in_place(validator: Any, value: Any) -> Iterator[Any]:
    """Validators of the subschemas that apply to the same value, dropped branches left out."""
    schema = validator.schema
    resolver = validator._resolver
    resolved = [resolver.lookup(schema[k]) for k in ("$ref", "$dynamicRef") if k in schema]
    if "$recursiveRef" in schema:
        resolved.append(lookup_recursive_ref(resolver))
    for found in resolved:
        yield validator.evolve(schema=found.contents, _resolver=found.resolver)
    inner = [s for k in ("allOf", "anyOf", "oneOf") for s in schema.get(k, ())]
    if "if" in schema:
        holds = _below(validator, schema["if"]).is_valid(value)
        inner.append(schema["if"])
        inner.append(schema.get("then" if holds else "else", True))
    if isinstance(value, dict):
        inner += [s for k, s in schema.get("dependentSchemas", {}).items() if k in value]
    for schema in inner:
        yield _below(validator, schema)


def _below(validator: Any, schema: Any) -> Any:
    """A validator of a subschema, in the resource of its own `$id`."""
    resource = specification_with(validator.META_SCHEMA["$schema"]).create_resource(schema)
    return validator.evolve(schema=schema, _resolver=validator._resolver.in_subresource(resource))


def _dependencies(validator: Any, dependencies: Any, value: Any, schema: Any) -> Errors:
    if isinstance(value, dict):
        for key in dependencies.keys() & value.keys():
            if not isinstance(dependencies[key], list):
                yield from validator.descend(value, dependencies[key], schema_path=key)
            elif missing := set(dependencies[key]) - value.keys():
                yield ValidationError(f"{key!r} needs {missing}")


# Drafts

_KEYWORDS = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "multipleOf": _multiple_of,
    "uniqueItems": _unique_items,
    "enum": _enum,
    "const": _const,
    "unevaluatedProperties": _unevaluated_properties,
    "unevaluatedItems": _unevaluated_items,
}

_CHECKER = jsonschema.FormatChecker(formats=())
for _name, _holds in FORMATS.items():
    _CHECKER.checks(_name)(lambda value, holds=_holds: not isinstance(value, str) or holds(value))


def _draft(base: Any) -> Any:
    types = base.TYPE_CHECKER.redefine("integer", _is_integer)
    known = {k: check for k, check in _KEYWORDS.items() if k in base.VALIDATORS}
    draft = extend(base, {"dependencies": _dependencies, **known}, type_checker=types)
    draft.evolve = _evolve
    return draft


def _evolve(validator: Any, **changes: Any) -> Any:
    """The validator of a part: jsonschema goes back to its own keywords where it has `$schema`."""
    for field in attrs.fields(type(validator)):
        if field.init:
            changes.setdefault(field.alias, getattr(validator, field.name))
    named = _named_draft(changes.get("schema", validator.schema))
    return (DRAFTS[named] if named else type(validator))(**changes)


def _named_draft(schema: Any) -> str | None:
    uri = str(schema.get("$schema", "")) if isinstance(schema, dict) else ""
    return next((draft for draft in DRAFTS if f"/{draft}/" in uri), None)


DRAFTS = {
    "draft-04": _draft(jsonschema.Draft4Validator),
    "draft-06": _draft(jsonschema.Draft6Validator),
    "draft-07": _draft(jsonschema.Draft7Validator),
    "2019-09": _draft(jsonschema.Draft201909Validator),
    "2020-12": _draft(jsonschema.Draft202012Validator),
}


class Validator:
    """The truth about one schema, given as a value or as JSON text. `registry` holds what it may
    refer to outside of itself."""

    def __init__(self, schema: Any, registry: Registry[Any] | None = None) -> None:
        schema = load(schema if isinstance(schema, str) else json.dumps(schema))
        draft = _named_draft(schema) or "2020-12"
        self.draft = draft
        self._inside = DRAFTS[draft](
            schema, format_checker=_CHECKER, registry=Registry() if registry is None else registry
        )

    def is_valid(self, value: Any) -> bool:
        """Of a value as `load` gives it."""
        return bool(self._inside.is_valid(value))

    def accepts(self, text: str | bytes) -> bool:
        """Whether it is JSON and valid."""
        return self.complaint(text) is None

    def complaint(self, text: str | bytes) -> str | None:
        """What is wrong with a text, or None."""
        try:
            value = load(text)
        except ValueError as error:
            return f"no JSON: {error}"
        found = next(self._inside.iter_errors(value), None)
        return None if found is None else f"{found.json_path}: {found.message}"


@functools.lru_cache(1024)
def validator_of(text: str) -> Validator:
    """The validator of a schema's text, kept."""
    return Validator(text)
