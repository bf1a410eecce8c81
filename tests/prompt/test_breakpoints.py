"""The cache account: what stays the same from prompt to prompt, and what broke it."""

import pytest

from evennia_ai.prompt.tokens import ESTIMATE
from tests.prompt.builders import a_component, a_history, injected, the_prompt

ROOM_RULES = a_component("Rules.", id=1, key="rules")


@pytest.mark.req("S2-06")
def test_the_head_ends_at_the_last_message_before_the_history() -> None:
    mood = a_component("Mood.", id=1201, key="mood")
    assert the_prompt([ROOM_RULES, mood], history=a_history(3)).breakpoints == (1, 4)


@pytest.mark.req("S2-06")
def test_a_moving_injection_ends_what_can_be_cached() -> None:
    prompt = the_prompt([ROOM_RULES, injected("note", 1)], history=a_history(3))
    assert [m.injected for m in prompt.messages] == [False, False, False, True, False]
    assert prompt.breakpoints == (0, 2)


@pytest.mark.req("S2-06")
def test_the_event_and_the_dynamic_block_are_never_cached() -> None:
    weather = a_component("Rain.", key="weather", volatile=True)
    prompt = the_prompt([ROOM_RULES, weather], history=a_history(2), event="now")
    assert [m.block for m in prompt.messages][-2:] == ["dynamic", "event"]
    assert prompt.breakpoints == (0, 2)


def test_an_empty_prompt_has_no_breakpoints() -> None:
    prompt = the_prompt()
    assert (prompt.breakpoints, prompt.stable_tokens) == ((), 0)


def test_stable_tokens_are_those_up_to_the_last_breakpoint() -> None:
    prompt = the_prompt([ROOM_RULES], history=a_history(2), event="now")
    assert prompt.stable_tokens == sum(m.tokens(ESTIMATE) for m in prompt.messages[:3])


def test_a_grown_history_shares_its_whole_prefix() -> None:
    older = the_prompt([ROOM_RULES], history=a_history(4))
    newer = the_prompt([ROOM_RULES], history=a_history(6))
    account = newer.account(older.messages)
    assert (account.shared_messages, account.broken_by) == (5, None)


def test_the_first_piece_that_differs_is_named() -> None:
    older = the_prompt([ROOM_RULES, a_component("Calm.", key="mood")], history=a_history(2))
    newer = the_prompt([ROOM_RULES, a_component("Angry.", key="mood")], history=a_history(2))
    account = newer.account(older.messages)
    assert (account.shared_messages, account.broken_by) == (1, "component:mood")


def test_the_head_does_not_change_with_the_facts_of_a_request() -> None:
    """Message 0 and all before the history hold nothing request-scoped in the cache layout."""
    for hour in ("noon", "dusk"):
        facts = a_component(f"It is {hour}.", key="time", volatile=True)
        prompt = the_prompt([ROOM_RULES, facts], history=a_history(2), event=hour)
        assert [m.content for m in prompt.messages[:1]] == ["Rules."]
        assert hour in prompt.messages[-2].content
