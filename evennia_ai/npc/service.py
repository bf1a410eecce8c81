"""Start and stop: what happens once in a server process.

The app adds this module to Evennia's `AT_SERVER_STARTSTOP_MODULE` (`evennia_ai.apps`), so a game
needs no line for it. Evennia calls the functions here.

Python's full garbage collection visits every object, which takes a tenth of a second or more with
hundreds of NPCs. Therefore new objects are collected as soon as there are some thousand of them,
and the survivors are frozen, so that later collections skip them. A full collection, frozen objects
included, runs once a day, and when memory has grown much beyond the messages that are cached on
purpose. It waits for a moment in which no NPC is answering, unless memory has grown too much.
"""

import gc
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from django.db import DatabaseError
from evennia.utils import logger
from twisted.internet import reactor
from twisted.internet.task import LoopingCall
from twisted.python.failure import Failure

from evennia_ai.engine.errors import EvenniaAIError, StoreError
from evennia_ai.npc import runtime as running
from evennia_ai.npc.command_errors import hide_errors
from evennia_ai.npc.floor.ticks import stored_ticks
from evennia_ai.npc.mind.news import News
from evennia_ai.npc.mind.overview import look_at_everybody
from evennia_ai.npc.mind.window_watch import WindowWatch
from evennia_ai.npc.nicks import bound_nicks
from evennia_ai.npc.recording import unanswered
from evennia_ai.npc.recording.retrying import DATABASE_ERRORS, until_done
from evennia_ai.npc.senses.witness import watch_logins
from evennia_ai.npc.turn import acting
from evennia_ai.npc.watch.watchdog import Watchdog
from evennia_ai.services.settings.conf import setting_doubts, unknown_names
from evennia_ai.store import erasing, model_calls
from evennia_ai.store.core.snapshots import refresh_if_changed
from evennia_ai.store.history import turns
from evennia_ai.store.history.windows import windows
from evennia_ai.store.work import proposals, workers

NEW_SECONDS: Final = 0.25
"""How often new objects are counted. A crowd makes too many in one second."""
GROWN_SECONDS: Final = 5.0
"""How often used memory is measured, which takes longer than counting new objects."""
NEW_OBJECTS: Final = 10_000
"""From this many new objects on, they are collected (some milliseconds)."""
EVERYTHING_SECONDS: Final = 24 * 60 * 60.0
GROWN_BLOCKS: Final = 500_000
"""Growth in memory blocks before a full collection (about 100 MB)."""
TOO_MANY: Final = 4
"""At this multiple of `GROWN_BLOCKS`, the full collection does not wait for a quiet moment."""
MESSAGE_BLOCKS: Final = 16
"""Memory blocks of a cached message with its record, which are not counted as growth."""

SWITCH_SECONDS: Final = 0.0005
"""How long a thread that wants to run waits for the running one.

The writer waits for the database some times in each job, and behind each of them for the game's
thread: with Python's own five milliseconds, as long as the game is busy, that is most of a commit.
"""

_SELDOM: Final = 100_000
"""A threshold that practically stops Python from starting full collections by itself."""


class Garbage:
    """Controls the garbage collector while a server runs."""

    def __init__(self) -> None:
        self._before: Final = gc.get_threshold()
        self._held: Callable[[], int] = int
        self._is_quiet: Callable[[], bool] = bool
        self._blocks_after = 0
        """Memory blocks in use after the last full collection, without cached messages."""

    def begin(self, *, held: Callable[[], int], is_quiet: Callable[[], bool]) -> None:
        """Collect and freeze what the start has made, before anybody is served.

        Args:
            held: Returns how many messages are cached on purpose.
            is_quiet: True if a pause of a tenth of a second disturbs nobody now.
        """
        self._held, self._is_quiet = held, is_quiet
        young, middle, _ = self._before
        gc.set_threshold(young, middle, _SELDOM)
        self._search()
        self._blocks_after = self._blocks()

    def search_new(self) -> None:
        """Collect new objects and freeze the survivors, if there are many. Call it often."""
        if _new_objects() >= NEW_OBJECTS:
            self._search()

    def search_if_grown(self) -> None:
        """Run a full collection if memory has grown much since the last one."""
        grown = self._blocks() - self._blocks_after
        if grown > TOO_MANY * GROWN_BLOCKS or (grown > GROWN_BLOCKS and self._is_quiet()):
            self.search_everything()

    def _blocks(self) -> int:
        """Return the memory blocks in use, without cached messages."""
        return sys.getallocatedblocks() - MESSAGE_BLOCKS * self._held()

    def _search(self) -> None:
        gc.collect()
        gc.freeze()

    def search_everything(self) -> None:
        """Run a full collection, frozen objects included."""
        began = time.perf_counter()
        gc.unfreeze()
        self._search()
        self._blocks_after = self._blocks()
        took = 1000 * (time.perf_counter() - began)
        logger.log_msg(f"evennia_ai: a full garbage collection took {took:.0f} ms")

    def end(self) -> None:
        """Restore the collector's earlier settings."""
        gc.set_threshold(*self._before)
        gc.unfreeze()


