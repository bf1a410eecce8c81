"""Test the protection against slow or dead servers."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from evennia_ai.engine.errors import (
    Fault,
    ModelRefused,
    ModelRubbish,
    ModelTimeout,
    ModelUnavailable,
)
from evennia_ai.services.llm.chat import ChatReply, ChatRequest
from evennia_ai.services.llm.clients.scripted import ScriptedModel
from evennia_ai.services.llm.resilience import Guarded, Slots
from tests.services.llm.builders import a_breaker, a_request
from tests.services.llm.clients.stub_server import StubServer, answers, fails
from tests.services.llm.conftest import Making
from tests.services.net.handover import Handover

STEPS = ["ask", "answer", "fail", "cancel", "advance"]
HELLO = ChatReply(text="Hello.", model="held")
DEAD = ModelUnavailable("scripted", "no connection")


class HeldModel:
    """A model that answers when the test says so."""

    name = "held"
    offline = False

    def __init__(self) -> None:
        self.asked: list[tuple[str, Deferred[ChatReply]]] = []

    def complete(self, request: ChatRequest, *, listener: object = None) -> Deferred[ChatReply]:
        reply: Deferred[ChatReply] = Deferred()
        self.asked.append((request.question, reply))
        return reply

    def close(self) -> None:
        self.closed = True

    def answer(self, question: str) -> None:
        dict(self.asked)[question].callback(ChatReply(text=question, model="held"))


def guarded(model: Any, clock: Clock, **values: Any) -> Guarded:
    return Guarded(model, breaker=a_breaker(clock), clock=clock, **values)


def outcome(deferred: Deferred[Any]) -> Any:
    """Return the current outcome of a Deferred, or None."""
    outcomes: list[Any] = []
    deferred.addBoth(outcomes.append)
    if not outcomes:
        return None
    return outcomes[0].value if isinstance(outcomes[0], Failure) else outcomes[0]


def watched(deferred: Deferred[Any]) -> list[Any]:
    """Return a list to which the outcome of a Deferred is added."""
    outcomes: list[Any] = []
    deferred.addBoth(lambda result: outcomes.append(getattr(result, "value", result)))
    return outcomes


def test_guarded_model_has_the_name_of_its_model(clock: Clock) -> None:
    model = ScriptedModel(["Aye."], name="main")
    guard = guarded(model, clock)
    assert (guard.name, guard.offline) == ("main", False)
    assert outcome(guard.complete(a_request())).text == "Aye."
    guard.close()
    assert model.closed
    assert not clock.getDelayedCalls()


def test_queue_sends_the_first_waiting_request_when_a_slot_is_free(clock: Clock) -> None:
    model = HeldModel()
    guard = guarded(model, clock, max_concurrent=2)
    results = {name: watched(guard.complete(a_request(name))) for name in "abcd"}
    assert [name for name, _ in model.asked] == ["a", "b"]
    assert guard.waiting == 2
    model.answer("b")
    assert [name for name, _ in model.asked] == ["a", "b", "c"]
    for name in "acd":
        model.answer(name)
    assert [results[name][0].text for name in "abcd"] == ["a", "b", "c", "d"]


def test_models_with_the_same_slots_wait_for_each_other(clock: Clock) -> None:
    first, second, slots = HeldModel(), HeldModel(), Slots(1)
    guarded(first, clock, slots=slots).complete(a_request(question="first"))
    reply = guarded(second, clock, slots=slots).complete(a_request(question="second"))
    assert second.asked == []
    first.answer("first")
    second.answer("second")
    assert outcome(reply).text == "second"


def test_full_queue_refuses_at_once(clock: Clock) -> None:
    model = HeldModel()
    guard = guarded(model, clock, max_concurrent=1, max_waiting=1)
    first, second = (watched(guard.complete(a_request(name))) for name in "ab")
    turned_away = outcome(guard.complete(a_request("c")))
    assert isinstance(turned_away, ModelUnavailable)
    assert "1 requests wait already" in str(turned_away)
    model.answer("a")
    model.answer("b")
    assert [first[0].text, second[0].text] == ["a", "b"]


def test_unanswered_request_fails_and_counts_for_the_breaker(clock: Clock) -> None:
    guard = guarded(HeldModel(), clock)
    results = [watched(guard.complete(a_request(timeout_seconds=5))) for _ in range(3)]
    clock.advance(5)
    assert all(isinstance(result[0], ModelTimeout) for result in results)
    assert guard.breaker.state == "open"


def test_waiting_counts_for_the_time_limit_but_not_for_the_breaker(clock: Clock) -> None:
    model = HeldModel()
    guard = guarded(model, clock, max_concurrent=1)
    first = watched(guard.complete(a_request("a", timeout_seconds=50)))
    waiting = [watched(guard.complete(a_request(timeout_seconds=5))) for _ in range(3)]
    clock.advance(5)
    said = "model 'held' was still busy with other requests after 5 seconds; see whether"
    assert all(str(one[0]).startswith(said) for one in waiting)
    assert (guard.breaker.state, guard.waiting) == ("closed", 0)
    model.answer("a")
    assert first[0].text == "a"


def test_waiting_request_times_out_within_its_remaining_time(clock: Clock) -> None:
    model = HeldModel()
    guard = guarded(model, clock, max_concurrent=1)
    watched(guard.complete(a_request("a")))
    late = watched(guard.complete(a_request("b", timeout_seconds=5)))
    clock.advance(3)
    model.answer("a")
    clock.advance(1.9)
    assert late == []
    clock.advance(0.1)
    assert isinstance(late[0], ModelTimeout)
    assert late[0].timeout_seconds == 5


def test_waiting_request_is_sent_with_its_remaining_time(clock: Clock) -> None:
    held, scripted, slots = HeldModel(), ScriptedModel(["Aye."]), Slots(1)
    watched(guarded(held, clock, slots=slots).complete(a_request("a")))
    late = watched(guarded(scripted, clock, slots=slots).complete(a_request(timeout_seconds=5)))
    clock.advance(3)
    held.answer("a")
    assert late[0].text == "Aye."
    assert scripted.requests[0].timeout_seconds == 2


def test_guard_reports_how_many_run_and_wait(clock: Clock) -> None:
    model = HeldModel()
    guard = guarded(model, clock, max_concurrent=2)
    asked = [guard.complete(a_request(name)) for name in "abcd"]
    results = [watched(one) for one in asked]
    assert (guard.out, guard.waiting) == (2, 2)
    asked[3].cancel()
    assert (guard.out, guard.waiting) == (2, 1)
    for name in "abc":
        model.answer(name)
    assert (guard.out, guard.waiting) == (0, 0)
    assert [getattr(result[0], "text", "cancelled") for result in results] == [*"abc", "cancelled"]


def test_long_queue_that_fails_at_once_does_not_overflow_the_stack(clock: Clock) -> None:
    """Each failure admits the next request; a thousand of them must not be one nested call."""
    model = HeldModel()
    breaker = a_breaker(clock, failures=1)
    guard = Guarded(model, breaker=breaker, clock=clock, max_concurrent=1, max_waiting=1000)
    results = [watched(guard.complete(a_request(str(number)))) for number in range(1000)]
    model.asked[0][1].errback(DEAD)
    assert all(isinstance(result[0], ModelUnavailable) for result in results)
    assert (guard.out, guard.waiting) == (0, 0)


def test_cancelling_another_request_does_not_admit_a_second_probe(clock: Clock) -> None:
    model = HeldModel()
    guard = Guarded(model, breaker=a_breaker(clock, failures=1), clock=clock)
    older = guard.complete(a_request("older", timeout_seconds=99))
    watched(older)
    guard.breaker.failed()
    clock.advance(30)
    watched(guard.complete(a_request("probe")))
    older.cancel()
    assert isinstance(outcome(guard.complete(a_request("second"))), ModelUnavailable)


def test_open_breaker_fails_at_once_and_says_when_it_retries(clock: Clock) -> None:
    model = ScriptedModel(lambda _: DEAD)
    guard = guarded(model, clock)
    for _ in range(3):
        assert outcome(guard.complete(a_request())) is DEAD
    clock.advance(10)
    problem = outcome(guard.complete(a_request()))
    assert isinstance(problem, ModelUnavailable)
    assert problem.retry_in_seconds == 20
    assert str(problem).endswith("it failed repeatedly; trying again in 20 seconds")
    assert len(model.requests) == 3


def test_waiting_requests_are_not_sent_when_the_breaker_opens(clock: Clock) -> None:
    model = HeldModel()
    guard = Guarded(model, breaker=a_breaker(clock, failures=1), clock=clock, max_concurrent=1)
    first, second = (watched(guard.complete(a_request(name))) for name in "ab")
    model.asked[0][1].errback(DEAD)
    assert first == [DEAD]
    assert isinstance(second[0], ModelUnavailable)
    assert len(model.asked) == 1


def test_model_recovers_after_the_breakers_rest(clock: Clock) -> None:
    model = ScriptedModel([DEAD, DEAD, DEAD, "Back.", "And on."])
    guard = guarded(model, clock)
    for _ in range(3):
        outcome(guard.complete(a_request()))
    clock.advance(30)
    assert outcome(guard.complete(a_request())).text == "Back."
    assert guard.breaker.state == "closed"
    assert outcome(guard.complete(a_request())).text == "And on."


def test_requests_during_the_probe_fail_with_the_reason(clock: Clock) -> None:
    model = HeldModel()
    guard = Guarded(model, breaker=a_breaker(clock, failures=1), clock=clock)
    guard.breaker.failed()
    clock.advance(30)
    probe = watched(guard.complete(a_request("probe")))
    problem = outcome(guard.complete(a_request()))
    assert str(problem).endswith("trying again as soon as the running request ends")
    model.answer("probe")
    assert probe[0].text == "probe"


USELESS = [ModelRefused("m", 400, "too long"), ModelRubbish("m", "the text is empty")]


@pytest.mark.parametrize("problem", USELESS)
def test_probe_with_an_unusable_answer_closes_the_breaker(clock: Clock, problem: Exception) -> None:
    guard = guarded(ScriptedModel([DEAD, DEAD, DEAD, problem]), clock)
    for _ in range(3):
        outcome(guard.complete(a_request()))
    clock.advance(30)
    assert outcome(guard.complete(a_request())) is problem
    assert guard.breaker.state == "closed"


@pytest.mark.parametrize("problem", USELESS)
def test_unusable_answer_does_not_open_the_breaker(clock: Clock, problem: Exception) -> None:
    guard = guarded(ScriptedModel(lambda _: problem), clock)
    for _ in range(5):
        assert outcome(guard.complete(a_request())) is problem
    assert guard.breaker.state == "closed"


def test_cancelled_request_frees_its_slot_and_does_not_count(clock: Clock) -> None:
    model = HeldModel()
    guard = guarded(model, clock, max_concurrent=1)
    for _ in range(4):
        asked = guard.complete(a_request())
        result = watched(asked)
        asked.cancel()
        assert isinstance(result[0], CancelledError)
    assert len(model.asked) == 4
    assert guard.breaker.state == "closed"
    assert not clock.getDelayedCalls()


def test_model_that_raises_fails_the_request_and_frees_its_slot(clock: Clock) -> None:
    def raises(_: ChatRequest) -> str:
        raise LookupError("a bug in the model")

    guard = guarded(ScriptedModel(raises), clock, max_concurrent=1)
    for _ in range(2):
        assert isinstance(outcome(guard.complete(a_request())), LookupError)


def test_closing_cancels_running_requests_and_sends_no_more(clock: Clock) -> None:
    model = HeldModel()
    guard = guarded(model, clock, max_concurrent=1)
    results = [watched(guard.complete(a_request(name))) for name in "abc"]
    guard.close()
    assert all(isinstance(result[0], CancelledError) for result in results)
    assert [name for name, _ in model.asked] == ["a"]
    assert model.closed
    assert not clock.getDelayedCalls()


@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 9)), max_size=60))
def test_every_slot_is_free_in_the_end_whatever_happens(steps: list[tuple[str, int]]) -> None:
    clock, model = Clock(), HeldModel()
    guard = guarded(model, clock, max_concurrent=2, max_waiting=3)
    asked: list[Deferred[ChatReply]] = []
    results: list[list[Any]] = []
    for number, (step, which) in enumerate(steps):
        if step == "ask":
            asked.append(guard.complete(a_request(str(number), timeout_seconds=which + 1)))
            results.append(watched(asked[-1]))
        elif step == "advance":
            clock.advance(which * 4)
        elif step == "cancel" and asked:
            asked[which % len(asked)].cancel()
        elif open_replies := [reply for _, reply in model.asked if not reply.called]:
            reply = open_replies[which % len(open_replies)]
            reply.callback(HELLO) if step == "answer" else reply.errback(DEAD)
        assert 0 <= guard.out <= 2
    for _ in range(2):
        clock.advance(100)
    assert (guard.out, guard.waiting) == (0, 0)
    assert all(len(result) == 1 for result in results)
    assert not clock.getDelayedCalls()
    assert guard.breaker.admits


def test_broken_real_server_is_left_alone_and_recovers(
    server: StubServer, model: Making, reactor: Handover, clock: Clock
) -> None:
    server.behaves(fails(503), fails(503), fails(503), answers("Here again."))
    guard = guarded(model(), clock)
    for _ in range(4):
        assert isinstance(reactor.outcome_of(guard.complete(a_request())), ModelUnavailable)
    assert len(server.requests) == 3
    clock.advance(31)
    assert reactor.outcome_of(guard.complete(a_request())).text == "Here again."
    guard.close()


@pytest.mark.parametrize("fault", [one for one in Fault if one is not Fault.TEMPORARY])
def test_refusal_of_any_kind_keeps_the_breaker_closed(clock: Clock, fault: Fault) -> None:
    error = ModelRefused("tiny", 500, "Jinja", fault=fault)
    guard = guarded(ScriptedModel([error] * 9), clock)
    for _ in range(9):
        assert outcome(guard.complete(a_request())) is error
    assert guard.breaker.state == "closed"


def test_npc_whose_prompt_breaks_a_server_does_not_silence_others(clock: Clock) -> None:
    def answer(request: ChatRequest) -> Any:
        oren = request.cache_key == "npc-1"
        return ModelUnavailable("tiny", "odd", status=500) if oren else "Aye."

    guard = guarded(ScriptedModel(answer), clock)
    for _ in range(9):
        assert isinstance(outcome(guard.complete(a_request(cache_key="npc-1"))), ModelUnavailable)
    assert outcome(guard.complete(a_request(cache_key="npc-2"))).text == "Aye."


@pytest.mark.parametrize("status", [502, 503, None])
def test_unreachable_server_opens_the_breaker_for_one_npc(clock: Clock, status: int | None) -> None:
    error = ModelUnavailable("tiny", "down", status=status)
    guard = guarded(ScriptedModel([error] * 3), clock)
    for _ in range(3):
        assert isinstance(outcome(guard.complete(a_request(cache_key="npc-1"))), ModelUnavailable)
    assert guard.breaker.state == "open"
