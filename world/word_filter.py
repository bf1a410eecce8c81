"""An example of a game's own filter: a list of words. It is switched off (server/conf/settings.py).

A word list finds few of the things that a game does not want, and some that it does. Replace it by
your own rules, or ask a service for moderation: a function may return a Deferred or a coroutine.
"""

import re
from typing import Final

from evennia_ai.npc.filtering import FilteredWords

WORDS: Final = ("password", "credit card")
"""Whole words or phrases, in any case."""
_FOUND: Final = re.compile(rf"\b(?:{'|'.join(map(re.escape, WORDS))})\b", re.IGNORECASE)


def heard(words: FilteredWords) -> str:
    """Return why an NPC does not hear what a player says, "" if it does."""
    return _reason(words.text)


def said(words: FilteredWords) -> str:
    """Return why an NPC does not say what a model answered, "" if it does."""
    return _reason(words.text)


def _reason(text: str) -> str:
    found = _FOUND.search(text)
    return f"the word '{found[0].lower()}' is on the list" if found else ""
