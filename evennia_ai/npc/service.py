"""Start and stop: what happens once for a server process.

The app adds this module to Evennia's `AT_SERVER_STARTSTOP_MODULE` (`evennia_ai.apps`), so that a
game needs no line for it; Evennia calls the functions here.

Python's full search for objects that nobody reaches any more goes through every object there is, a
tenth of a second and more with hundreds of NPCs. Here the collector looks at what is new as soon as
that is some thousand objects, and what survives is frozen: later searches pass it over. Once a day,
and whenever there is much more in memory than the messages that are meant to be there, all of it is
looked through, so that what became garbage while it was frozen goes as well: in a moment in which
no NPC is answering, unless it has become so much that it cannot wait for one.
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
"""How often it is asked how much is new: in one second a crowd makes more than is meant."""
GROWN_SECONDS: Final = 5.0
"""How often it is asked how much memory is in use, which takes longer than the question above."""
NEW_OBJECTS: Final = 10_000
"""So many new objects are searched at once: some milliseconds."""
EVERYTHING_SECONDS: Final = 24 * 60 * 60.0
GROWN_BLOCKS: Final = 500_000
"""So many more blocks of memory may be in use before everything is searched: some 100 MB."""
TOO_MANY: Final = 4
"""At so many times that much it is searched whoever is answering."""
MESSAGE_BLOCKS: Final = 16
"""Blocks that a message takes with its record; as long as it is held it is no garbage."""

SWITCH_SECONDS: Final = 0.0005
"""How long a thread that wants to run waits for another that runs.

The writer waits for the database some times in each job, and behind each of them for the game's
thread: with Python's own five milliseconds, as long as the game is busy, that is most of a commit.
"""

_SELDOM: Final = 100_000
"""Searches of the middle generation before Python begins a full one by itself; as good as never."""


class Garbage:
    """The collector while a server runs; `end` gives it back as it was."""

    def __init__(self) -> None:
        self._before: Final = gc.get_threshold()
        self._held: Callable[[], int] = int
        self._is_quiet: Callable[[], bool] = bool
        self._blocks_after = 0
        """What was in use beside messages after the last search of everything."""

    def begin(self, *, held: Callable[[], int], is_quiet: Callable[[], bool]) -> None:
        """What the start has made is looked through once and frozen, before anybody is served.

        `held` tells how many messages are in memory because they are meant to be, `is_quiet`
        whether a tenth of a second matters to nobody just now.
        """
        self._held, self._is_quiet = held, is_quiet
        young, middle, _ = self._before
        gc.set_threshold(young, middle, _SELDOM)
        self._search()
        self._blocks_after = self._blocks()

    def search_new(self) -> None:
        """Look at what was made since the last time, and freeze what is still there, if it is much.

        Asked often, so that never so much is new that the search is felt.
        """
        if _new_objects() >= NEW_OBJECTS:
            self._search()

    def search_if_grown(self) -> None:
        """Look at all there is where much more memory is in use than after the last time."""
        grown = self._blocks() - self._blocks_after
        if grown > TOO_MANY * GROWN_BLOCKS or (grown > GROWN_BLOCKS and self._is_quiet()):
            self.search_everything()

    def _blocks(self) -> int:
        """The blocks of memory in use beside messages; what a process has taken tells less."""
        return sys.getallocatedblocks() - MESSAGE_BLOCKS * self._held()

    def _search(self) -> None:
        gc.collect()
        gc.freeze()

    def search_everything(self) -> None:
        """Look at all there is, also at what is frozen."""
        began = time.perf_counter()
        gc.unfreeze()
        self._search()
        self._blocks_after = self._blocks()
        took = 1000 * (time.perf_counter() - began)
        logger.log_msg(f"evennia_ai: all of the memory was searched for garbage in {took:.0f} ms")

    def end(self) -> None:
        """The collector works as before."""
        gc.set_threshold(*self._before)
        gc.unfreeze()


class Switching:
    """How often threads take turns while a server runs; `end` gives it back as it was."""

    def __init__(self) -> None:
        self._before = sys.getswitchinterval()

    def begin(self) -> None:
        """From now on no thread waits long for another; shorter ones of a game's own stay."""
        self._before = sys.getswitchinterval()
        sys.setswitchinterval(min(SWITCH_SECONDS, self._before))

    def end(self) -> None:
        """Threads take turns as before."""
        sys.setswitchinterval(self._before)


