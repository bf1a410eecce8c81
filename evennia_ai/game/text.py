"""Plain text: what is not seen is taken out, names and lines become plain."""

import re
import unicodedata
from functools import lru_cache
from typing import Final

from evennia.utils.ansi import strip_ansi

MAX_NAME: Final = 80
MAX_RAW: Final = 20_000
"""Characters of a text, markup among them, that are looked at."""

# Joiners that spell words and emoji; every other format character can go unseen.
_KEPT_FORMAT: Final = "\u200c\u200d"
_DROPPED: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
# A link `|lc<command>|lt<text>|le` or `|lu<address>|lt<text>|le`, and what is left of broken ones.
_INNER: Final = r"(?:(?!\|l[cute]).)*"
_LINK: Final = re.compile(rf"\|l[cu]{_INNER}\|lt({_INNER})\|le", re.DOTALL)
_LINK_MARK: Final = re.compile(r"\|l[cute]")
LINE_BREAK: Final = re.compile("\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")


def visible(text: str) -> str:
    """`text` without characters that are not seen: control, direction, lone surrogates."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(character for character in text if _is_seen(character))


def one_line(text: str) -> str:
    """`text` on one line, with single blanks, without invisible characters."""
    return " ".join(visible(LINE_BREAK.sub(" ", text).replace("\t", " ")).split())


def unmarked(text: str) -> str:
    """The start of `text`, `MAX_RAW` characters at most, without colour codes and link markup.

    Links are taken out here, in one walk: Evennia's own way looks for the end of each `|lc` and
    each `|lt` through the whole text, and 6,000 characters of them would hold the game for seconds.
    """
    bare = _LINK_MARK.sub(" ", _LINK.sub(r"\1", text[:MAX_RAW]))
    return str(strip_ansi(bare.replace("{", "{{")))


@lru_cache(maxsize=4096)
def plain_name(name: str) -> str:
    """A name for prompts and records: one line, no markup."""
    return one_line(unmarked(name))[:MAX_NAME] or "someone"


def _is_seen(character: str) -> bool:
    return character in _KEPT_FORMAT or unicodedata.category(character) not in _DROPPED
