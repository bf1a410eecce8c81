"""The circuit breaker for summaries: three failures in a row open it; success or time closes it."""

import pytest

from evennia_ai.engine.history.compaction.planning import Breaker
from tests.engine.history.compaction.builders import RULES


def failed(times: int, *, turn: int = 7) -> Breaker:
    breaker = Breaker()
    for _ in range(times):
        breaker = breaker.after_failure(turn, rules=RULES)
    return breaker


@pytest.mark.parametrize(("times", "is_open"), [(0, False), (2, False), (3, True), (4, True)])
def test_summary_breaker_opens_after_three_failures_in_a_row(times, is_open):
    assert failed(times).is_open(7, rules=RULES) is is_open


def test_summary_breaker_counts_failures_from_0_after_a_success():
    breaker = failed(2).after_success().after_failure(8, rules=RULES)

    assert breaker == Breaker(failures=1)


def test_open_summary_breaker_allows_one_attempt_after_its_rest_turns():
    breaker = failed(3, turn=7)

    assert breaker.is_open(26, rules=RULES)
    assert not breaker.is_open(27, rules=RULES)


def test_summary_breaker_opens_again_when_the_allowed_attempt_fails():
    breaker = failed(3, turn=7).after_failure(27, rules=RULES)

    assert breaker.is_open(46, rules=RULES)


def test_summary_breaker_closes_when_the_allowed_attempt_succeeds():
    assert not failed(3).after_success().is_open(8, rules=RULES)


def test_summary_breaker_after_failure_returns_a_new_object():
    breaker = Breaker()
    breaker.after_failure(1, rules=RULES)

    assert breaker == Breaker()