def _new_objects() -> int:
    """About how many objects there are that no full search has seen."""
    young, middle, _ = gc.get_threshold()
    made, young_searches, middle_searches = gc.get_count()
    return made + young * (young_searches + middle * middle_searches)


_DAY_SECONDS: Final = 24 * 60 * 60
_SUMMING_SECONDS: Final = 60
_SETTLING_SECONDS: Final = 3
"""After the start, until the players of a reload are there again."""
# What is done again and again while the server runs, and what once.
_timers: Final[list[LoopingCall]] = []
_calls: Final[list[Any]] = []
_garbage: Final = Garbage()
_switching: Final = Switching()
_watchdogs: Final[list[Watchdog]] = []


def _log_doubts() -> None:
    """Log what is odd about the settings: a reload runs no checks."""
    for doubt in setting_doubts():
        logger.log_warn(f"evennia_ai: {doubt.message} {doubt.hint}")
    for name, near in unknown_names():
        meant = f"; did you mean {near}?" if near else ""
        logger.log_warn(f"evennia_ai: {name} is not a setting of evennia_ai{meant}")


def at_server_start() -> None:
    """End the turns of a process that died, get the model ready, watch for foreign writes.

    Conversations that are not to be kept any longer are erased, then and once a day.
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
    _refresh()  # what is read from now on is as new as the numbers that are known
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
    """Commit what was heard, give up what is in flight; also before a reload."""
    _stop_timers()
    while _watchdogs:
        _watchdogs.pop().end()
    running.stop()
    _garbage.end()
    _switching.end()


def _close_interrupted(*, begun_before: float) -> None:
    """Close the turns that an earlier process left open, those of this one never."""
    closed = turns.close_interrupted(begun_before=begun_before)
    if closed:
        turns_closed = (
            "1 interrupted turn was" if closed == 1 else f"{closed} interrupted turns were"
        )
        logger.log_warn(f"evennia_ai: {turns_closed} closed")
    acting.close_lost(begun_before=begun_before)


def _answer_what_waited(live: running.Runtime, started_at: float) -> None:
    """Answer what was said before the stop; where that cannot be read it is left."""
    reading = live.writer.read(partial(unanswered.look_back, started_at=started_at))
    reading.addCallback(unanswered.take_up).addErrback(
        _not_done, "what was said before the stop is not answered"
    )


def _notice_guards() -> None:
    """Write down who guards which restricted base, before anybody changes a tag."""
    try:
        look_at_everybody()
    except (EvenniaAIError, *DATABASE_ERRORS) as error:
        logger.log_err(f"evennia_ai: who guards which knowledge base was not looked at: {error}")


def _start_ticks(live: running.Runtime) -> None:
    live.ticker.take_in(stored_ticks())


def _refresh() -> None:
    try:
        refresh_if_changed()
    except StoreError as error:
        logger.log_err(f"evennia_ai: {error}")


def _forget_old(live: running.Runtime) -> None:
    """Erase what nobody came back to; what cannot be erased now is erased the next day."""
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
    """Keep of a few old calls of models their sums; the next ones, and what fails, later."""
    sum_up = partial(model_calls.sum_up_old, time.time(), keep_days=live.conf.keep_call_days)
    live.writer.write(sum_up).addErrback(_not_done, "old calls of models were not summed up")


def _forget_work(live: running.Runtime) -> None:
    """Forget jobs that ended, and workers that died, longer ago than calls of models are kept."""
    before = time.time() - live.conf.keep_call_days * _DAY_SECONDS

    def forget() -> None:
        proposals.forget_old_proposals(before)
        workers.forget_old_workers(before)

    live.writer.write(forget).addErrback(_not_done, "old jobs of workers were not forgotten")


def _not_done(failure: Failure, what: str) -> None:
    """Log what the database refused; it is done the next time."""
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
