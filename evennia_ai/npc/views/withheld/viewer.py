"""The viewer of an NPC's data, and the marks that replace what they may not see."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from evennia_ai.engine.knowledge.pages.page import Page, PageName

WHISPERED: Final = "[said in private; for Admins]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """A person who looks at what an NPC was told, as functions that answer about them."""

    may_view: Callable[[str], bool]
    """True if the lock string allows them to view the thing that has it."""
    hears_whispers: bool
    """True if they may read private conversations of the NPC."""
    note_reading: Callable[[str], None]
    """Logs that they read something that was said in private. The text says what."""
    help_page: Callable[[str, PageName], Page | None]
    """Returns the page of this name in a base that is the game's help."""
    as_recorded: Callable[[str], str]
    """Returns a tool's result as its record stores it."""


def withheld_mark(what: str) -> str:
    """Return the mark that replaces something hidden, with the reason."""
    return f"[withheld: {what}; its view lock hides it from you]"
