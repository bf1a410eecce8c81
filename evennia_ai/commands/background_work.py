"""Work on files of cards and presets: beside the game, and told of while it lasts.

The reactor's thread never waits for a file. What runs in the other thread gets values and gives
values: no object of the game, no database. A switch goes on in the reactor's thread when the work
is done and writes there, in one transaction: what a reload cuts off has written nothing.
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
"""What has a function called in another thread; tests put another one here."""

# Files are big and reading them takes processor time: one at a time, and one for each builder.
_one_file: Final = DeferredLock()
_at_work: Final[dict[int, str]] = {}


class BackgroundWork(StrictCommand):
    """A command whose switches may wait for work in another thread."""

    def worked(self, doing: str, work: Callable[[Progress], T]) -> "Deferred[T]":
        """What `work` gives back; until then the builder reads every two seconds how far it is.

        `doing` says what is done, as in "Reading oren.png". CommandError: something of this
        builder's is still being done.
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
        """Have something that changed read beside the game, before an NPC needs it."""
        done = _one_file.run(in_thread, work, stored)
        return done.addErrback(lambda failure: failure.trap(FormatError))  # its turns tell of it

    def _telling(self, doing: str, stage: "Stage") -> LoopingCall:
        """Tells how far the work is, until it is stopped or the builder has left."""

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
    """The same for what changes cards."""

    @classmethod
    def of(cls, caller: Any) -> "CardWork":
        """Work for `caller` that no command is being done for any more, as what an editor saves."""
        work = cls()
        work.caller = caller
        return work

    def read_ahead(self, card: StoredCard) -> "Deferred[Any]":
        """Have a card that changed parsed beside the game, before an NPC needs it."""
        return self.ahead(read_ahead, card)

    @inlineCallbacks
    def edited(
        self, card: StoredCard, change: Callable[[Card], Card], *, by: Actor
    ) -> Generator[Any, Any, tuple[StoredCard, Card]]:
        """The card in force after a change of it, and what it said before; fires once it is read.

        `change` runs in the other thread. The same object where it says so already. Errors are
        those of `change` and of `store.authored.cards.edit_card`.
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
    """How far work in another thread is: written there, read in the reactor's."""

    def __init__(self) -> None:
        self._reached: tuple[str, int, int] | None = None

    def reached(self, what: str, done: int, total: int) -> None:
        """Note what is being done now; one assignment, which threads may share."""
        self._reached = (what, done, total)

    def words(self) -> str:
        """How far it is, for a line."""
        if self._reached is None:
            return "waiting for its turn"
        what, done, total = self._reached
        return f"{what}, {done:,} of {total:,}" if total > 1 else what


def waits(switch: Callable[..., Steps]) -> Callable[..., None]:
    """A switch that waits for work, as one that StrictCommand can call.

    What it raises becomes a line, as what any switch raises.
    """
    run = inlineCallbacks(switch)

    @wraps(switch)
    def started(command: BackgroundWork, *given: Any) -> None:
        run(command, *given).addErrback(command.failed)

    return started
