"""Measure each unit of work of the Server's reactor.

The load benchmark copies this into its game.

A unit is one call that Twisted's reactor makes: a timer's function, what a thread sent, reading or
writing of a connection. Spans are functions of evennia_ai that run inside units; their names are
below. The time of a span includes the spans inside it. A turn is measured over all units that it
takes. Elapsed time and processor time of the reactor's thread are written into a file of fixed rows
(`ROW`), with names in a second file. So measuring needs no growing memory.
"""

import gc
import struct
import time
from collections.abc import Awaitable, Callable, Generator
from functools import wraps
from importlib import import_module
from inspect import iscoroutinefunction
from pathlib import Path
from threading import get_ident
from typing import Any, Final, NamedTuple

ROW: Final = struct.Struct("<dffHB")
"""A row: end (`time.monotonic`), elapsed milliseconds, processor milliseconds, name, kind."""
ROWS: Final = Path("server", "logs", "units.bin")
NAMES: Final = Path("server", "logs", "units.txt")
UNIT, SPAN, GARBAGE, TURN = range(4)
LOOKED_UP_SECONDS: Final = 1.0
"""How often measurements are written to the disk."""

SPANS: Final = {
    "turn: is begun (all of its first call)": "npc.mind.pending_answer:PendingAnswer.run",
    "turn: gathers": "npc.turn.rounds:gather_turn",
    "turn: composes": "npc.turn.rounds:composed",
    "turn: its first round": "npc.turn.rounds:Rounds.first",
    "turn: its rows": "store.history.turns:begin_turn",
    "turn: fits the request": "npc.turn.rounds:Rounds._asked",
    "turn: its store is read at first": "npc.inputs.first_reading:_Reading.done",
    "turn: says the start of a reply": "npc.speech.voice:Start.__call__",
    "turn: ends": "npc.turn.turn:Turn._end_answered",
    "turn: its end's rows": "store.history.turns:finish_turn",
    "turn: speaks": "npc.speech.voice:Voice.say",
    "model: is asked": "npc.model_calls.calls:CountedCall.ask",
    "perceiving: one NPC": "npc.mind.handler:AIHandler.receive",
    "perceiving: one NPC sees": "npc.senses.witness:Witness.settle",
    "recorder: a few lines of NPCs": "npc.recording.event_recorder:Recorder._work",
    "recorder: writes": "npc.recording.event_recorder:commit_events",
    "recorder: one NPC is told": "npc.recording.event_recorder:Hearing.took",
    "writer: tells who waits": "npc.recording.writer:Writer._tell_next",
    "recorder: one NPC considers": "npc.mind.attention:Attention.consider",
    "login: NPCs see who comes": "npc.senses.witness:show_arrival",
    "search: own pages": "store.knowledge.backend:DatabaseBackend.search",
    "view: made, its books read and built": "npc.mind.handler:view_of",
    "garbage: what is new": "npc.service:Garbage._search",
    "garbage: everything": "npc.service:Garbage.search_everything",
}
"""Functions of `evennia_ai`, by their short names in the tables."""
TURNS: Final = {
    "turn: its start, all of the reactor": "npc.turn.turn:Turn._begin",
    "turn: its end, all of the reactor": "npc.turn.turn:Turn._run_rounds",
    "turn: all of it": "npc.turn.turn:Turn._run_steps",
}
"""Coroutines, whose time is added up over all units in which they run."""
EVENNIA: Final = {
    "Evennia: a character is entered": "evennia.accounts.accounts:DefaultAccount.puppet_object",
}


class Named(NamedTuple):
    """The place where a function is stored, and its name in that place."""

    owner: Any
    name: str


class _Book:
    """A writer of rows. It belongs to the thread that makes it."""

    def __init__(self) -> None:
        self._names: dict[tuple[int, str], int] = {}
        self._rows = ROWS.open("wb", buffering=1 << 20)
        self._texts = NAMES.open("w", encoding="utf-8")
        self.thread = get_ident()

    def add(self, kind: int, name: str, took: float, processor: float) -> None:
        number = self._names.get((kind, name))
        if number is None:
            number = self._names[kind, name] = len(self._names)
            print(name, file=self._texts)
        self._rows.write(ROW.pack(time.monotonic(), 1000 * took, 1000 * processor, number, kind))

    def flush(self) -> None:
        self._texts.flush()
        self._rows.flush()


def at_server_init() -> None:
    """Start measuring before anything is scheduled. A hook of Evennia."""
    book = _Book()
    _watch_reactor(book)
    _watch_garbage(book)
    for name, place in {**SPANS, **EVENNIA}.items():
        named = named_at(place)
        do = getattr(*named)
        steps = iscoroutinefunction(do)
        made = _timed_steps(book, name, do) if steps else _timed(book, SPAN, name, do)
        setattr(*named, made)
    for name, place in TURNS.items():
        named = named_at(place)
        setattr(*named, _timed_steps(book, name, getattr(*named)))
    typed = named_at("evennia.server.serversession:ServerSession.data_in")
    setattr(*typed, _timed_lines(book, getattr(*typed)))


