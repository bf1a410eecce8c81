"""The kept cases of the game, read off the reactor and checked in a bounded time.

After an edit, the command says how many cases get another prompt (`note_edit`). Before a revert,
which asks first, it says how many would (`foresee_revert`).
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from evennia.utils import logger
from twisted.internet.defer import Deferred
from twisted.internet.task import coiterate
from twisted.internet.threads import deferToThread
from twisted.python.failure import Failure

from evennia_ai.npc.mind.kept import MOST_CASES, ForeseenEdit, check_each, foresee_edit
from evennia_ai.npc.views.kept import CheckedCase, ReadCase, read_cases
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.authored.cards import CARDS
from evennia_ai.store.authored.components import COMPONENTS
from evennia_ai.store.authored.lorebooks import LOREBOOKS
from evennia_ai.store.authored.notes import NOTES
from evennia_ai.store.authored.presets import PRESETS
from evennia_ai.store.authored.regex_scripts import SCRIPTS
from evennia_ai.store.core.snapshots import changes_made

_AUTHORED: Final = (CARDS, COMPONENTS, LOREBOOKS, NOTES, PRESETS, SCRIPTS)
_KINDS: Final = ("contexts", *(kind.state for kind in _AUTHORED))

in_thread: Callable[..., "Deferred[Any]"] = deferToThread
"""Calls a function in another thread. Tests replace it."""
in_steps: Callable[[Iterator[None]], "Deferred[Any]"] = coiterate
"""Runs an iterator between other work of the reactor. Tests replace it."""

_differing: set[str] = set()
"""The names of the cases that differed when they were last checked after an edit."""


def edits_made() -> int:
    """Return how many edits of texts and scripts of builders were made so far."""
    return changes_made(_KINDS)


def check_kept() -> "Deferred[tuple[list[CheckedCase], int]]":
    """Read and check the cases in the folder of the game.

    The cases are composed one by one, so that nobody waits for all of them. Fires with the checked
    cases, which may be fewer than there are, and the number of files.
    """
    found: list[CheckedCase] = []

    def check_in_steps(read: tuple[list[ReadCase], int]) -> "Deferred[tuple[Any, int]]":
        cases, total = read
        return in_steps(check_each(cases, found)).addCallback(lambda _: (found, total))

    done: Deferred[Any] = in_thread(read_cases, conf().kept_folder, most=MOST_CASES)
    return done.addCallback(check_in_steps)


def note_edit(before: int, say: Callable[[str], None]) -> None:
    """If an edit was made, say how many kept cases get another prompt because of it.

    Nothing is said if there are more cases than the game checks at once.

    Args:
        before: The result of `edits_made` before the command ran.
    """
    if edits_made() == before or not conf().kept_folder.is_dir():
        return
    check_kept().addCallback(_say_differing, say).addErrback(_log_failure)


def foresee_revert(edit: Callable[[], object], say: Callable[[str], None]) -> None:
    """Say how many kept cases an edit would give another prompt. The edit is not made.

    Another thread reads and composes the cases, so the sentence may come a moment later.
    """
    if conf().kept_folder.is_dir():
        done: Deferred[Any] = in_thread(foresee_edit, edit)
        done.addCallback(_say_foreseen, say).addErrback(_log_failure)


def _say_foreseen(found: ForeseenEdit, say: Callable[[str], None]) -> None:
    if count := len(found.cases):
        say(f"{count} kept {'answer' if count == 1 else 'answers'} would get another prompt.")


def _log_failure(failure: Failure) -> None:
    logger.log_err(f"evennia_ai: kept cases were not checked\n{failure.getTraceback()}")


def _say_differing(checked: tuple[list[CheckedCase], int], say: Callable[[str], None]) -> None:
    found, total = checked
    if len(found) < total:
        return
    differing = {one.name for one in found if one.state == "differs"}
    new = len(differing - _differing)
    _differing.clear()
    _differing.update(differing)
    if new:
        verb = "answer gets" if new == 1 else "answers get"
        say(f"{new} kept {verb} another prompt: ai/kept")
