"""What happens when a server process starts and stops.

The app adds this module to Evennia's `AT_SERVER_STARTSTOP_MODULE` (`evennia_ai.apps`), so games
need no setting for it. Evennia calls `at_server_start` and `at_server_stop`.

Python's full garbage collection visits every object. With hundreds of NPCs, it blocks the game for
a tenth of a second or more. Therefore this module collects new objects as soon as there are some
thousands of them. It freezes those that survive, so later collections skip them. If there are very
many, they are frozen at once. A full collection, which includes frozen objects, runs once a day,
and whenever memory has grown much more than the cached messages explain. It waits for a moment in
which no NPC answers, unless memory has grown too much.
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
from evennia_ai.npc.mind.entering import disclose_at_login
from evennia_ai.npc.mind.guard_watch import record_all_guards
from evennia_ai.npc.mind.news import News
from evennia_ai.npc.mind.status import unpriced
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
"""How often new objects are counted. A crowd of players makes too many in one second."""
GROWN_SECONDS: Final = 5.0
"""How often used memory is measured. That takes longer than counting new objects."""
NEW_OBJECTS: Final = 10_000
"""The number of new objects from which on they are collected. It takes some milliseconds."""
MOST_SEARCHED: Final = 100_000
"""From this number of new objects on, they are frozen without a search.

A parsed lorebook of ten thousand entries has so many. It stays, and a search of it would block the
game for more than ten milliseconds. The next full collection finds garbage among the objects.
"""
EVERYTHING_SECONDS: Final = 24 * 60 * 60.0
GROWN_BLOCKS: Final = 500_000
"""The growth in memory blocks that causes a full collection (about 100 MB)."""
TOO_MANY: Final = 4
"""From this multiple of `GROWN_BLOCKS` on, the full collection does not wait."""
MESSAGE_BLOCKS: Final = 16
"""The memory blocks of a cached message with its record. They do not count as growth."""

SWITCH_SECONDS: Final = 0.0005
"""How long a thread waits until the running thread lets it run.

The writer's thread waits for the database several times in each job. After each wait it must get
its turn from the game's thread. With Python's default of five milliseconds, a busy game would make
that the longest part of a commit.
"""

_SELDOM: Final = 100_000
"""A threshold so high that Python practically never starts a full collection by itself."""


class Garbage:
    """Controls Python's garbage collector while a server runs."""

    def __init__(self) -> None:
        self._before: Final = gc.get_threshold()
        self._held: Callable[[], int] = int
        self._is_quiet: Callable[[], bool] = bool
        self._blocks_after = 0
        """Memory blocks in use after the last full collection, without cached messages."""

    def begin(self, *, held: Callable[[], int], is_quiet: Callable[[], bool]) -> None:
        """Collect and freeze what the start of the server created, before players are served.

        Args:
            held: Returns the number of messages that are cached on purpose.
            is_quiet: Returns True if a pause of a tenth of a second disturbs nobody now.
        """
        self._held, self._is_quiet = held, is_quiet
        young, middle, _ = self._before
        gc.set_threshold(young, middle, _SELDOM)
        self._search()
        self._blocks_after = self._blocks()

    def search_new(self) -> None:
        """If there are many new objects, collect them and freeze those that survive. Call this
        often.
        """
        new = _new_objects()
        if new >= MOST_SEARCHED:
            gc.freeze()
        elif new >= NEW_OBJECTS:
            self._search()

    def search_if_grown(self) -> None:
        """Run a full collection if memory has grown much since the last one."""
        grown = self._blocks() - self._blocks_after
        if grown > TOO_MANY * GROWN_BLOCKS or (grown > GROWN_BLOCKS and self._is_quiet()):
            self.search_everything()

    def _blocks(self) -> int:
        """Return the number of memory blocks in use, without cached messages."""
        return sys.getallocatedblocks() - MESSAGE_BLOCKS * self._held()

    def _search(self) -> None:
        gc.collect()
        gc.freeze()

    def search_everything(self) -> None:
        """Run a full collection, which includes frozen objects."""
        began = time.perf_counter()
        gc.unfreeze()
        self._search()
        self._blocks_after = self._blocks()
        took = 1000 * (time.perf_counter() - began)
        logger.log_msg(f"evennia_ai: a full garbage collection took {took:.0f} ms")

    def end(self) -> None:
        """Restore the earlier settings of the collector."""
        gc.set_threshold(*self._before)
        gc.unfreeze()


class Switching:
    """Controls how often Python switches between threads while a server runs."""

    def __init__(self) -> None:
        self._before = sys.getswitchinterval()

    def begin(self) -> None:
        """Shorten the interval between switches of threads, unless the game's is shorter."""
        self._before = sys.getswitchinterval()
        sys.setswitchinterval(min(SWITCH_SECONDS, self._before))

    def end(self) -> None:
        """Restore the earlier interval."""
        sys.setswitchinterval(self._before)


def _new_objects() -> int:
    """Return roughly how many objects were created since the last full collection."""
    young, middle, _ = gc.get_threshold()
    made, young_searches, middle_searches = gc.get_count()
    return made + young * (young_searches + middle * middle_searches)


