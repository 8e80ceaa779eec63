"""Every format that JSON Schema defines, by the letter of its RFC: the oracle's `format`.

All of them are asserted in all drafts (draft 4, validation, 7.1: "Implementations MAY add custom
format attributes"); unknown names are annotations. Nothing of the engine under test is used here.
"""

from __future__ import annotations

import calendar
import ipaddress
import re
from collections.abc import Callable

import idna
from ecma import is_pattern

# RFC 3339, 5.6 and appendix A.
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME = re.compile(
    r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.[0-9]+)?(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)
_DURATION_TIME = "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)"
_DURATION_DATE = "(?:[0-9]+D|[0-9]+M(?:[0-9]+D)?|[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?)"
_DURATION = re.compile(f"P(?:{_DURATION_DATE}(?:{_DURATION_TIME})?|{_DURATION_TIME}|[0-9]+W)")

# RFC 5321, 4.1.2 and 4.1.3; RFC 6531, 3.3, adds all characters beyond ASCII.
_ATOM = r"[A-Za-z0-9!#$%&'*+\-/=?^_`{|}~%s]+"
_QUOTED = r'"(?:[ !#-\[\]-~%s]|\\[ -~])*"'
_LABEL = re.compile("[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")

# RFC 3986 and, with the wider sets, RFC 3987.
_HEX = "%[0-9A-Fa-f]{2}"
_WIDE = (
    "\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef"
    + "".join(f"{chr(p * 0x10000)}-{chr(p * 0x10000 + 0xFFFD)}" for p in range(1, 14))
    + "\U000e1000-\U000efffd"
)
_PRIVATE = "\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"

# RFC 6570, 2.
_NAME = f"(?:[A-Za-z0-9_]|{_HEX})(?:\\.?(?:[A-Za-z0-9_]|{_HEX}))*"
_VARIABLE = f"{_NAME}(?::[1-9][0-9]{{0,3}}|\\*)?"
_TEMPLATE = re.compile(
    f"(?:[!#$&(-;=?-\\[\\]_a-z~{_WIDE}{_PRIVATE}]|{_HEX}"
    f"|\\{{[+#./;?&=,!@|]?{_VARIABLE}(?:,{_VARIABLE})*\\}})*"
)

_POINTER = "(?:/(?:[^~/]|~[01])*)*"


def date(text: str) -> bool:
    """RFC 3339 full-date, the days of the Gregorian calendar."""
    found = _DATE.fullmatch(text)
    if not found:
        return False
    year, month, day = map(int, found.groups())
    if not 1 <= month <= 12:
        return False
    leap = month == 2 and calendar.isleap(year)
    return 1 <= day <= (29 if leap else (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1])


def time(text: str) -> bool:
    """RFC 3339 full-time; a leap second only at the end of a day in UTC."""
    found = _TIME.fullmatch(text)
    if not found:
        return False
    hour, minute, second = (int(found[i]) for i in (1, 2, 3))
    off_hour, off_minute = int(found[5] or 0), int(found[6] or 0)
    if hour > 23 or minute > 59 or second > 60 or off_hour > 23 or off_minute > 59:
        return False
    offset = (off_hour * 60 + off_minute) * (-1 if found[4] == "-" else 1)
    return second < 60 or (hour * 60 + minute - offset) % 1440 == 1439


def date_time(text: str) -> bool:
    """RFC 3339 date-time."""
    return text[10:11] in ("T", "t") and date(text[:10]) and time(text[11:])


def hostname(text: str) -> bool:
    """RFC 1123, 2.1, over RFC 952; lengths of RFC 1035, 2.3.4."""
    return len(text) <= 253 and all(map(_LABEL.fullmatch, text.split(".")))


def idn_hostname(text: str) -> bool:
    """RFC 5890, 2.3.2.3; the separators of RFC 3490, 3.1."""
    if hostname(text) and not re.search(r"(?i)(^|\.)..--", text):
        return True
    try:
        idna.encode(re.sub("[\u3002\uff0e\uff61]", ".", text))
    except idna.IDNAError:
        return False
    return not text.endswith(".")


