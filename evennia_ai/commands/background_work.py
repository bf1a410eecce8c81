"""Reading and writing card and preset files in another thread, with progress for the builder.

The reactor's thread never waits for a file. The other thread gets and returns plain values: no
objects of the game, no database. When the work is done, the switch continues in the reactor's
thread and writes in one transaction. A server reload before that loses only unwritten work.
"""

import time
from collections.abc import Callable, Generator
from functools import wraps
from typing import Any, Final, TypeVar

from evennia.utils import logger
from twisted.internet.defer import Deferred, DeferredLock, inlineCallbacks
from twisted.internet.task import LoopingCall
from twisted.internet.threads import deferToThread

from evennia_ai.commands.base import CommandError, StrictCommand
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import Progress
from evennia_ai.formats.cards.card import Card
from evennia_ai.formats.cards.writing import keeps_greetings
from evennia_ai.npc.runtime import runtime
from evennia_ai.npc.views.parse_cache import read_ahead
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.authored.card_files import edited_card_file
from evennia_ai.store.authored.cards import CARDS, StoredCard, edit_card

S = TypeVar("S")
T = TypeVar("T")
Steps = Generator[Deferred[Any], Any, None]

REPEAT_SECONDS: Final = 2.0
"""How often a builder is told how far the work is."""

in_thread: Callable[..., Deferred[Any]] = deferToThread
"""Calls a function in another thread. Tests replace it."""

# Files are big and reading them takes processor time. So only one file is read at a time, and each
# builder may have only one file waiting.
_one_file: Final = DeferredLock()
_at_work: Final[dict[int, str]] = {}


class BackgroundWork(StrictCommand):
    """A command whose switches may wait for work in another thread."""

    def worked(self, doing: str, work: Callable[[Progress], T]) -> "Deferred[T]":
        """Run `work` in another thread. Fires with its result.

        Until then the builder reads every two seconds how far the work is. `doing` says what is
        done, such as "Reading oren.png".

        Raises:
            CommandError: Earlier work of this builder is not done yet.
        """
        who = self.caller.id
        if who in _at_work:
            raise CommandError(
                f"{_at_work[who]} is not done yet; wait for it, then type this again."
                " Nothing was changed."
            )
        stage = Stage()
        telling = self._telling(doing, stage)
        _at_work[who] = doing

        def ended(result: Any) -> Any:
            del _at_work[who]
            if telling.running:
                telling.stop()
            return result

        done: Deferred[T] = _one_file.run(in_thread, work, stage.reached)
        return done.addBoth(ended)

    def ahead(self, work: Callable[[S], Any], stored: S) -> "Deferred[Any]":
        """Read something that changed in another thread, before an NPC needs it."""
        done = _one_file.run(in_thread, work, stored)
        # An unreadable file is reported by the turns that use it.
        return done.addErrback(lambda failure: failure.trap(FormatError))

    def _telling(self, doing: str, stage: "Stage") -> LoopingCall:
        """Return a loop that reports progress until it is stopped or the builder has left."""

        def tell() -> None:
            if self.session is not None and not self.session.logged_in:
                telling.stop()
                return
            self.say(f"{doing}: {stage.words()}...")

        telling = LoopingCall(tell)
        telling.clock = runtime().clock
        telling.start(REPEAT_SECONDS, now=False).addErrback(logger.log_trace)
        return telling


class CardWork(BackgroundWork):
    """A command that reads and writes cards in another thread."""

    @classmethod
    def of(cls, caller: Any) -> "CardWork":
        """Return work for `caller` outside of a command, for example when the line editor saves."""
        work = cls()
        work.caller = caller
        return work

    def read_ahead(self, card: StoredCard) -> "Deferred[Any]":
        """Parse a card that changed in another thread, before an NPC needs it."""
        return self.ahead(read_ahead, card)

    @inlineCallbacks
    def edited(
        self, card: StoredCard, change: Callable[[Card], Card], *, by: Actor
    ) -> Generator[Any, Any, tuple[StoredCard, Card]]:
        """Change the current card. Fires with the stored card and the card as it was before.

        `change` runs in the other thread. If it changes nothing, the same stored card is returned.
        Errors are those of `change` and of `store.authored.cards.edit_card`.
        """
        file = CARDS.revision_file(card.name, card.revision)
        limits, now = conf().card_limits, int(time.time())
        before, after, made = yield self.worked(
            f"Writing card {card.name}",
            lambda _progress: edited_card_file(file, change, modified_at=now, limits=limits),
        )
        if made is None:
            return card, before
        stored = edit_card(card, made, keeps_greetings=keeps_greetings(before, after), by=by)
        yield self.read_ahead(stored)
        return stored, before


class Stage:
    """Progress of work in another thread: that thread writes it, the reactor's thread reads it."""

    def __init__(self) -> None:
        self._reached: tuple[str, int, int] | None = None

    def reached(self, what: str, done: int, total: int) -> None:
        """Note what is being done now. A single assignment is safe between threads."""
        self._reached = (what, done, total)

    def words(self) -> str:
        """Return the progress in words."""
        if self._reached is None:
            return "waiting for its turn"
        what, done, total = self._reached
        return f"{what}, {done:,} of {total:,}" if total > 1 else what


def waits(switch: Callable[..., Steps]) -> Callable[..., None]:
    """Make a switch of a generator that yields while it waits for work in another thread.

    An error that it raises is shown as one line, as for any switch.
    """
    run = inlineCallbacks(switch)

    @wraps(switch)
    def started(command: BackgroundWork, *given: Any) -> None:
        run(command, *given).addErrback(command.failed)

    return started
