"""Internet addresses and the URI family as patterns: RFC 3986, 3987, 4291 and 6570."""

from __future__ import annotations

_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
IPV4 = rf"(?:{_OCTET}\.){{3}}{_OCTET}"


def _ipv6() -> str:
    group = "[0-9A-Fa-f]{1,4}"
    last = f"(?:{group}:{group}|{IPV4})"
    forms = [f"(?:{group}:){{6}}{last}"]
    for behind in range(6):  # "::" stands for at least one group of zeros before so many and `last`
        before = f"(?:(?:{group}:){{0,{4 - behind}}}{group})?" if behind < 5 else ""
        forms.append(f"{before}::(?:{group}:){{{behind}}}{last}")
    forms.append(f"(?:(?:{group}:){{0,5}}{group})?::{group}")
    forms.append(f"(?:(?:{group}:){{0,6}}{group})?::")
    return f"(?:{'|'.join(forms)})"


IPV6 = _ipv6()

_UCS = (
    r"\u{A0}-\u{D7FF}\u{F900}-\u{FDCF}\u{FDF0}-\u{FFEF}"
    + "".join(rf"\u{{{plane:X}0000}}-\u{{{plane:X}FFFD}}" for plane in range(1, 14))
    + r"\u{E1000}-\u{EFFFD}"
)
_PRIVATE = r"\u{E000}-\u{F8FF}\u{F0000}-\u{FFFFD}\u{100000}-\u{10FFFD}"
_ESCAPED = "%[0-9A-Fa-f]{2}"


def _uri(more: str, in_query: str) -> tuple[str, str]:
    """Absolute ones, and references. `more`: unreserved characters besides those of ASCII."""
    plain = rf"A-Za-z0-9\-._~!$&'()*+,;={more}"
    char = f"(?:[{plain}:@]|{_ESCAPED})"
    user = f"(?:[{plain}:]|{_ESCAPED})*"
    name = f"(?:[{plain}]|{_ESCAPED})*"
    future = r"v[0-9A-Fa-f]+\.[A-Za-z0-9\-._~!$&'()*+,;=:]+"
    authority = rf"(?:{user}@)?(?:\[(?:{IPV6}|{future})\]|{name})(?::[0-9]*)?"
    path = f"(?:/{char}*)*"
    absolute = f"/(?:{char}+{path})?"
    tail = rf"(?:\?(?:[{plain}:@/?{in_query}]|{_ESCAPED})*)?(?:#(?:[{plain}:@/?]|{_ESCAPED})*)?"
    whole = rf"[A-Za-z][A-Za-z0-9+.\-]*:(?://{authority}{path}|{absolute}|{char}+{path}|){tail}"
    first = f"(?:[{plain}@]|{_ESCAPED})+"
    relative = f"(?://{authority}{path}|{absolute}|{first}{path}|){tail}"
    return whole, f"(?:{whole}|{relative})"


URI, URI_REFERENCE = _uri("", "")
IRI, IRI_REFERENCE = _uri(_UCS, _PRIVATE)

_LITERAL = rf"(?:[!#$&(-;=?-\[\]_a-z~{_UCS}{_PRIVATE}]|{_ESCAPED})"
_NAME = rf"(?:[A-Za-z0-9_]|{_ESCAPED})(?:\.?(?:[A-Za-z0-9_]|{_ESCAPED}))*"
_VARIABLE = rf"{_NAME}(?::[1-9][0-9]{{0,3}}|\*)?"
URI_TEMPLATE = rf"(?:{_LITERAL}|\{{[+#./;?&=,!@|]?{_VARIABLE}(?:,{_VARIABLE})*\}})*"
