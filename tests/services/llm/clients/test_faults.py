"""Test every way in which a model server can fail, over real connections.

Each must end in time with the right error. One table has the faults and their errors. A thousand
faults, many at once, must leave nothing behind: no thread, descriptor, task or waiting Deferred.
"""

import asyncio
import gc
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from twisted.internet.defer import CancelledError, Deferred, DeferredList

from evennia_ai.engine.errors import ModelError, ModelRubbish, ModelTimeout, ModelUnavailable
from evennia_ai.services.llm.chat import AnswerSchema, ChatModel, ChatReply
from evennia_ai.services.net.bridge import AsyncBridge
from tests.services.llm.builders import a_request
from tests.services.llm.clients.stub_server import (
    Behaviour,
    StubServer,
    answers,
    calls,
    closes_early,
    delta,
    drips,
    event,
    fails,
    hangs_up,
    sends,
    stalls_in_the_body,
    stalls_until_left,
    streamed,
    streams,
    streams_and_stalls,
)
from tests.services.llm.conftest import Making, MakingClaude
from tests.services.net.handover import Handover

LIMITS = {"timeout_seconds": 0.6, "idle_seconds": 0.3}
PATIENT = {"timeout_seconds": 300.0, "idle_seconds": 300.0}
"""The time limit for faults that end by themselves.

It is long, so that a busy machine does not reach it.
"""
IN_TIME_SECONDS = 250.0
"""By this time the slowest fault has ended, even on a busy machine."""

MODELS = {"openai": "model", "anthropic": "claude"}
TEN_MEGABYTES = json.dumps({"choices": [{"message": {"content": "x" * 10_000_000}}]}).encode()
ACT = AnswerSchema(name="act", schema={"type": "object", "required": ["say"]})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """The behaviour of a server and the expected error. `heard` requests a stream."""

    behaviour: Behaviour
    comes_to: type[ModelError | ChatReply]
    heard: bool = False


DRIPPED = b"".join(streamed("Aye."))
ONE_PIECE = event(delta("The"))
FAULTS = {
    "stalled before the headers": Fault(behaviour=stalls_until_left, comes_to=ModelTimeout),
    "stalled before a stream": Fault(
        behaviour=stalls_until_left, comes_to=ModelTimeout, heard=True
    ),
    "stalled after the headers": Fault(behaviour=stalls_in_the_body, comes_to=ModelTimeout),
    "stalled in a stream": Fault(
        behaviour=streams_and_stalls(ONE_PIECE), comes_to=ModelTimeout, heard=True
    ),
    "dripping": Fault(behaviour=drips(TEN_MEGABYTES, pause=0.1), comes_to=ModelTimeout),
    "dripping a stream": Fault(
        behaviour=drips(DRIPPED, pause=0.1, content_type="text/event-stream"),
        comes_to=ModelTimeout,
        heard=True,
    ),
    "too many requests": Fault(behaviour=fails(429, retry_after="0.01"), comes_to=ModelUnavailable),
    "too many requests for a long time": Fault(
        behaviour=fails(429, retry_after="3600"), comes_to=ModelUnavailable, heard=True
    ),
    "broken": Fault(behaviour=fails(500, retry_after_ms="1"), comes_to=ModelUnavailable),
    "hanging up": Fault(behaviour=hangs_up, comes_to=ModelUnavailable),
    "hanging up in the body": Fault(behaviour=closes_early, comes_to=ModelUnavailable),
    "no JSON": Fault(behaviour=sends(b"<html>Welcome</html>"), comes_to=ModelRubbish),
    "no JSON in a stream": Fault(behaviour=streams(event("{")), comes_to=ModelRubbish, heard=True),
    "a stream without an end mark": Fault(
        behaviour=streams(ONE_PIECE), comes_to=ChatReply, heard=True
    ),
    "a stream of nothing": Fault(behaviour=streams(), comes_to=ModelUnavailable, heard=True),
    "half an event": Fault(
        behaviour=streams(ONE_PIECE[:-9]), comes_to=ModelUnavailable, heard=True
    ),
    "ten megabytes": Fault(behaviour=sends(TEN_MEGABYTES), comes_to=ModelRubbish),
    "ten megabytes of stream": Fault(
        behaviour=streams(*[event(delta("x" * 100_000))] * 100), comes_to=ModelRubbish, heard=True
    ),
    "another form": Fault(behaviour=answers('{"do": 1}'), comes_to=ChatReply),
    "unknown tool": Fault(behaviour=calls("fly to the moon", "{}"), comes_to=ChatReply),
    "arguments of wrong types": Fault(
        behaviour=calls("look", '{"at": [1, null]}'), comes_to=ChatReply
    ),
}


