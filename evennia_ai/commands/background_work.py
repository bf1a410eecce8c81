"""Work on the files of cards: beside the game, and told of while it lasts.

The reactor's thread never waits for a file. What runs in the other thread gets values and gives
values: no object of the game, no database. A switch goes on in the reactor's thread when the work
is done and writes there, in one transaction: what a reload cuts off has written nothing.
"""

from collections.abc import Callable, Generator
from functools import wraps
from typing import Any, Final, TypeVar

from evennia.utils import logger
from twisted.internet.defer import Deferred, DeferredLock, inlineCallbacks
from twisted.internet.task import LoopingCall
from twisted.internet.threads import deferToThread
from twisted.python.failure import Failure

from evennia_ai.commands.base import CommandError, StrictCommand
from evennia_ai.errors import EvenniaAIError, FormatError
from evennia_ai.foreign.documents import Progress
from evennia_ai.game.runtime import runtime
from evennia_ai.minds.parse_cache import read_ahead
from evennia_ai.store.authored.cards import StoredCard

T = TypeVar("T")
Steps = Generator[Deferred[Any], Any, None]

REPEAT_SECONDS: Final = 2.0
"""How often a builder is told how far the work is."""

in_thread: Callable[..., Deferred[Any]] = deferToThread
"""What has a function called in another thread; tests put another one here."""

# Files are big and reading them takes processor time: one at a time, and one for each builder.
_one_file: Final = DeferredLock()
_at_work: Final[dict[int, str]] = {}


class CardWork(StrictCommand):
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

    def read_ahead(self, card: StoredCard) -> None:
        """Have a card that changed parsed beside the game, before an NPC needs it."""
        done = _one_file.run(in_thread, read_ahead, card)
        done.addErrback(lambda failure: failure.trap(FormatError))  # its turns tell of it

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

    def failed(self, failure: Failure) -> None:
        """Tell the builder why a switch that waited for work did nothing."""
        if isinstance(failure.value, EvenniaAIError):
            self.say_error(failure.value)
            return
        logger.log_err(f"evennia_ai: {self.key} failed\n{failure.getTraceback()}")
        self.say("That went wrong; the server's log says why.")


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


def waits(switch: Callable[[Any], Steps]) -> Callable[[Any], None]:
    """A switch that waits for work, as one that StrictCommand can call.

    What it raises becomes a line, as what any switch raises.
    """
    run = inlineCallbacks(switch)

    @wraps(switch)
    def started(command: CardWork) -> None:
        run(command).addErrback(command.failed)

    return started
