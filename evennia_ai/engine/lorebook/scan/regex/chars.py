"""Character sets: which characters one place of a regular expression matches.

The named sets are those of the ECMAScript standard: `\\d` and `\\w` contain only ASCII characters,
`\\s` also contains others. This module knows the general categories of Unicode. PCRE2 checks the
names of scripts.

It also applies JavaScript's rules for ignoring case, which no regex engine for Python follows.
Without the flag `u`, two characters are equal if their capital letters are equal, but a letter
outside ASCII never equals an ASCII letter. With `u`, two characters are equal if their simple case
foldings are equal. So only with `u`, the Kelvin sign equals `k`, and the long s equals `s`.
"""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

# Ranges of code points, each given as its first and last code point. They are in ascending order
# and neither overlap nor touch.
Ranges = tuple[tuple[int, int], ...]
LAST: Final = 0x10FFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """The characters that have a Unicode property, or that do not have it if `negated`."""

    name: str
    """The name of the property in a PCRE2 pattern."""
    category: str = ""
    """The general category, if the property is a category, else ""."""
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CharSet:
    """The characters that one place of a regular expression matches, or all others if `negated`."""

    ranges: Ranges = ()
    properties: tuple[Property, ...] = ()
    negated: bool = False

    def overlaps(self, other: "CharSet") -> bool:
        """True if the sets may share a character. Sets with properties count as sharing one."""
        if self.properties or other.properties:
            return True
        return bool(common_ranges(self.positive(), other.positive()))

    def positive(self) -> Ranges:
        """Return the code points in the set as ranges. Unicode properties are left out."""
        return other_ranges(self.ranges) if self.negated else self.ranges


