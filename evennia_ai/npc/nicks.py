"""Nicks with limited cost and a clean result: no links, invisible characters or long lines.

A nick is a player's shorthand for a line, and the player writes both halves of it. Evennia turns
the pattern into a regular expression, which may take forever ("$1a$2a$3a$4a"). It turns the
replacement into a Python format, which may contain "{arg1:>99999}". It neither limits nor cleans
the result, so `nick q $1 $2 = say |$1look|$2...` made links.

This module compares a nick part by part, and tries each part at all places of the line at once. The
work for one line is limited for all nicks of a player together. Nicks are also limited when they
are stored, because the command `nicks` shows all of them in a table.
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
"""The most parts of nicks that are tried for one line.

A set such as [a-z] counts once for each letter.
"""
TOO_MUCH_WORK: Final = (
    "Your nicks are too many or too long for this line, so it was not carried out."
)
LONGEST: Final = 6_000
"""The most characters of a line that a nick makes, in a game without a limit for typed lines."""

MOST_WRITTEN: Final = 250
"""The most characters of each half of a nick."""
MOST_MARKS: Final = 6
"""The most marks such as $1, * and colours in each half of a nick."""
MOST_KEPT: Final = 6_000
"""The most weight that a player's nicks may have together.

A nick weighs 40, plus its characters, plus 20 for each mark. The command `nicks` takes about a
second to show a table of this weight.
"""
TOO_LARGE: Final = (
    f"This nick was not kept: each half has at most {MOST_WRITTEN} characters and {MOST_MARKS}"
    " marks such as $1 and *, and all nicks together have a limit, too (see nicks, nick/delete)."
)

_MARK: Final = re.compile(r"[$*?\[|]")
_ARGUMENT: Final = re.compile(r"\$([1-9][0-9]?)")
_PARTS: Final = re.compile(r"\$[1-9][0-9]?|\[!?\]?[^\]]*\]|\s+|.", re.DOTALL)
_SHELL: Final = "(?s:"
"""The regular expression that Evennia wraps around a player's pattern."""


class TooMuchWorkError(Exception):
    """The error if the nicks of a player need more steps than one line is allowed."""


def replace_nicks(
    handler: NickHandler,
    line: str,
    categories: Any = ("inputline", "channel"),
    include_account: bool = True,
) -> str:
    """Return the line that the first matching nick makes; `line` itself if none matches.

    If the new line is not allowed, the player is told why, and the result is "".
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
    """Store a nick as Evennia does. If it is too large, tell the player and do not store it."""
    halves = (pattern, replacement)
    kept = sum(_weight(*nick.value[2:]) for nick in handler.all() if nick.key != pattern)
    if (
        any(len(half) > MOST_WRITTEN or len(_MARK.findall(half)) > MOST_MARKS for half in halves)
        or kept + _weight(*halves) > MOST_KEPT
    ):
        handler.obj.msg(TOO_LARGE)
        # An alias of a channel is stored here too. Its command does not catch an error.
        if pattern_is_regex:
            return
        raise NickTemplateInvalid(TOO_LARGE)
    made = initialize_nick_templates(*halves, pattern_is_regex=pattern_is_regex)
    AttributeHandler.add(handler, pattern, (*made, *halves), category=category, **options)


def _weight(pattern: str, replacement: str) -> int:
    written = pattern + replacement
    return 40 + len(written) + 20 * len(_MARK.findall(written))


class _Line:
    """A typed line that is compared with nicks.

    A set of places in the line is stored as one number: bit n stands for the place before character
    n.
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
        """Return the text for each `$N` of a nick, by N; None if the nick does not match."""
        if not regex.startswith(_SHELL):  # made by code, such as Evennia's aliases of channels
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
        """Return the places where a part of a nick can end, if it begins at one of `places`."""
        self._spend(1)
        every = (2 << len(self._text)) - 1
        if _ARGUMENT.fullmatch(part):
            return every & -(2 << _first(places))
        if part == "*":
            return every & -(1 << _first(places))
        if part.isspace():
            begun = (places & self._blanks) << 1
            # The addition carries a bit to the end of each run of blanks.
            return (((begun & self._blanks) + self._blanks) ^ self._blanks) | begun
        if part == "?":
            return (places << 1) & every
        if len(part) > 1 and part not in self._places:
            self._places[part] = self._of_set(translate(part))
        return (places & self._places.get(part if len(part) > 1 else part.lower(), 0)) << 1

    def _spans(self, parts: Sequence[str], reached: Sequence[int]) -> dict[str, str]:
        """Return the text for each `$N`. Earlier ones are as short as possible."""
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
                if last.isspace():  # a blank of the pattern matches all blanks of the line
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
    """Replace Evennia's functions for nicks by the functions of this module.

    There is no setting for that.
    """
    NickHandler.add = add_nick
    NickHandler.nickreplace = replace_nicks
