"""Unicode properties by the names that JavaScript knows them by: `\\p{Lu}`, `\\p{Script=Greek}`.

General categories are known here. Scripts and all others are known to the package `regex` alone;
only their form is checked here.
"""

import re
import unicodedata
from collections.abc import Mapping
from typing import Final

from evennia_ai.lorebook.patterns.charsets import LAST, Property, Ranges, others

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
# Properties that a character has or has not, with their short names.
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
    """The property that `\\p{name}` asks for, None where there is none of that name."""
    if name in _RANGES:
        return others(_RANGES[name]) if negated else _RANGES[name]
    if name == "Assigned":
        return Property(name="Cn", category="Cn", negated=not negated)
    stated = _CATEGORY.fullmatch(name)
    category = _CATEGORIES.get(stated[1] if stated else name)
    if category is not None:
        return Property(name=category, category=category, negated=negated)
    if name in _BINARY or _SCRIPT.fullmatch(name):
        return Property(name=name, negated=negated)
    return None


def has_category(wanted: Property, code: int) -> bool:
    """Whether a character has this general category; never for another property."""
    if not wanted.category:
        return False
    return _is(unicodedata.category(chr(code)), wanted.category) is not wanted.negated


def _is(known: str, wanted: str) -> bool:
    return known in ("Lu", "Ll", "Lt") if wanted == "LC" else known.startswith(wanted)
