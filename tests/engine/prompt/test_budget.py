"""The token budget: tiers, reserves, dialogue examples, and how the history is cut."""

import pytest

from evennia_ai.engine.compose import compose
from evennia_ai.engine.errors import BudgetError
from evennia_ai.engine.inputs import ComposeRules, Inputs
from evennia_ai.engine.prompt.budget import BudgetRules, Reserve
from evennia_ai.engine.prompt.expansion import ComponentSet
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import Message, event_message, said
from evennia_ai.engine.prompt.prompt import Prompt
from evennia_ai.engine.prompt.registry import with_statics
from evennia_ai.engine.prompt.tokens import ratio_counter
from tests.engine.prompt.builders import a_component, a_tool_pair, injected, texts, verdicts_of

# One token for each character and four for each message: a text of 6 characters costs 10. Every
# prompt costs 3.
LETTERS = ratio_counter(1)


def the_prompt(
    *components: object,
    limit: int,
    history: list[Message] | None = None,
    event: str | None = None,
    cut: int = 0,
    keep_percent: int = 60,
    **reserves: Reserve,
) -> Prompt:
    budget = BudgetRules(limit_tokens=limit, keep_percent=keep_percent, reserves=reserves)
    return compose(
        Inputs(
            components=ComponentSet(with_statics(list(components))),
            rules=ComposeRules(budget=budget, counter=LETTERS),
            history=History(history or []),
            event=event_message(event) if event else None,
            cut=cut,
        )
    )


def messages(count: int) -> list[Message]:
    """Return `count` messages of 10 tokens each."""
    return [said("user", f"m{i:05}") for i in range(1, count + 1)]


def test_token_limit_of_zero_is_refused_with_the_required_texts() -> None:
    vital = a_component("vital!", key="vital", required=True)
    with pytest.raises(BudgetError) as caught:
        the_prompt(vital, limit=0, event="hello!")
    assert caught.value.required == (("framing", 3), ("component:vital", 10), ("event", 10))
    assert "need 23 tokens and the limit is 0" in str(caught.value)


def test_prompt_of_exactly_the_limit_fits() -> None:
    prompt = the_prompt(a_component("sixsix"), limit=33, history=messages(2))
    assert (prompt.tokens, len(prompt.messages)) == (33, 3)


def test_text_that_does_not_fit_is_skipped_and_the_next_is_tried() -> None:
    large = a_component("x" * 50, id=1, key="large", priority=90)
    small = a_component("small!", id=2, key="small", priority=10)
    prompt = the_prompt(large, small, limit=30)
    assert texts(prompt) == ["small!"]
    assert verdicts_of(prompt, "component:large") == [
        ("budget", False, "does not fit: needs 54 tokens, 27 were left")
    ]


def test_high_priority_is_kept_before_low_in_any_order() -> None:
    low = a_component("low...", id=1, key="low", priority=1)
    high = injected("high..", 3, id=9, key="high", priority=2, injection_order=10**6)
    assert texts(the_prompt(low, high, limit=20)) == ["high.."]


def test_required_texts_come_before_any_priority() -> None:
    high = a_component("high..", id=1, key="high", priority=10**6)
    vital = a_component("vital.", id=2, key="vital", priority=-5, required=True)
    assert texts(the_prompt(high, vital, limit=20)) == ["vital."]


def test_component_with_a_reserve_keeps_its_reserved_minimum_of_tokens() -> None:
    words = a_component("one two three four five", id=1, key="words")
    rival = a_component("r" * 30, id=2, key="rival", priority=10**6)
    prompt = the_prompt(rival, words, limit=40, words=Reserve(min_tokens=15))
    assert texts(prompt) == ["one two three four five"]
    short = the_prompt(rival, words, limit=20, words=Reserve(min_tokens=15))
    assert texts(short) == ["one two three"]


def test_component_with_a_reserve_never_exceeds_its_maximum_of_tokens() -> None:
    words = a_component("one two three four five", id=1, key="words")
    prompt = the_prompt(words, limit=999, words=Reserve(max_tokens=12))
    assert texts(prompt) == ["one two"]
    reason = verdicts_of(prompt, "component:words")[0][2]
    assert reason == "fits; cut to its share (27 tokens whole), 996 were left"


def test_flexible_texts_leave_the_tokens_reserved_for_the_history() -> None:
    rival = a_component("r" * 30, id=1, key="rival")
    reserve = {"conversation_history": Reserve(min_tokens=20)}
    prompt = the_prompt(rival, limit=50, history=messages(2), **reserve)
    assert texts(prompt) == ["m00001", "m00002"]