def asked(model: ChatModel, *, heard: bool, **more: Any) -> Deferred[ChatReply]:
    listener: Callable[[str], None] | None = (lambda _: None) if heard else None
    return model.complete(a_request(**more), listener=listener)


@pytest.mark.parametrize("name", FAULTS)
def test_server_fault_ends_in_time_with_the_right_error(
    server: StubServer, model: Making, reactor: Handover, name: str
) -> None:
    fault = FAULTS[name]
    server.behaves(fault.behaviour)
    chat = model(max_retries=1, **(LIMITS if fault.comes_to is ModelTimeout else PATIENT))
    began = monotonic()
    outcome = reactor.outcome_of(asked(chat, heard=fault.heard, schema=ACT), 300)
    assert monotonic() - began < IN_TIME_SECONDS
    assert type(outcome) is fault.comes_to


def test_refused_connection_ends_in_time(model: Making, reactor: Handover) -> None:
    closed = StubServer()
    closed.close()
    chat = model(base_url=closed.base_url, max_retries=1, **LIMITS)
    began = monotonic()
    outcome = reactor.outcome_of(asked(chat, heard=True))
    assert isinstance(outcome, ModelUnavailable)
    assert "refused" in str(outcome)
    assert monotonic() - began < IN_TIME_SECONDS


def test_answer_of_another_form_is_returned_unchanged(
    server: StubServer, model: Making, reactor: Handover
) -> None:
    server.behaves(answers('{"do": 1}'))
    assert reactor.outcome_of(asked(model(), heard=False, schema=ACT)).text == '{"do": 1}'


def test_useless_calls_are_returned_unchanged(
    server: StubServer, model: Making, reactor: Handover
) -> None:
    server.behaves(calls("fly", '{"to": [1, null]}'))
    (call,) = reactor.outcome_of(asked(model(), heard=False)).tool_calls
    assert (call.name, call.arguments) == ("fly", '{"to": [1, null]}')


@dataclass(frozen=True, slots=True)
class Left:
    """The resources that a process holds."""

    threads: int
    descriptors: int
    tasks: int
    deferreds: int


def held(bridge: AsyncBridge, reactor: Handover) -> Left:
    """Return what this process holds now, except for the task that counts."""

    async def tasks() -> int:
        return len(asyncio.all_tasks()) - 1

    count = reactor.outcome_of(bridge.run(tasks))
    gc.collect()
    return Left(
        threads=threading.active_count(),
        descriptors=len(list(Path("/proc/self/fd").iterdir())),
        tasks=count,
        deferreds=sum(type(one) is Deferred for one in gc.get_objects()),
    )


def comes_back_to(before: Left, bridge: AsyncBridge, reactor: Handover) -> Left:
    """Wait until the process holds as much as before, and return what it holds."""
    ends = monotonic() + 60
    while (now := held(bridge, reactor)) != before and monotonic() < ends:
        sleep(0.1)
    return now


def mixed(count: int) -> Iterator[Fault]:
    return islice(cycle(FAULTS.values()), count)


@pytest.mark.long
@pytest.mark.parametrize(("client", "batches"), [("openai", 10), ("anthropic", 3)])
def test_thousand_faults_leave_no_task_or_connection_open(
    request: pytest.FixtureRequest,
    server: StubServer,
    bridge: AsyncBridge,
    reactor: Handover,
    client: str,
    batches: int,
) -> None:
    makes: Making | MakingClaude = request.getfixturevalue(MODELS[client])
    model = makes(max_retries=1, timeout_seconds=0.3, idle_seconds=0.15)

    def batch(size: int) -> list[type]:
        """Return the outcomes of many requests at once.

        Some are cancelled at once, some a little later.
        """
        faults = list(mixed(size))
        server.behaves(*(fault.behaviour for fault in faults), answers())
        all_asked = [asked(model, heard=fault.heard) for fault in faults]
        for one in all_asked[::10]:
            one.cancel()
        sleep(0.05)
        for one in all_asked[5::10]:
            one.cancel()
        both = DeferredList(all_asked, consumeErrors=True)
        return [type(getattr(one, "value", one)) for _, one in reactor.outcome_of(both, 300)]

    batch(len(FAULTS))
    server.wait_until_idle()
    before = held(bridge, reactor)
    came = Counter(one for _ in range(batches) for one in batch(100))
    assert came.total() == batches * 100
    assert came.keys() <= {ChatReply, ModelRubbish, ModelTimeout, ModelUnavailable, CancelledError}
    assert comes_back_to(before, bridge, reactor) == before
