"""Who looks at what an NPC was told, and the lines that stand where they may not see it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from evennia_ai.engine.knowledge.pages.page import Page, PageName

WHISPERED: Final = "[said in private; for Admins]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """Somebody who looks at what an NPC was told, as what the game answers about them."""

    may_view: Callable[[str], bool]
    """True if a lock string lets them view what it is on."""
    hears_whispers: bool
    """True if they may read what was said to the NPC in private, and what it answered there."""
    note_reading: Callable[[str], None]
    """Log that they read something that was said in private; the text says what."""
    help_page: Callable[[str, PageName], Page | None]
    """The page of this name in a base that is the game's help."""
    as_recorded: Callable[[str], str]
    """What a tool gave back as the record of it has it."""


def withheld(what: str) -> str:
    """The line that stands where something may not be seen: that it is so, and why."""
    return f"[withheld: {what}; its view lock hides it from you]"
