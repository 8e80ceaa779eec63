"""Writes the tables of unicode.cpp, from Python's own Unicode data: `make_unicode.py TARGET`.

Run by CMake. Python's `re` decides what \\w, \\d, \\s and ignoring case mean, so the tables come
from the interpreter that the module is built for. Scripts are not in its data; the large ones are
told by the names of their characters.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable

try:
    from re._casefix import _EXTRA_CASES
except ImportError:
    _EXTRA_CASES = {}

Ranges = list[tuple[int, int]]

CHARACTERS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]

# Beginnings of names, and characters that are shared between scripts all the same.
SCRIPTS: dict[str, tuple[str, str, Ranges]] = {
    "Latin": (
        "Latn",
        "LATIN |FULLWIDTH LATIN |FEMININE ORD|MASCULINE ORD|KELVIN |ANGSTROM |ROMAN NUMERAL ",
        [(0x271D, 0x271D)],
    ),
    "Greek": (
        "Grek",
        "GREEK |OHM SIGN",
        [(0x374, 0x374), (0x37E, 0x37E), (0x385, 0x385), (0x387, 0x387)],
    ),
    "Cyrillic": ("Cyrl", "CYRILLIC |COMBINING CYRILLIC |MODIFIER LETTER CYRILLIC ", []),
    "Han": (
        "Hani",
        "CJK UNIFIED |CJK COMPATIBILITY |CJK RADICAL |KANGXI |HANGZHOU "
        "|IDEOGRAPHIC (?:ITERATION|NUMBER)",
        [],
    ),
    "Hiragana": ("Hira", "HIRAGANA |HENTAIGANA ", []),
    "Katakana": (
        "Kana",
        "KATAKANA |HALFWIDTH KATAKANA (?!MIDDLE|VOICED|SEMI)|CIRCLED KATAKANA ",
        [(0x30FB, 0x30FB), (0xFF70, 0xFF70)],
    ),
    "Arabic": (
        "Arab",
        "ARABIC |EXTENDED ARABIC-INDIC |ARABIC-INDIC |RUMI ",
        [
            (0x605, 0x605),
            (0x60C, 0x60C),
            (0x61B, 0x61B),
            (0x61F, 0x61F),
            (0x640, 0x640),
            (0x64B, 0x655),
            (0x670, 0x670),
            (0x6DD, 0x6DD),
            (0x8E2, 0x8E2),
        ],
    ),
    "Hebrew": ("Hebr", "HEBREW ", []),
    "Thai": ("Thai", "THAI ", [(0xE3F, 0xE3F)]),
    "Hangul": (
        "Hang",
        "HANGUL |HALFWIDTH HANGUL |CIRCLED HANGUL |PARENTHESIZED HANGUL ",
        [],
    ),
    "Devanagari": (
        "Deva",
        "DEVANAGARI |COMBINING DEVANAGARI ",
        [(0x951, 0x954), (0x964, 0x965)],
    ),
    "Armenian": ("Armn", "ARMENIAN ", []),
    "Georgian": ("Geor", "GEORGIAN |MODIFIER LETTER GEORGIAN ", [(0x10FB, 0x10FB)]),
    "Bengali": ("Beng", "BENGALI ", []),
    "Tamil": ("Taml", "TAMIL ", []),
}


# RFC 5892: exceptions, those that need neighbours, and what the categories do not tell.
DOMAIN_ALLOWED = {0xDF, 0x3C2, 0x6FD, 0x6FE, 0xF0B, 0x3007, 0xB7, 0x375, 0x5F3, 0x5F4, 0x30FB}
DOMAIN_ALLOWED |= {0x200C, 0x200D}
DOMAIN_BARRED: Ranges = [
    (0x640, 0x640),
    (0x7FA, 0x7FA),
    (0x302E, 0x302F),
    (0x3031, 0x3035),
    (0x303B, 0x303B),
    (0x34F, 0x34F),
    (0x1100, 0x11FF),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x20D0, 0x20FF),
    (0x3164, 0x3164),
    (0xA960, 0xA97C),
    (0xD7B0, 0xD7FB),
    (0xFE00, 0xFE0F),
    (0xFFA0, 0xFFA0),
    (0x1D100, 0x1D24F),
    (0xE0100, 0xE01EF),
]


def in_domains(char: str) -> bool:
    code = ord(char)
    if code in DOMAIN_ALLOWED:
        return True
    if any(low <= code <= high for low, high in DOMAIN_BARRED):
        return False
    if unicodedata.category(char) not in ("Ll", "Lu", "Lo", "Nd", "Lm", "Mn", "Mc"):
        return False
    folded = unicodedata.normalize("NFKC", char).casefold()
    return unicodedata.normalize("NFKC", folded) == char


def runs(values: Iterable[tuple[int, Hashable]]) -> list[tuple[int, Hashable]]:
    """Where a value begins to hold."""
    found: list[tuple[int, Hashable]] = []
    for code, value in values:
        if not found or found[-1][1] != value:
            found.append((code, value))
    return found


def ranges(belongs: Callable[[str], bool]) -> Ranges:
    found: Ranges = []
    for code in CHARACTERS:
        if belongs(chr(code)):
            append(found, code)
    return found


def scripts() -> dict[str, Ranges]:
    begins = re.compile("|".join(f"(?P<{long}>{names})" for long, (_, names, _) in SCRIPTS.items()))
    found: dict[str, Ranges] = {long: [] for long in SCRIPTS}
    for code in CHARACTERS:
        match = begins.match(unicodedata.name(chr(code), ""))
        if match is None or match.lastgroup is None:
            continue
        if any(low <= code <= high for low, high in SCRIPTS[match.lastgroup][2]):
            continue
        append(found[match.lastgroup], code)
    return found


def append(to: Ranges, code: int) -> None:
    if to and to[-1][1] == code - 1:
        to[-1] = (to[-1][0], code)
    else:
        to.append((code, code))


def cases() -> list[tuple[int, int]]:
    """Per character with variants the next one of them, in a circle."""
    groups: dict[int, list[int]] = defaultdict(list)
    for code in CHARACTERS:
        # `re` lowers one by one; where lower() spells two characters, it takes the first.
        low = ord(chr(code).lower()[0])
        groups[min([low, *_EXTRA_CASES.get(low, ())])].append(code)
    circles: list[tuple[int, int]] = []
    for members in groups.values():
        if len(members) > 1:
            circles += zip(members, members[1:] + members[:1], strict=True)
    return sorted(circles)


def table(kind: str, name: str, values: Iterable[str]) -> str:
    return f"constexpr {kind} {name}[] = {{{','.join(values)}}};\n"


def pairs(values: Iterable[tuple[int, int]]) -> list[str]:
    return [f"{{{a},{b}}}" for a, b in values]


def main(target: str) -> None:
    names = sorted({unicodedata.category(chr(c)) for c in CHARACTERS})
    categories = runs(
        (c, names.index(unicodedata.category(chr(c))) if not 0xD800 <= c < 0xE000 else len(names))
        for c in range(0x110000)
    )
    parts = [
        "// Made by make_unicode.py.\n",
        table("const char* const", "kCategoryNames", [f'"{name}"' for name in names]),
        table("Run", "kCategories", [f"{{{c},{int(str(v))}}}" for c, v in categories]),
        table("Range", "kWord", pairs(ranges(lambda c: c.isalnum() or c == "_"))),
        table("Range", "kDigit", pairs(ranges(str.isdecimal))),
        table("Range", "kSpace", pairs(ranges(str.isspace))),
        table("Case", "kCases", pairs(cases())),
        table("Range", "kDomain", pairs(ranges(in_domains))),
        table("Range", "kVirama", pairs(ranges(lambda c: unicodedata.combining(c) == 9))),
    ]
    listed = []
    for long, found in scripts().items():
        parts.append(table("Range", f"k{long}", pairs(found)))
        listed.append(f'{{"{long}","{SCRIPTS[long][0]}",k{long}}}')
    parts.append(table("Script", "kScripts", listed))
    with open(target, "w", encoding="ascii") as file:
        file.write("".join(parts))


if __name__ == "__main__":
    main(sys.argv[1])