class Switching:
    """Controls how often threads take turns while a server runs."""

    def __init__(self) -> None:
        self._before = sys.getswitchinterval()

    def begin(self) -> None:
        """Shorten the time for which a thread waits for another, unless the game's is shorter."""
        self._before = sys.getswitchinterval()
        sys.setswitchinterval(min(SWITCH_SECONDS, self._before))

    def end(self) -> None:
        """Restore the earlier interval."""
        sys.setswitchinterval(self._before)


def _new_objects() -> int:
    """Return about how many objects were made since the last full collection."""
    young, middle, _ = gc.get_threshold()
    made, young_searches, middle_searches = gc.get_count()
    return made + young * (young_searches + middle * middle_searches)


_DAY_SECONDS: Final = 24 * 60 * 60
_SUMMING_SECONDS: Final = 60
_SETTLING_SECONDS: Final = 3
"""The pause after the start in which players reconnect after a reload."""
# Repeated and single calls that are scheduled while the server runs.
_timers: Final[list[LoopingCall]] = []
_calls: Final[list[Any]] = []
_garbage: Final = Garbage()
_switching: Final = Switching()
_watchdogs: Final[list[Watchdog]] = []


def _log_doubts() -> None:
    """Log doubtful settings, because a reload runs no system checks."""
    for doubt in setting_doubts():
        logger.log_warn(f"evennia_ai: {doubt.message} {doubt.hint}")
    for name, near in unknown_names():
        meant = f"; did you mean {near}?" if near else ""
        logger.log_warn(f"evennia_ai: {name} is not a setting of evennia_ai{meant}")


def at_server_start() -> None:
    """Start NPCs: close turns of a dead process, prepare the model, start all timers.

    Conversations that are older than the settings allow are erased now and once a day.
    """
    hide_errors()
    bound_nicks()
    try:
        live = running.runtime()
    except EvenniaAIError as error:
        logger.log_err(f"evennia_ai: no NPC can answer: {error}")
        return
    _log_doubts()
    started_at = time.time()
    _refresh()  # read the store's versions, so that later reads are not older
    closing = partial(_close_interrupted, begun_before=started_at)
    live.writer.begin()
    live.writer.until_written(closing, "interrupted turns are not closed")
    logger.log_msg(f"evennia_ai: NPCs speak through: {live.access.name}")
    live.models.prepare().addErrback(_log_unprepared)
    live.watch.add(News(now=live.clock.seconds))
    live.watch.add(WindowWatch(live.calls))
    live.watch.open()
    live.work.begin()
    watch_logins()
    _notice_guards()
    until_done(partial(_start_ticks, live), "no NPC ticks", clock=live.clock)
    _stop_timers()
    _calls.append(live.clock.callLater(_SETTLING_SECONDS, _answer_what_waited, live, started_at))
    _switching.begin()
    _garbage.begin(held=lambda: windows.weight, is_quiet=lambda: not live.scheduler.busy_keys)
    _repeat(_garbage.search_new, live, seconds=NEW_SECONDS)
    _repeat(_garbage.search_if_grown, live, seconds=GROWN_SECONDS)
    _repeat(_garbage.search_everything, live, seconds=EVERYTHING_SECONDS)
    _repeat(_refresh, live, seconds=live.conf.refresh_seconds)
    if live.conf.keep_turn_days:
        _forget_old(live)
        _repeat(partial(_forget_old, live), live, seconds=_DAY_SECONDS)
    _repeat(partial(_sum_up_calls, live), live, seconds=_SUMMING_SECONDS)
    if live.work.in_workers:
        _forget_work(live)
        _repeat(partial(_forget_work, live), live, seconds=_DAY_SECONDS)
    if live.conf.slow_ms:
        _watchdogs.append(Watchdog(reactor, slow_ms=live.conf.slow_ms, log=logger.log_warn))
        _watchdogs[-1].begin()