def merge_ranges(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Sort ranges of code points, and join those that touch or overlap."""
    result: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if result and first <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(last, result[-1][1]))
        else:
            result.append((first, last))
    return tuple(result)


def other_ranges(ranges: Ranges) -> Ranges:
    """Return all code points that are in none of the ranges."""
    result = []
    begin = 0
    for first, last in ranges:
        if first > begin:
            result.append((begin, first - 1))
        begin = last + 1
    if begin <= LAST:
        result.append((begin, LAST))
    return tuple(result)


def common_ranges(left: Ranges, right: Ranges) -> Ranges:
    """Return the ranges of code points that are in both `left` and `right`."""
    return other_ranges(merge_ranges((*other_ranges(left), *other_ranges(right))))


def single_char(code: int) -> CharSet:
    """Return the set of a single character."""
    return CharSet(ranges=((code, code),))


DIGITS: Final[Ranges] = ((0x30, 0x39),)
WORDS: Final[Ranges] = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
BLANKS: Final[Ranges] = (
    (0x09, 0x0D),
    (0x20, 0x20),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
    (0xFEFF, 0xFEFF),
)
LINE_ENDS: Final[Ranges] = ((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029))
ANY: Final = CharSet(negated=True)
NO_LINE_END: Final = CharSet(ranges=LINE_ENDS, negated=True)


_CATEGORIES: Final[Mapping[str, str]] = {
    long: short
    for short, names in {
        "C": "Other",
        "Cc": "Control cntrl",
        "Cf": "Format",
        "Cn": "Unassigned",
        "Co": "Private_Use",
        "Cs": "Surrogate",
        "L": "Letter",
        "LC": "Cased_Letter",
        "Ll": "Lowercase_Letter",
        "Lm": "Modifier_Letter",
        "Lo": "Other_Letter",
        "Lt": "Titlecase_Letter",
        "Lu": "Uppercase_Letter",
        "M": "Mark Combining_Mark",
        "Mc": "Spacing_Mark",
        "Me": "Enclosing_Mark",
        "Mn": "Nonspacing_Mark",
        "N": "Number",
        "Nd": "Decimal_Number digit",
        "Nl": "Letter_Number",
        "No": "Other_Number",
        "P": "Punctuation punct",
        "Pc": "Connector_Punctuation",
        "Pd": "Dash_Punctuation",
        "Pe": "Close_Punctuation",
        "Pf": "Final_Punctuation",
        "Pi": "Initial_Punctuation",
        "Po": "Other_Punctuation",
        "Ps": "Open_Punctuation",
        "S": "Symbol",
        "Sc": "Currency_Symbol",
        "Sk": "Modifier_Symbol",
        "Sm": "Math_Symbol",
        "So": "Other_Symbol",
        "Z": "Separator",
        "Zl": "Line_Separator",
        "Zp": "Paragraph_Separator",
        "Zs": "Space_Separator",
    }.items()
    for long in (short, *names.split())
}
_RANGES: Final[Mapping[str, Ranges]] = {
    "Any": ((0, LAST),),
    "ASCII": ((0, 0x7F),),
}
# Unicode's properties of single characters that are true or false, with their short names.
_BINARY_NAMES: Final = """
ASCII_Hex_Digit AHex Alphabetic Alpha Bidi_Control Bidi_C Bidi_Mirrored Bidi_M Case_Ignorable
CI Cased Changes_When_Casefolded CWCF Changes_When_Casemapped CWCM Changes_When_Lowercased CWL
Changes_When_NFKC_Casefolded CWKCF Changes_When_Titlecased CWT Changes_When_Uppercased CWU Dash
Default_Ignorable_Code_Point DI Deprecated Dep Diacritic Dia Emoji Emoji_Component EComp
Emoji_Modifier EMod Emoji_Modifier_Base EBase Emoji_Presentation EPres Extended_Pictographic
ExtPict Extender Ext Grapheme_Base Gr_Base Grapheme_Extend Gr_Ext Hex_Digit Hex
IDS_Binary_Operator IDSB IDS_Trinary_Operator IDST ID_Continue IDC ID_Start IDS Ideographic
Ideo Join_Control Join_C Logical_Order_Exception LOE Lowercase Lower Math
Noncharacter_Code_Point NChar Pattern_Syntax Pat_Syn Pattern_White_Space Pat_WS Quotation_Mark
QMark Radical Regional_Indicator RI Sentence_Terminal STerm Soft_Dotted SD Terminal_Punctuation
Term Unified_Ideograph UIdeo Uppercase Upper Variation_Selector VS White_Space space
XID_Continue XIDC XID_Start XIDS
"""
_BINARY: Final = frozenset(_BINARY_NAMES.split())
_SCRIPT: Final = re.compile(r"(Script|sc|Script_Extensions|scx)=([A-Z][A-Za-z]*(?:_[A-Za-z]+)*)")
_CATEGORY: Final = re.compile(r"(?:General_Category|gc)=(\w+)", re.ASCII)


def property_of(name: str, *, negated: bool) -> Property | Ranges | None:
    """Return the Unicode property that `\\p{name}` names, or its ranges; None if it is unknown."""
    if name in _RANGES:
        return other_ranges(_RANGES[name]) if negated else _RANGES[name]
    if name == "Assigned":
        return Property(name="Cn", category="Cn", negated=not negated)
    stated = _CATEGORY.fullmatch(name)
    category = _CATEGORIES.get(stated[1] if stated else name)
    if category is not None:
        return Property(name=category, category=category, negated=negated)
    if name in _BINARY or _SCRIPT.fullmatch(name):
        return Property(name=name, negated=negated)
    return None


# Code points from here on have no letter case, so the search for equal characters stops here.
_LAST_CASED: Final = 0x1F000
_LAST_UNIT: Final = 0xFFFF
_BLOCK: Final = 256


def with_case_variants(chars: CharSet, *, unicode: bool) -> CharSet:
    """Return the set with all characters added that equal one of its own if case is ignored."""
    ranges = _ranges_with_kin(chars.ranges, unicode)
    for one in chars.properties:
        ranges = merge_ranges((*ranges, *_kin_of_category(one, unicode)))
    return CharSet(ranges=ranges, properties=chars.properties, negated=chars.negated)


@lru_cache(maxsize=1024)
def _ranges_with_kin(ranges: Ranges, unicode: bool) -> Ranges:
    casing = _casing(unicode)
    extra = []
    for first, last in ranges:
        begin, end = bisect_left(casing.codes, first), bisect_left(casing.codes, last + 1)
        for code in casing.codes[begin:end]:
            extra += [(other, other) for other in casing.kin[code]]
    return merge_ranges((*ranges, *extra)) if extra else ranges


@lru_cache(maxsize=128)
def _kin_of_category(wanted: Property, unicode: bool) -> Ranges:
    """Return the characters outside a Unicode category that equal one inside if case is ignored."""
    if not wanted.category:
        return ()
    parts = ("Lu", "Ll", "Lt") if wanted.category == "LC" else wanted.category
    casing = _casing(unicode)
    having = {
        code
        for code in casing.codes
        if unicodedata.category(chr(code)).startswith(parts) is not wanted.negated
    }
    return merge_ranges(
        (other, other) for code in having for other in casing.kin[code] if other not in having
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Casing:
    """The characters that equal at least one other character if case is ignored."""

    kin: Mapping[int, tuple[int, ...]]
    """For each such character, all characters that equal it, including itself."""
    codes: tuple[int, ...]
    """The code points of all such characters, in ascending order."""


@lru_cache(maxsize=2)
def _casing(unicode: bool) -> _Casing:
    canonical, change = (_folded, str.casefold) if unicode else (_capital, str.upper)
    kinds: dict[int, set[int]] = {}
    for first in range(0, _LAST_CASED if unicode else _LAST_UNIT + 1, _BLOCK):
        block = "".join(map(chr, range(first, first + _BLOCK)))
        if change(block) != block:  # in most blocks no character has a case
            for code in range(first, first + _BLOCK):
                kinds.setdefault(canonical(code), set()).add(code)
    for code, kind in kinds.items():
        if canonical(code) == code:
            kind.add(code)
    kin = {code: tuple(sorted(kind)) for kind in kinds.values() if len(kind) > 1 for code in kind}
    return _Casing(kin=kin, codes=tuple(sorted(kin)))


def _capital(code: int) -> int:
    capital = chr(code).upper()
    if len(capital) != 1 or (code >= 128 > ord(capital)):
        return code
    return ord(capital)


def _folded(code: int) -> int:
    char = chr(code)
    folded = char.casefold()
    if (
        len(folded) != 1
    ):  # Unicode folds the letter to several letters, so use its small letter instead
        folded = char.lower()
    return ord(folded) if len(folded) == 1 else code
