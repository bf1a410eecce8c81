"""The written pattern while it is read: where we are, what comes next, which flags hold."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from evennia_ai.lorebook.patterns.casing import with_kin
from evennia_ai.lorebook.patterns.charsets import CharSet

_HEX: Final = frozenset("0123456789abcdefABCDEF")
_OCTAL: Final = frozenset("01234567")


class BrokenPatternError(ValueError):
    """No pattern of JavaScript; the message says why and where."""


class UnsupportedPatternError(ValueError):
    """A pattern of JavaScript that cannot be run here; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """The flags that bear on what is matched; `unicode` is `u`, or `v` where it reads the same."""

    ignore_case: bool = False
    multiline: bool = False
    dot_all: bool = False
    unicode: bool = False
    sets: bool = False
    sticky: bool = False

    def chars(self, chars: CharSet) -> CharSet:
        """The set as it is matched under these flags."""
        return with_kin(chars, unicode=self.unicode) if self.ignore_case else chars


class Source:
    """A cursor over the body of a pattern; `groups` counts all captures, `names` numbers them.

    `refused` says what in it cannot run here, "" while all can. That is told only when the whole
    is read, because what is broken further on is no pattern at all.
    """

    __slots__ = ("at", "groups", "names", "refused", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.names: Mapping[str, int] = {}
        self.groups = 0
        self.refused = ""

    def peek(self) -> str:
        """The next character, "" at the end."""
        return self.text[self.at : self.at + 1]

    def next(self) -> str:
        """The next character, taken; a pattern that ends here is broken."""
        if self.at >= len(self.text):
            raise self.broken("ends too early")
        self.at += 1
        return self.text[self.at - 1]

    def take(self, wanted: str) -> bool:
        """Take `wanted` if it comes next."""
        if not self.text.startswith(wanted, self.at):
            return False
        self.at += len(wanted)
        return True

    def number(self, *, digits: int, octal: bool = False) -> int | None:
        """Take exactly so many hexadecimal digits, or at most so many octal ones, as a number."""
        allowed = _OCTAL if octal else _HEX
        end = self.at
        while (
            end < self.at + digits and self.text[end : end + 1] in allowed and end < len(self.text)
        ):
            end += 1
        if end == self.at or (not octal and end < self.at + digits):
            return None
        found, self.at = int(self.text[self.at : end], 8 if octal else 16), end
        return found

    def refuse(self, what: str) -> None:
        """Note that something cannot run here; the first such thing is told."""
        self.refused = self.refused or what

    def broken(self, what: str) -> BrokenPatternError:
        """The error that the pattern is broken at this place."""
        return BrokenPatternError(f"{what} at character {self.at + 1}")