def _mailbox(text: str, wide: str, is_domain: Callable[[str], bool]) -> bool:
    local, at, domain = text.rpartition("@")
    atom, quoted = _ATOM.replace("%s", wide), _QUOTED.replace("%s", wide)
    if not at or not re.fullmatch(f"{atom}(?:\\.{atom})*|{quoted}", local):
        return False
    if domain.startswith("[") and domain.endswith("]"):
        literal = domain[1:-1]
        if literal[:5].lower() == "ipv6:":
            return ipv6(literal[5:])
        return ipv4(literal) or bool(re.fullmatch(r"[A-Za-z0-9-]*[A-Za-z0-9]:[!-Z^-~]+", literal))
    return is_domain(domain)


def email(text: str) -> bool:
    """RFC 5321 Mailbox."""
    return _mailbox(text, "", hostname)


def idn_email(text: str) -> bool:
    """RFC 6531 Mailbox."""
    return _mailbox(text, "\u0080-\U0010ffff", idn_hostname)


def ipv4(text: str) -> bool:
    """RFC 2673, 3.2, dotted quad without leading zeros."""
    parts = text.split(".")
    return len(parts) == 4 and all(
        re.fullmatch("0|[1-9][0-9]{0,2}", part) and int(part) < 256 for part in parts
    )


def ipv6(text: str) -> bool:
    """RFC 4291, 2.2; no zone."""
    if not re.fullmatch("[0-9A-Fa-f:.]+", text):
        return False
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return "." not in text or ipv4(text.rpartition(":")[2])


def _reference(wide: str, private: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """(absolute or with a fragment, any reference) over a set of extra characters."""
    unreserved, sub = f"A-Za-z0-9\\-._~{wide}", "!$&'()*+,;="
    pchar = f"(?:[{unreserved}{sub}:@]|{_HEX})"
    no_colon = f"(?:[{unreserved}{sub}@]|{_HEX})"
    host = f"(?:\\[(?P<literal>[^\\]]*)\\]|(?:[{unreserved}{sub}]|{_HEX})*)"
    authority = f"(?:(?:[{unreserved}{sub}:]|{_HEX})*@)?{host}(?::[0-9]*)?"
    tail = f"(?:\\?(?:{pchar}|[/?{private}])*)?(?:#(?:{pchar}|[/?])*)?"
    absolute, rootless = f"/(?:{pchar}+(?:/{pchar}*)*)?", f"{pchar}+(?:/{pchar}*)*"
    behind = f"//{authority}(?:/{pchar}*)*"
    scheme = "[A-Za-z][A-Za-z0-9+.\\-]*:"
    relative = f"{no_colon}+(?:/{pchar}*)*"
    full = re.compile(f"{scheme}(?:{behind}|{absolute}|{rootless}|){tail}")
    return full, re.compile(f"(?:{behind}|{absolute}|{relative}|){tail}")


_URI, _URI_RELATIVE = _reference("", "")
_IRI, _IRI_RELATIVE = _reference(_WIDE, _PRIVATE)


def _is_reference(text: str, *patterns: re.Pattern[str]) -> bool:
    for pattern in patterns:
        found = pattern.fullmatch(text)
        if found:
            literal = found["literal"]
            future = r"[vV][0-9A-Fa-f]+\.[A-Za-z0-9\-._~!$&'()*+,;=:]+"
            return literal is None or ipv6(literal) or bool(re.fullmatch(future, literal))
    return False


FORMATS: dict[str, Callable[[str], bool]] = {
    "date": date,
    "time": time,
    "date-time": date_time,
    "duration": lambda text: bool(_DURATION.fullmatch(text)),
    "email": email,
    "idn-email": idn_email,
    "hostname": hostname,
    "idn-hostname": idn_hostname,
    "ipv4": ipv4,
    "ipv6": ipv6,
    "uri": lambda text: _is_reference(text, _URI),
    "uri-reference": lambda text: _is_reference(text, _URI, _URI_RELATIVE),
    "iri": lambda text: _is_reference(text, _IRI),
    "iri-reference": lambda text: _is_reference(text, _IRI, _IRI_RELATIVE),
    "uri-template": lambda text: bool(_TEMPLATE.fullmatch(text)),
    "uuid": lambda text: bool(
        re.fullmatch("[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}", text)
    ),
    "json-pointer": lambda text: bool(re.fullmatch(_POINTER, text)),
    "relative-json-pointer": lambda text: bool(
        re.fullmatch(f"(?:0|[1-9][0-9]*)(?:#|{_POINTER})", text)
    ),
    "regex": is_pattern,
}
