"""Nicks that cost little and give a typed line: no link, nothing unseen, not longer than a line.

A player writes both halves of a nick. Evennia makes a regular expression of the first, which may
search for ever ("$1a$2a$3a$4a"), and a Python format of the second, which may hold "{arg1:>99999}".
What comes out was never counted nor cleaned, so that `nick q $1 $2 = say |$1look|$2...` made links.

Here a nick is matched in one walk over its parts, each of which is tried at all places of the line
at once. The work for one line is counted over all nicks of a player. What a nick may be is bounded
when it is kept as well, for the command `nicks` shows all of them in a table.
"""

import re
from collections.abc import Sequence
from fnmatch import translate
from typing import Any, Final

from django.conf import settings
from evennia.typeclasses.attributes import (
    AttributeHandler,
    NickHandler,
    NickTemplateInvalid,
    initialize_nick_templates,
)
from evennia.utils.utils import make_iter

from evennia_ai.npc.senses.text import clean_line

MOST_STEPS: Final = 10_000
"""Parts of nicks that are tried for one line; a set such as [a-z] counts once per letter."""
TOO_MUCH_WORK: Final = (
    "Your nicks are too many or too long for this line, so it was not carried out."
)
LONGEST: Final = 6_000
"""Characters of a line that a nick makes in a game without a limit of its own."""

MOST_WRITTEN: Final = 250
"""Characters of each half of a nick."""
MOST_MARKS: Final = 6
"""Marks such as $1 and *, and colours, in each half."""
MOST_KEPT: Final = 6_000
"""How much all nicks of a player weigh: 40 each, their characters, and 20 for each mark.

The command `nicks` shows them in a table of Evennia's, which takes a second for so much.
"""
TOO_LARGE: Final = (
    f"This nick was not kept: each half has at most {MOST_WRITTEN} characters and {MOST_MARKS}"
    " marks such as $1 and *, and all nicks together have a limit, too (see nicks, nick/delete)."
)

_MARK: Final = re.compile(r"[$*?\[|]")
_ARGUMENT: Final = re.compile(r"\$([1-9][0-9]?)")
_PARTS: Final = re.compile(r"\$[1-9][0-9]?|\[!?\]?[^\]]*\]|\s+|.", re.DOTALL)
_SHELL: Final = "(?s:"
"""How the regular expression begins that Evennia makes of what a player wrote."""


class TooMuchWorkError(Exception):
    """The nicks of a player cannot be tried in the steps that one line is given."""


def replace_nicks(
    handler: NickHandler,
    line: str,
    categories: Any = ("inputline", "channel"),
    include_account: bool = True,
) -> str:
    """Return the line that the first matching nick makes, or `line` as it is.

    An empty line is returned, and the player told why, if it cannot be made.
    """
    owners = [handler]
    if include_account and handler.obj.has_account:
        owners.append(handler.obj.account.nicks)
    nicks = {
        nick.key: nick.value
        for owner in owners
        for category in make_iter(categories)
        for nick in make_iter(owner.get(category=category, return_obj=True))
        if nick and nick.key
    }
    most = settings.MAX_CHAR_LIMIT or LONGEST
    typed = _Line(line.rstrip("\r\n"))
    try:
        for regex, _, pattern, replacement in nicks.values():
            found = typed.arguments(regex, pattern)
            if found is None:
                continue
            texts = _ARGUMENT.split(replacement)
            texts[1::2] = [found.get(number, "") for number in texts[1::2]]
            if sum(map(len, texts)) <= most:
                return clean_line("".join(texts))
            handler.obj.msg(settings.MAX_CHAR_LIMIT_WARNING)
            return ""
    except TooMuchWorkError:
        handler.obj.msg(TOO_MUCH_WORK)
        return ""
    return line


def _first(places: int) -> int:
    return (places & -places).bit_length() - 1


