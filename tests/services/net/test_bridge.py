"""Test the thread that runs asyncio."""

import asyncio
from collections.abc import Callable
from threading import Event, get_ident

import pytest
from twisted.internet.defer import CancelledError

from evennia_ai.services.net.bridge import AsyncBridge
from tests.services.net.handover import Handover


async def _thread() -> int:
    return get_ident()


async def _forever() -> None:
    await asyncio.Event().wait()


def test_result_is_made_in_the_bridge_and_delivered_to_the_reactor(
    bridge: AsyncBridge, reactor: Handover
) -> None:
    waited_for = Event()

    async def thread() -> int:
        # A coroutine that ended earlier would be delivered from this thread.
        while not waited_for.is_set():
            await asyncio.sleep(0.001)
        return get_ident()

    result = bridge.run(thread)
    waited_for.set()
    ran_in = reactor.outcome_of(result)
    assert ran_in != get_ident()
    assert reactor.called_from == {ran_in}


def test_exception_is_delivered_unchanged(bridge: AsyncBridge, reactor: Handover) -> None:
    async def fails() -> None:
        raise LookupError("nothing here")

    problem = reactor.outcome_of(bridge.run(fails))
    assert isinstance(problem, LookupError)
    assert str(problem) == "nothing here"


def test_error_before_the_coroutine_exists_is_delivered(
    bridge: AsyncBridge, reactor: Handover
) -> None:
    def makes_none() -> None:
        raise LookupError("no coroutine")

    assert isinstance(reactor.outcome_of(bridge.run(makes_none)), LookupError)


def test_cancelling_the_deferred_cancels_the_coroutine(
    bridge: AsyncBridge, reactor: Handover
) -> None:
    seen: list[str] = []

    async def waits() -> None:
        seen.append("began")
        try:
            await _forever()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    waiting = bridge.run(waits)
    reactor.outcome_of(bridge.run(_thread))
    waiting.cancel()
    assert isinstance(reactor.outcome_of(waiting), CancelledError)
    reactor.outcome_of(bridge.run(_thread))
    assert seen == ["began", "cancelled"]
    reactor.make_waiting_calls()


def test_cancelling_a_finished_deferred_changes_nothing(
    bridge: AsyncBridge, reactor: Handover
) -> None:
    done = bridge.run(_thread)
    reactor.outcome_of(done)
    done.cancel()
    reactor.make_waiting_calls()
    assert isinstance(reactor.outcome_of(bridge.run(_thread)), int)


def test_thread_starts_only_with_the_first_run(reactor: Handover) -> None:
    bridge = AsyncBridge(reactor)
    assert not bridge.running
    bridge.stop()
    assert not bridge.running


def test_stop_ends_the_thread_and_fails_waiting_calls(
    bridge: AsyncBridge, reactor: Handover
) -> None:
    waiting = bridge.run(_forever)
    bridge.stop()
    assert not bridge.running
    assert isinstance(reactor.outcome_of(waiting), CancelledError)


def test_stopped_bridge_starts_again(bridge: AsyncBridge, reactor: Handover) -> None:
    for _ in range(3):
        assert isinstance(reactor.outcome_of(bridge.run(_thread)), int)
        bridge.stop()


def test_stop_awaits_its_closers_even_if_one_fails(
    bridge: AsyncBridge, reactor: Handover, caplog: pytest.LogCaptureFixture
) -> None:
    closed: list[str] = []

    async def fails() -> None:
        raise OSError("gone already")

    async def closes() -> None:
        closed.append("yes")

    async def opens() -> None:
        bridge.at_stop(fails)
        bridge.at_stop(closes)

    reactor.outcome_of(bridge.run(opens))
    bridge.stop()
    assert closed == ["yes"]
    assert "gone already" in caplog.text
    reactor.outcome_of(bridge.run(_thread))
    bridge.stop()
    assert closed == ["yes"]


def test_reported_values_are_heard_in_order_before_the_result(
    bridge: AsyncBridge, reactor: Handover
) -> None:
    heard: list[str] = []

    async def says(hear: Callable[[str], None]) -> list[str]:
        for word in "abc":
            hear(word)
        return list(heard)

    assert reactor.outcome_of(bridge.run_heard(says, heard.append)) == []
    assert heard == ["a", "b", "c"]


def test_nothing_is_heard_after_cancelling(bridge: AsyncBridge, reactor: Handover) -> None:
    heard: list[str] = []

    async def says(hear: Callable[[str], None]) -> None:
        try:
            hear("a")
            await _forever()
        finally:
            hear("b")

    saying = bridge.run_heard(says, heard.append)
    assert reactor.waits_for_a_call()
    saying.cancel()
    assert isinstance(reactor.outcome_of(saying), CancelledError)
    reactor.outcome_of(bridge.run(_thread))
    reactor.make_waiting_calls()
    assert heard == []


def test_listener_may_cancel(bridge: AsyncBridge, reactor: Handover) -> None:
    heard: list[str] = []

    async def says(hear: Callable[[str], None]) -> None:
        hear("a")
        hear("b")
        await _forever()

    def listener(piece: str) -> None:
        heard.append(piece)
        saying.cancel()

    saying = bridge.run_heard(says, listener)
    assert isinstance(reactor.outcome_of(saying), CancelledError)
    assert heard == ["a"]
