"""The kept cases of the game, read off the reactor and checked in a bounded time.

After an edit, the command says how many cases get another prompt (`note_edit`).
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from evennia.utils import logger
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread

from evennia_ai.npc.senses.presence import find_again
from evennia_ai.npc.views.kept import CheckedCase, KeptChecker, ReadCase, read_cases
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.authored.cards import CARDS
from evennia_ai.store.authored.components import COMPONENTS
from evennia_ai.store.authored.lorebooks import LOREBOOKS
from evennia_ai.store.authored.notes import NOTES
from evennia_ai.store.authored.presets import PRESETS
from evennia_ai.store.core.snapshots import changes_made

MOST_CASES: Final = 50
"""The most cases that the game checks at once. `evennia-ai check` has no limit."""
MOST_SECONDS: Final = 0.3
"""After so long the game checks no further case, because everybody waits for its thread."""
_AUTHORED: Final = (CARDS, COMPONENTS, LOREBOOKS, NOTES, PRESETS)
_KINDS: Final = ("contexts", *(kind.state for kind in _AUTHORED))

in_thread: Callable[..., "Deferred[Any]"] = deferToThread
"""Calls a function in another thread. Tests replace it."""

_differing: set[str] = set()
"""The names of the cases that differed when they were last checked after an edit."""


def edits_made() -> int:
    """Return how many edits of components, cards, books, notes and presets were made so far."""
    return changes_made(_KINDS)


def read_kept() -> "Deferred[tuple[list[ReadCase], int]]":
    """Read the cases in the folder of the game. Fires with them and the number of files."""
    done: Deferred[tuple[list[ReadCase], int]] = in_thread(
        read_cases, conf().kept_folder, most=MOST_CASES
    )
    return done


def checked(cases: Sequence[ReadCase]) -> list[CheckedCase]:
    """Check cases until the time is over; the result may be shorter than `cases`."""
    checker, begun = KeptChecker(find_again), time.monotonic()
    found: list[CheckedCase] = []
    for path, case in cases:
        if time.monotonic() - begun > MOST_SECONDS:
            break
        found.append(checker.check_case(path, case))
    return found


def note_edit(before: int, say: Callable[[str], None]) -> None:
    """If an edit was made, say how many kept cases get another prompt because of it.

    Nothing is said if there are more cases than the game checks at once.

    Args:
        before: The result of `edits_made` before the command ran.
    """
    if edits_made() == before or not conf().kept_folder.is_dir():
        return
    read_kept().addCallback(_say_differing, say).addErrback(logger.log_trace)


def _say_differing(read: tuple[list[ReadCase], int], say: Callable[[str], None]) -> None:
    cases, total = read
    found = checked(cases)
    if len(found) < total:
        return
    differing = {one.name for one in found if one.state == "differs"}
    new = len(differing - _differing)
    _differing.clear()
    _differing.update(differing)
    if new:
        verb = "answer gets" if new == 1 else "answers get"
        say(f"{new} kept {verb} another prompt: ai/kept")