@pytest.mark.req("S2-19")
def test_history_with_a_reserve_never_exceeds_its_maximum_of_tokens() -> None:
    reserve = {"conversation_history": Reserve(max_tokens=25)}
    prompt = the_prompt(limit=999, history=messages(9), keep_percent=100, **reserve)
    assert texts(prompt) == ["m00008", "m00009"]


@pytest.mark.req("S2-04", "S2-19")
def test_full_history_is_shortened_to_keep_percent_and_then_grows_again() -> None:
    prompt = the_prompt(limit=103, history=messages(11))
    assert (prompt.cut, len(prompt.messages)) == (5, 6)
    grown = the_prompt(limit=103, history=messages(15), cut=prompt.cut)
    assert (grown.cut, len(grown.messages)) == (5, 10)
    assert the_prompt(limit=103, history=messages(16), cut=5).cut == 10


@pytest.mark.req("S2-04")
def test_history_never_shows_messages_again_that_the_previous_prompt_dropped() -> None:
    assert the_prompt(limit=9999, history=messages(9), cut=4).cut == 4


@pytest.mark.req("S2-19")
def test_history_keeps_all_messages_that_fit_when_keep_percent_is_100() -> None:
    prompt = the_prompt(limit=103, history=messages(12), keep_percent=100)
    assert texts(prompt)[0] == "m00003"


@pytest.mark.req("S2-05", "S2-19")
def test_tool_result_is_cut_away_with_its_call() -> None:
    pair = a_tool_pair(1)
    history = [*pair, *messages(1)]
    tokens = sum(message.tokens(LETTERS) for message in history)
    prompt = the_prompt(limit=3 + tokens - 1, history=history, keep_percent=100)
    assert texts(prompt) == ["m00001"]


def test_examples_are_left_out_before_any_history_message() -> None:
    examples = a_component("x" * 20, id=1060, key="dialogue_examples", priority=10**6)
    assert len(the_prompt(examples, limit=47, history=messages(2)).messages) == 3
    tight = the_prompt(examples, limit=40, history=messages(2))
    assert texts(tight) == ["m00001", "m00002"]
    assert verdicts_of(tight, "component:dialogue_examples") == [
        ("budget", False, "gives way to the history: needs 24 tokens, 17 were left")
    ]


def test_dialogue_examples_are_left_out_when_the_history_does_not_fit_completely() -> None:
    examples = a_component("x" * 20, id=1060, key="dialogue_examples")
    cut = the_prompt(examples, limit=103, history=messages(11))
    assert (cut.cut, len(cut.messages), cut.tokens) == (5, 6, 63)
    assert verdicts_of(cut, "component:dialogue_examples") == [
        ("budget", False, "gives way to the history: needs 24 tokens, 0 were left")
    ]


def test_kept_examples_count_against_the_token_budget() -> None:
    examples = a_component("x" * 20, id=1060, key="dialogue_examples")
    prompt = the_prompt(examples, limit=99, history=messages(2))
    assert prompt.tokens == sum(prompt.by_origin.values()) == 3 + 24 + 20


def test_tokens_of_a_shared_message_include_its_separators() -> None:
    facts = [a_component("x" * 10, id=i, key=f"fact{i}", volatile=True) for i in range(1, 5)]
    prompt = the_prompt(*facts, limit=999)
    (shared,) = prompt.messages
    assert shared.tokens(LETTERS) == 4 + 4 * 10 + 3 * 2
    assert prompt.tokens >= LETTERS.per_prompt + shared.tokens(LETTERS)


def test_text_is_left_out_when_cutting_would_leave_less_than_its_reserved_minimum() -> None:
    words = a_component("one two three four five", id=1, key="words")
    prompt = the_prompt(words, limit=20, words=Reserve(min_tokens=25))
    assert texts(prompt) == []
    assert verdicts_of(prompt, "component:words") == [
        ("budget", False, "does not fit: needs 27 tokens, 17 were left")
    ]


def test_shortened_text_leaves_tokens_for_other_texts() -> None:
    words = a_component("one two three four five", id=1, key="words")
    rival = a_component("rival!", id=2, key="rival")
    prompt = the_prompt(words, rival, limit=24, words=Reserve(max_tokens=12))
    assert texts(prompt) == ["one two", "rival!"]
    assert prompt.tokens == 3 + 11 + 10


@pytest.mark.req("S2-19")
def test_texts_injected_into_the_history_take_their_tokens_before_history_messages() -> None:
    prompt = the_prompt(injected("note!!", 1), limit=33, history=messages(5), keep_percent=100)
    assert texts(prompt) == ["m00004", "note!!", "m00005"]
    assert prompt.tokens == 33


def test_budget_gives_one_verdict_on_the_whole_history() -> None:
    prompt = the_prompt(limit=103, history=messages(11))
    assert verdicts_of(prompt, "history") == [
        ("budget", True, "kept the newest 6 of 11 messages; cut before message 0")
    ]
