"""Plain text: removes invisible characters and markup from lines and names."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from django.conf import settings
from evennia.utils.ansi import strip_ansi

from evennia_ai.engine.prompt.names import bare_name

MAX_NAME: Final = 80
MAX_RAW: Final = 20_000
"""The most characters of a text with markup that are read. The rest is dropped."""

# The zero-width joiners. Words and emoji need them; all other format characters are removed.
_KEPT_FORMAT: Final = "\u200c\u200d"
_TAB: Final = 4
"""How many blanks replace a tab."""
_DROPPED: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
# Invisible letters and marks. The variation selectors for emoji are not among them.
_SHAPELESS: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0d\uffa0\U000e0100-\U000e01ef]"
)
# A joiner at the start of a line, or after a Latin letter or a sign, has no effect.
_IDLE_JOINER: Final = re.compile("(?:(?<=[\x20-\u024f])|^)[\u200c\u200d]+", re.MULTILINE)
_MARKS: Final = frozenset({"Mn", "Me"})
MOST_MARKS: Final = 6
"""The most accents on one letter; no script needs more."""
# A link is `|lc<command>|lt<text>|le` or `|lu<address>|lt<text>|le`. Evennia looks for links after
# it has replaced `||` by `|` and perhaps removed colour codes, so `|||nl|rc` can also begin one.
_COLOUR: Final = r"\|\[?(?:#[0-9a-fA-F]{6}|#[0-9a-fA-F]{3}|![a-zA-Z]|=[a-z]|[0-5]{3}|[^\s|l])"
_MARK: Final = rf"\|(?:\|(?:{_COLOUR})++)?l(?:{_COLOUR})*+"
_INNER: Final = rf"(?:(?!{_MARK}[cute]).)*+"
_LINK: Final = re.compile(rf"{_MARK}[cu]{_INNER}{_MARK}t({_INNER}){_MARK}e", re.DOTALL)
_LINK_MARK: Final = re.compile(rf"{_MARK}[cute]")
_MARK_BEGUN: Final = re.compile(rf"\|l?(?:{_COLOUR})*\Z")
_BLANKS: Final = str.maketrans("\t\u2800", "  ")  # a tab, and the empty braille letter
LINE_BREAK: Final = re.compile("\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")


def strip_invisible(text: str) -> str:
    """Return `text` without invisible characters: controls, directions, surrogates, fillers.

    At most `MOST_MARKS` accents stay on one letter.
    """
    if text.isascii() and text.isprintable():
        return text
    seen = _SHAPELESS.sub("", "".join(filter(_is_seen, text)))
    return "".join(_without_piles(_IDLE_JOINER.sub("", seen)))


def one_line(text: str) -> str:
    """Return `text` on one line, with single blanks and without invisible characters."""
    blanks = LINE_BREAK.sub(" ", text).translate(_BLANKS)
    return " ".join(strip_invisible(blanks).split())


def strip_markup(text: str) -> str:
    """Return the first `MAX_RAW` characters of `text` without colour codes and links.

    This function removes links in one pass. Evennia would search the whole rest of the text for the
    end of each `|lc` and `|lt`. A text with 6,000 characters of them would block the game for
    seconds.
    """
    return str(strip_ansi(without_links(text[:MAX_RAW]).replace("{", "{{")))


def without_links(text: str) -> str:
    """Replace each link by its visible text, and remove the marks of broken links."""
    return _LINK_MARK.sub(" ", _LINK.sub(r"\1", text))


def clean_line(typed: str) -> str:
    """Return a typed text without invisible characters and links, with its line breaks.

    Links stay if the game lets its players make links.
    """
    seen = "\n".join(map(strip_invisible, typed.expandtabs(_TAB).split("\n")))
    # Links come last, because an invisible character may split the mark of a link.
    return without_links(seen) if settings.MXP_OUTGOING_ONLY else seen


def with_whole_links(text: str) -> str:
    """Remove the marks of broken links, and keep whole links.

    Evennia finds whole links in one pass. For each mark without its partner it searches the rest of
    the text again. The time for that grows with the cube of the number of such marks.
    """
    kept, at = [], 0
    for link in _LINK.finditer(text):
        before = _LINK_MARK.sub(" ", text[at : link.start()])
        # For clients without links, Evennia leaves only the link's text, which could complete the
        # start of a mark before it.
        kept += [before, " " if _MARK_BEGUN.search(before[-60:]) else "", link[0]]
        at = link.end()
    return "".join([*kept, _LINK_MARK.sub(" ", text[at:])])


@lru_cache(maxsize=4096)
def plain_name(name: str) -> str:
    """Return a name as one line without markup, "someone" if nothing is left."""
    return one_line(strip_markup(name))[:MAX_NAME] or "someone"


@lru_cache(maxsize=4096)
def person_name(name: str) -> str:
    """Return a speaker's name without characters that could end a label or look like its number."""
    return bare_name(plain_name(name))


def _without_piles(text: str) -> Iterator[str]:
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.category(character) in _MARKS else 0
        if marks <= MOST_MARKS:
            yield character


def _is_seen(character: str) -> bool:
    return character in _KEPT_FORMAT or unicodedata.category(character) not in _DROPPED