_DAY_SECONDS: Final = 24 * 60 * 60
_SUMMING_SECONDS: Final = 60
_SLICE_SECONDS: Final = 5
"""The pause between two slices of old conversations."""
_MOST_POSTPONED: Final = 12
_SETTLING_SECONDS: Final = 3
"""The pause after the start, in which players connect again after a reload."""
# The repeated and single calls that are scheduled while the server runs.
_timers: Final[list[LoopingCall]] = []
_calls: Final[list[Any]] = []
_garbage: Final = Garbage()
_switching: Final = Switching()
_watchdogs: Final[list[Watchdog]] = []


def _log_doubts() -> None:
    """Log settings that are probably mistakes, because a reload runs no system checks."""
    for doubt in setting_doubts():
        logger.log_warn(f"evennia_ai: {doubt.message} {doubt.hint}")
    for name, near in unknown_names():
        meant = f"; did you mean {near}?" if near else ""
        logger.log_warn(
            f"evennia_ai: {name} is not a setting of evennia_ai, so it has no effect{meant}"
        )


def at_server_start() -> None:
    """Start the NPCs: close turns of a dead process, prepare the model, start all timers.

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
    _refresh()  # read the versions of the store first, so that no later read is older
    closing = partial(_close_interrupted, begun_before=started_at)
    live.writer.begin()
    live.writer.until_written(closing, "turns that an earlier process left open are not closed yet")
    logger.log_msg(f"evennia_ai: NPCs speak through: {live.access.name}")
    live.models.prepare().addCallbacks(partial(_log_unpriced, live), _log_unprepared)
    live.watch.add(News(now=live.clock.seconds))
    live.watch.add(WindowWatch(live.calls))
    live.watch.open()
    live.work.begin()
    watch_logins()
    disclose_at_login()
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
    if live.conf.keep_days:
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
    """Commit what NPCs heard, and give up running turns. Also called before a reload."""
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
    """Answer what was said before the stop. If that cannot be read, log it."""
    reading = live.writer.read(partial(unanswered.look_back, started_at=started_at))
    reading.addCallback(unanswered.take_up).addErrback(
        _not_done, "what was said before the server stopped cannot be read, so it is not answered"
    )


def _notice_guards() -> None:
    """Record which NPCs guard which knowledge bases, before a builder can change a tag."""
    try:
        record_all_guards()
    except (EvenniaAIError, *DATABASE_ERRORS) as error:
        logger.log_err(f"evennia_ai: cannot record which NPCs guard knowledge bases: {error}")


def _start_ticks(live: running.Runtime) -> None:
    live.ticker.take_in(stored_ticks())


def _refresh() -> None:
    try:
        refresh_if_changed()
    except StoreError as error:
        logger.log_err(f"evennia_ai: {error}")


def _forget_old(live: running.Runtime, *, postponed: int = 0) -> None:
    """Erase some old conversations while no NPC answers, and later the others.

    If one cannot be erased now, it is tried again the next day.

    Args:
        postponed: How often this waited for NPCs. After a minute it waits no longer, because in a
            large game some NPC always answers.
    """
    if live.scheduler.busy_keys and postponed < _MOST_POSTPONED:
        _forget_more(live, postponed=postponed + 1)
        return
    keep_days = live.conf.keep_days
    erase = partial(erasing.forget_old, time.time(), keep_days=keep_days)

    def tell(gone: erasing.Erased) -> None:
        if gone.conversations:
            logger.log_msg(
                f"evennia_ai: {gone.conversations} conversations were erased in which nobody spoke"
                f" for {keep_days} days"
            )
        if gone.conversations == erasing.SLICE_CONVERSATIONS:
            _forget_more(live)

    live.writer.write(erase).addCallback(tell).addErrback(
        _not_done, "old conversations were not erased"
    )


def _forget_more(live: running.Runtime, *, postponed: int = 0) -> None:
    """Go on erasing old conversations in some seconds."""
    _calls[:] = [call for call in _calls if call.active()]
    _calls.append(
        live.clock.callLater(_SLICE_SECONDS, partial(_forget_old, live, postponed=postponed))
    )


def _sum_up_calls(live: running.Runtime) -> None:
    """Replace some rows of old model calls by their sums. Later calls continue with the others."""
    sum_up = partial(model_calls.sum_up_old, time.time(), keep_days=live.conf.keep_call_days)
    live.writer.write(sum_up).addErrback(
        _not_done, "the rows of old model calls were not summed up"
    )


def _forget_work(live: running.Runtime) -> None:
    """Delete jobs that have ended, and dead workers, once they are older than calls are kept."""
    before = time.time() - live.conf.keep_call_days * _DAY_SECONDS

    def forget() -> None:
        proposals.forget_old_proposals(before)
        workers.forget_old_workers(before)

    live.writer.write(forget).addErrback(_not_done, "old jobs and dead workers were not deleted")


def _not_done(failure: Failure, what: str) -> None:
    """Log an error of the database. The next scheduled call tries again."""
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


def _log_unpriced(live: running.Runtime, _: object) -> None:
    """Log the profiles whose price is not known. A limit of money does not count their calls."""
    for told in unpriced(live):
        logger.log_warn(f"evennia_ai: {told}")


def _log_unprepared(failure: Failure) -> None:
    logger.log_err(f"evennia_ai: the model is not ready: {failure.getErrorMessage()}")
