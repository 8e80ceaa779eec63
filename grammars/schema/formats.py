"""The values of `format` that are asserted, as patterns in full; the names that are known.

Year 0000 and leap seconds are left out, since common date libraries refuse them; letters in
dates and times are written in upper case.
"""

from __future__ import annotations

import functools

from sglite.grammars.regex_syntax import Regex, parse
from sglite.grammars.schema import addresses

_LEAP_YEAR = "(?:[0-9][0-9](?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
_YEAR = "(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
_DATE = (
    f"(?:{_YEAR}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    f"|02-(?:0[1-9]|1[0-9]|2[0-8]))|{_LEAP_YEAR}-02-29)"
)
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?"
_TIME = rf"{_CLOCK}(?:Z|[+\-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~\-]+"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9\-]{0,61}[A-Za-z0-9])?"
_TIME_PART = "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)"
_DAYS = "(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)"
_POINTER = "(?:/(?:[^/~]|~[01])*)*"

_PATTERNS = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f"{_DATE}T{_TIME}",
    "uuid": "[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}",
    "email": rf"{_ATOM}(?:\.{_ATOM})*@{_LABEL}(?:\.{_LABEL})*",
    "ipv4": addresses.IPV4,
    "ipv6": addresses.IPV6,
    "uri": addresses.URI,
    "uri-reference": addresses.URI_REFERENCE,
    "iri": addresses.IRI,
    "iri-reference": addresses.IRI_REFERENCE,
    "uri-template": addresses.URI_TEMPLATE,
    "duration": f"P(?:{_DAYS}(?:{_TIME_PART})?|{_TIME_PART}|[0-9]+W)",
    "json-pointer": _POINTER,
    "relative-json-pointer": f"(?:0|[1-9][0-9]*)(?:#|{_POINTER})",
}

KNOWN = frozenset(_PATTERNS) | {"idn-email", "hostname", "idn-hostname", "regex"}
"""Formats that JSON Schema defines; other names are annotations."""


@functools.cache
def pattern(name: str) -> Regex | None:
    """The tree of a supported format, or None."""
    return parse(_PATTERNS[name], "ecma") if name in _PATTERNS else None
