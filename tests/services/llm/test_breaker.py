"""A circuit breaker opens after failures, rests, and lets one probe out."""

from twisted.internet.task import Clock

from tests.services.llm.builders import a_breaker


def test_a_breaker_opens_after_so_many_failures(clock: Clock) -> None:
    breaker = a_breaker(clock)
    for _ in range(2):
        breaker.failed()
    assert (breaker.state, breaker.begin()) == ("closed", True)
    breaker.failed()
    assert (breaker.state, breaker.begin()) == ("open", False)
    assert breaker.retry_in_seconds == 30


def test_failures_far_apart_do_not_open_a_breaker(clock: Clock) -> None:
    breaker = a_breaker(clock)
    for _ in range(10):
        breaker.failed()
        clock.advance(31)
    assert breaker.state == "closed"


def test_a_success_forgets_the_failures_before_it(clock: Clock) -> None:
    breaker = a_breaker(clock)
    for _ in range(5):
        breaker.failed()
        breaker.failed()
        breaker.succeeded()
    assert breaker.state == "closed"


def test_a_rested_breaker_lets_one_probe_out(clock: Clock) -> None:
    breaker = a_breaker(clock, failures=1)
    breaker.failed()
    clock.advance(30)
    assert breaker.state == "half_open"
    assert [breaker.begin(), breaker.begin()] == [True, False]


def test_the_probes_outcome_closes_or_opens_a_breaker(clock: Clock) -> None:
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


def test_a_probe_that_was_given_up_makes_room_for_another(clock: Clock) -> None:
    breaker = a_breaker(clock, failures=1)
    breaker.failed()
    clock.advance(30)
    breaker.begin()
    breaker.abandoned()
    assert breaker.begin()


def test_late_outcomes_neither_shorten_nor_lengthen_the_rest(clock: Clock) -> None:
    breaker = a_breaker(clock, failures=1)
    breaker.failed()
    clock.advance(10)
    breaker.failed()
    breaker.succeeded()
    assert (breaker.state, breaker.retry_in_seconds) == ("open", 20)


def test_one_asker_alone_does_not_open_a_breaker_for_all_others(clock: Clock) -> None:
    breaker = a_breaker(clock)
    for _ in range(9):
        breaker.failed(asker="npc-1")
    assert breaker.state == "closed"
    breaker.failed(asker="npc-2")
    assert breaker.state == "open"


def test_a_server_that_is_away_opens_a_breaker_whoever_asks(clock: Clock) -> None:
    breaker = a_breaker(clock)
    breaker.failed(asker="npc-1")
    breaker.failed()
    breaker.failed()
    assert breaker.state == "open"