def at_server_start() -> None:
    """Do nothing. A hook of Evennia."""


def at_server_stop() -> None:
    """Do nothing, because rows are written every second. A hook of Evennia."""


def named_at(place: str) -> Named:
    """Return where the function of a path ("module:Class.function" in `evennia_ai`) is stored.

    Raises:
        AttributeError: the function has moved; correct the tables above.
    """
    module, _, path = place.partition(":")
    root = "" if module.startswith("evennia.") else "evennia_ai."
    owner: Any = import_module(root + module)
    *classes, name = path.split(".")
    for one in classes:
        owner = getattr(owner, one)
    getattr(owner, name)
    return Named(owner, name)


def _timed(book: _Book, kind: int, name: str, do: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(do)
    def timed(*args: Any, **kwargs: Any) -> Any:
        if get_ident() != book.thread:
            return do(*args, **kwargs)
        began, used = time.perf_counter(), time.thread_time()
        try:
            return do(*args, **kwargs)
        finally:
            book.add(kind, name, time.perf_counter() - began, time.thread_time() - used)

    return timed


def _timed_lines(book: _Book, do: Callable[..., Any]) -> Callable[..., Any]:
    """Measure the lines that players type, by their first word."""

    def timed(session: Any, **kwargs: Any) -> Any:
        typed = kwargs.get("text")
        words = str(typed[0][0]).split() if typed and typed[0] else []
        name = f"Evennia: typed {words[0] if words else 'nothing'}"
        return _timed(book, SPAN, name, do)(session, **kwargs)

    return timed


class Steps:
    """A runner of a coroutine that adds up the time of its steps."""

    def __init__(self, coroutine: Any) -> None:
        self._coroutine = coroutine
        self.took = self.processor = 0.0

    def __await__(self) -> Generator[Any, Any, Any]:
        step, given = self._coroutine.send, None
        while True:
            began, used = time.perf_counter(), time.thread_time()
            try:
                waits_for = step(given)
            except StopIteration as end:
                return end.value
            finally:
                self.took += time.perf_counter() - began
                self.processor += time.thread_time() - used
            try:
                step, given = self._coroutine.send, (yield waits_for)
            except BaseException as error:
                step, given = self._coroutine.throw, error


def _timed_steps(
    book: _Book, name: str, make: Callable[..., Awaitable[Any]]
) -> Callable[..., Awaitable[Any]]:
    @wraps(make)
    async def timed(*args: Any, **kwargs: Any) -> Any:
        steps = Steps(make(*args, **kwargs))
        try:
            return await steps
        finally:
            book.add(TURN, name, steps.took, steps.processor)

    return timed


def _watch_reactor(book: _Book) -> None:
    """Measure all calls of the reactor.

    The reactor exists already, but none of our work is scheduled yet.
    """
    from twisted.internet import base, reactor

    made: Any = reactor
    plan, call_from_thread = base.DelayedCall.__init__, made.callFromThread

    def planned(self: Any, at: float, do: Callable[..., Any], *rest: Any, **more: Any) -> None:
        plan(self, at, _timed(book, UNIT, f"timer {_name_of(do)}", do), *rest, **more)

    def sent(do: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        call_from_thread(_timed(book, UNIT, f"thread {_name_of(do)}", do), *args, **kwargs)

    base.DelayedCall.__init__ = planned
    made.callFromThread = sent
    for way in ("_doReadOrWrite", "_doReadOrWriteSelectable"):
        if hasattr(made, way):
            setattr(made, way, _timed_wire(book, getattr(made, way)))
    made.callWhenRunning(_flush, made, book)


def _flush(reactor: Any, book: _Book) -> None:
    book.flush()
    reactor.callLater(LOOKED_UP_SECONDS, _flush, reactor, book)


def _timed_wire(book: _Book, do: Callable[..., Any]) -> Callable[..., Any]:
    def timed(selectable: Any, *args: Any) -> Any:
        protocol = getattr(selectable, "protocol", None)
        name = f"wire {type(protocol or selectable).__name__}"
        return _timed(book, UNIT, name, do)(selectable, *args)

    return timed


def _name_of(do: Any) -> str:
    """Return a name for a function. A loop is named after the function that it repeats."""
    seen = getattr(do, "f", None) or do
    seen = getattr(seen, "func", seen)
    name = getattr(seen, "__qualname__", type(seen).__name__)
    module = getattr(seen, "__module__", None) or type(seen).__module__
    return f"{module}.{name}".replace(".<locals>", "")


def _watch_garbage(book: _Book) -> None:
    began = [0.0, 0.0]

    def noted(phase: str, about: dict[str, int]) -> None:
        if get_ident() != book.thread:
            return
        if phase == "start":
            began[:] = time.perf_counter(), time.thread_time()
        else:
            took, processor = time.perf_counter() - began[0], time.thread_time() - began[1]
            book.add(GARBAGE, f"garbage: generation {about['generation']}", took, processor)

    gc.callbacks.append(noted)
