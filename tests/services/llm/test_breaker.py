"""Test the circuit breaker: it opens after failures, rests, and admits one probe."""

from twisted.internet.task import Clock

from tests.services.llm.builders import a_breaker


def test_breaker_opens_after_enough_failures(clock: Clock) -> None:
    breaker = a_breaker(clock)
    for _ in range(2):
        breaker.failed()
    assert (breaker.state, breaker.begin()) == ("closed", True)
    breaker.failed()
    assert (breaker.state, breaker.begin()) == ("open", False)
    assert breaker.retry_in_seconds == 30


def test_failures_far_apart_do_not_open_the_breaker(clock: Clock) -> None:
    breaker = a_breaker(clock)
    for _ in range(10):
        breaker.failed()
        clock.advance(31)
    assert breaker.state == "closed"


def test_success_resets_the_failures(clock: Clock) -> None:
    breaker = a_breaker(clock)
    for _ in range(5):
        breaker.failed()
        breaker.failed()
        breaker.succeeded()
    assert breaker.state == "closed"


def test_rested_breaker_admits_one_probe(clock: Clock) -> None:
    breaker = a_breaker(clock, failures=1)
    breaker.failed()
    clock.advance(30)
    assert breaker.state == "half_open"
    assert [breaker.begin(), breaker.begin()] == [True, False]


def test_outcome_of_the_probe_closes_or_opens_the_breaker(clock: Clock) -> None:
    breaker = a_breaker(clock, failures=1)
    breaker.failed()
    clock.advance(30)
    breaker.begin()
    breaker.failed()
    assert (breaker.state, breaker.retry_in_seconds) == ("open", 30)
    clock.advance(30)
    breaker.begin()
    breaker.succeeded()
    assert breaker.state == "closed"


def test_cancelled_probe_lets_another_request_be_the_probe(clock: Clock) -> None:
    breaker = a_breaker(clock, failures=1)
    breaker.failed()
    clock.advance(30)
    breaker.begin()
    breaker.abandoned()
    assert breaker.begin()


def test_late_outcomes_do_not_extend_the_breakers_rest(clock: Clock) -> None:
    breaker = a_breaker(clock, failures=1)
    breaker.failed()
    clock.advance(10)
    breaker.failed()
    breaker.succeeded()
    assert (breaker.state, breaker.retry_in_seconds) == ("open", 20)


def test_failures_of_one_asker_do_not_open_the_breaker_for_all(clock: Clock) -> None:
    breaker = a_breaker(clock)
    for _ in range(9):
        breaker.failed(asker="npc-1")
    assert breaker.state == "closed"
    breaker.failed(asker="npc-2")
    assert breaker.state == "open"


def test_unreachable_server_opens_the_breaker_whoever_asks(clock: Clock) -> None:
    breaker = a_breaker(clock)
    breaker.failed(asker="npc-1")
    breaker.failed()
    breaker.failed()
    assert breaker.state == "open"
