"""The person who views an NPC's data, and the marks that replace what they may not see."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from evennia_ai.engine.knowledge.pages.page import Page, PageName

WHISPERED: Final = "[said in private; for Admins]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """The rights of a person who views an NPC's data, as functions."""

    may_view: Callable[[str], bool]
    """True if the person passes this lock string for viewing something."""
    reads_whispers: bool
    """True if the person may read private conversations of the NPC."""
    note_reading: Callable[[str], None]
    """Writes to the security log that the person read something private. The text says what."""
    help_page: Callable[[str, PageName], Page | None]
    """Returns the page with this name of the game's help, in a base with this key."""
    as_recorded: Callable[[str], str]
    """Returns the result of a tool in the form in which its record stores it."""


def withheld_mark(what: str) -> str:
    """Return the mark that replaces something hidden, with the reason."""
    return f"[withheld: {what}; its view lock hides it from you]"