def add_nick(
    handler: NickHandler,
    pattern: str,
    replacement: str,
    category: str = "inputline",
    pattern_is_regex: bool = False,
    **options: Any,
) -> None:
    """Keep a nick as Evennia does, unless it is too large; its player is told so."""
    halves = (pattern, replacement)
    kept = sum(_weight(*nick.value[2:]) for nick in handler.all() if nick.key != pattern)
    if (
        any(len(half) > MOST_WRITTEN or len(_MARK.findall(half)) > MOST_MARKS for half in halves)
        or kept + _weight(*halves) > MOST_KEPT
    ):
        handler.obj.msg(TOO_LARGE)
        if pattern_is_regex:  # an alias of a channel, whose command handles no error
            return
        raise NickTemplateInvalid(TOO_LARGE)
    made = initialize_nick_templates(*halves, pattern_is_regex=pattern_is_regex)
    AttributeHandler.add(handler, pattern, (*made, *halves), category=category, **options)


def _weight(pattern: str, replacement: str) -> int:
    written = pattern + replacement
    return 40 + len(written) + 20 * len(_MARK.findall(written))


class _Line:
    """A typed line that nicks are tried on.

    A set of places in it is one number: bit n is the place before character n.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._steps = MOST_STEPS
        self._places: dict[str, int] = {}
        for place, character in enumerate(map(str.lower, text)):
            self._places[character] = self._places.get(character, 0) | 1 << place
        self._letters = tuple(self._places)
        self._blanks = self._of_set(r"\s")

    def arguments(self, regex: str, pattern: str) -> dict[str, str] | None:
        """Return what stands for each `$N` of a nick, by N, or None if the nick does not match."""
        if not regex.startswith(_SHELL):  # code wrote it, such as Evennia's alias of a channel
            self._spend(len(self._letters))
            found = re.match(regex, self._text, re.IGNORECASE | re.DOTALL)
            named = found.groupdict() if found else {}
            return (
                {n.removeprefix("arg"): text or "" for n, text in named.items()} if found else None
            )
        parts = _PARTS.findall(pattern)
        reached = [1]
        for part in parts:
            reached.append(self._after(part, reached[-1]))
            if not reached[-1]:
                return None
        return self._spans(parts, reached) if reached[-1] >> len(self._text) else None

    def _after(self, part: str, places: int) -> int:
        """Return the places that a part of a nick ends at if it begins at one of `places`."""
        self._spend(1)
        every = (2 << len(self._text)) - 1
        if _ARGUMENT.fullmatch(part):
            return every & -(2 << _first(places))
        if part == "*":
            return every & -(1 << _first(places))
        if part.isspace():
            begun = (places & self._blanks) << 1
            # The carry of the sum runs through each run of blanks.
            return (((begun & self._blanks) + self._blanks) ^ self._blanks) | begun
        if part == "?":
            return (places << 1) & every
        if len(part) > 1 and part not in self._places:
            self._places[part] = self._of_set(translate(part))
        return (places & self._places.get(part if len(part) > 1 else part.lower(), 0)) << 1

    def _spans(self, parts: Sequence[str], reached: Sequence[int]) -> dict[str, str]:
        """Return the text of each `$N`: as short as possible, the first ones before the last."""
        found: dict[str, str] = {}
        end = len(self._text)
        before = ["", *parts]
        for part, last, places in zip(parts[::-1], before[-2::-1], reached[-2::-1], strict=True):
            start = end - 1
            if part.isspace():
                run = len(self._text[:end].rstrip())
                start = _first(places >> run << run)
            elif part == "*" or _ARGUMENT.fullmatch(part):
                start = _first(places)
                if last.isspace():  # it takes all blanks that there are
                    start = max(start, min(end - len(self._text[start:end].lstrip()), end - 1))
                found[part.lstrip("$")] = self._text[start:end]
            end = start
        return found

    def _of_set(self, regex: str) -> int:
        self._spend(len(self._letters))
        is_in = re.compile(regex, re.IGNORECASE | re.DOTALL).match
        return sum(self._places[one] for one in self._letters if is_in(one))

    def _spend(self, steps: int) -> None:
        self._steps -= steps
        if self._steps < 0:
            raise TooMuchWorkError


def bound_nicks() -> None:
    """Have Evennia keep and replace nicks with the functions here; it has no setting for that."""
    NickHandler.add = add_nick
    NickHandler.nickreplace = replace_nicks
