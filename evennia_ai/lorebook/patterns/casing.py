"""Which characters are one and the same where case does not count, as JavaScript has it.

Without the flag `u` two characters are one when their capitals are, unless that would make a
foreign letter an ASCII one; with it when their simple case folding is. So the Kelvin sign is a `k`
and the long s an `s` with `u` alone. No engine for Python does either by itself.
"""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from evennia_ai.lorebook.patterns.charsets import CharSet, Property, Ranges, merged
from evennia_ai.lorebook.patterns.properties import has_category

# No character behind this one has a case.
_LAST_CASED: Final = 0x1F000
_LAST_UNIT: Final = 0xFFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class _Casing:
    """For each character that has others of its kind all of them; and these characters in order."""

    kin: Mapping[int, tuple[int, ...]]
    codes: tuple[int, ...]


def with_kin(chars: CharSet, *, unicode: bool) -> CharSet:
    """The set with all that differs from its members by case alone."""
    ranges = _ranges_with_kin(chars.ranges, unicode)
    for one in chars.properties:
        ranges = merged((*ranges, *_kin_of(one, unicode)))
    return CharSet(ranges=ranges, properties=chars.properties, negated=chars.negated)


@lru_cache(maxsize=128)
def _kin_of(wanted: Property, unicode: bool) -> Ranges:
    """What has not the property, but differs by case alone from what has."""
    casing = _casing(unicode)
    having = {code for code in casing.codes if has_category(wanted, code)}
    return merged(
        (other, other) for code in having for other in casing.kin[code] if other not in having
    )


@lru_cache(maxsize=1024)
def _ranges_with_kin(ranges: Ranges, unicode: bool) -> Ranges:
    casing = _casing(unicode)
    extra = []
    for first, last in ranges:
        begin, end = bisect_left(casing.codes, first), bisect_left(casing.codes, last + 1)
        for code in casing.codes[begin:end]:
            extra += [(other, other) for other in casing.kin[code]]
    return merged((*ranges, *extra)) if extra else ranges


@lru_cache(maxsize=2)
def _casing(unicode: bool) -> _Casing:
    kinds: dict[int, list[int]] = {}
    canonical = _folded if unicode else _capital
    for code in range(_LAST_CASED if unicode else _LAST_UNIT + 1):
        kinds.setdefault(canonical(code), []).append(code)
    kin = {code: tuple(kind) for kind in kinds.values() if len(kind) > 1 for code in kind}
    return _Casing(kin=kin, codes=tuple(sorted(kin)))


def _capital(code: int) -> int:
    capital = chr(code).upper()
    if len(capital) != 1 or (code >= 128 > ord(capital)):
        return code
    return ord(capital)


def _folded(code: int) -> int:
    char = chr(code)
    folded = char.casefold()
    if len(folded) != 1:  # the full folding; the simple one is the small letter, or none
        folded = char.lower()
    return ord(folded) if len(folded) == 1 else code