def at_server_stop() -> None:
    """Commit what was heard and give up what is running. Also called before a reload."""
    _stop_timers()
    while _watchdogs:
        _watchdogs.pop().end()
    running.stop()
    _garbage.end()
    _switching.end()


def _close_interrupted(*, begun_before: float) -> None:
    """Close turns that an earlier process left open, and end its errands."""
    closed = turns.close_interrupted(begun_before=begun_before)
    if closed:
        turns_closed = (
            "1 interrupted turn was" if closed == 1 else f"{closed} interrupted turns were"
        )
        logger.log_warn(f"evennia_ai: {turns_closed} closed")
    acting.close_lost(begun_before=begun_before)


def _answer_what_waited(live: running.Runtime, started_at: float) -> None:
    """Answer what was said before the stop. If it cannot be read, log that."""
    reading = live.writer.read(partial(unanswered.look_back, started_at=started_at))
    reading.addCallback(unanswered.take_up).addErrback(
        _not_done, "what was said before the stop is not answered"
    )


def _notice_guards() -> None:
    """Record which NPCs guard which restricted bases, before anybody changes a tag."""
    try:
        look_at_everybody()
    except (EvenniaAIError, *DATABASE_ERRORS) as error:
        logger.log_err(f"evennia_ai: could not record which NPCs guard knowledge bases: {error}")


def _start_ticks(live: running.Runtime) -> None:
    live.ticker.take_in(stored_ticks())


def _refresh() -> None:
    try:
        refresh_if_changed()
    except StoreError as error:
        logger.log_err(f"evennia_ai: {error}")


def _forget_old(live: running.Runtime) -> None:
    """Erase old conversations. What cannot be erased now is tried the next day."""
    keep_days = live.conf.keep_turn_days
    erase = partial(erasing.forget_old, time.time(), keep_days=keep_days)

    def tell(gone: erasing.Erased) -> None:
        if gone.conversations:
            logger.log_msg(
                f"evennia_ai: {gone.conversations} conversations were erased in which nobody spoke"
                f" for {keep_days} days"
            )

    live.writer.write(erase).addCallback(tell).addErrback(
        _not_done, "old conversations were not erased"
    )


def _sum_up_calls(live: running.Runtime) -> None:
    """Replace some old calls of models by their sums. The rest follows at later calls."""
    sum_up = partial(model_calls.sum_up_old, time.time(), keep_days=live.conf.keep_call_days)
    live.writer.write(sum_up).addErrback(_not_done, "old calls of models were not summed up")


def _forget_work(live: running.Runtime) -> None:
    """Delete jobs that ended and workers that died longer ago than calls are kept."""
    before = time.time() - live.conf.keep_call_days * _DAY_SECONDS

    def forget() -> None:
        proposals.forget_old_proposals(before)
        workers.forget_old_workers(before)

    live.writer.write(forget).addErrback(_not_done, "old jobs of workers were not forgotten")


def _not_done(failure: Failure, what: str) -> None:
    """Log an error of the database. The next call tries again."""
    failure.trap(EvenniaAIError, DatabaseError)
    logger.log_err(f"evennia_ai: {what}: {failure.getErrorMessage()}")


def _repeat(do: Callable[[], None], live: running.Runtime, *, seconds: float) -> None:
    timer = LoopingCall(do)
    timer.clock = live.clock
    timer.start(seconds, now=False)
    _timers.append(timer)


def _stop_timers() -> None:
    while _calls:
        call = _calls.pop()
        if call.active():
            call.cancel()
    while _timers:
        timer = _timers.pop()
        if timer.running:
            timer.stop()


def _log_unprepared(failure: Failure) -> None:
    logger.log_err(f"evennia_ai: the model is not ready: {failure.getErrorMessage()}")
