"""The cache account: the common prefix of successive prompts, and the reason why it ends."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import pytest

from evennia_ai.engine.inputs import ComposeRules
from evennia_ai.engine.prompt.budget import BudgetRules
from evennia_ai.engine.prompt.cache_account import MEANINGS, CacheAccount, Reason
from evennia_ai.engine.prompt.cache_account import account_for_prefix as account_of
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.expansion import ComponentSet
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import said
from evennia_ai.engine.prompt.notes import AuthorsNote
from evennia_ai.engine.prompt.registry import with_statics
from evennia_ai.engine.prompt.tokens import ESTIMATE
from tests.engine.lorebook.builders import a_book, an_entry
from tests.engine.prompt.builders import a_component, a_history, injected, the_prompt
from tests.engine.prompt.chats import Chat

RULES = a_component("Rules.", id=1, key="rules")
MOOD = a_component("{{mood}}", id=1201, key="mood")


def the_account(chat: Chat) -> CacheAccount:
    """Return the cache account of the newest prompt compared with the one before it."""
    older, newer = chat.prompts[-2:]
    return newer.account(older.sent)


def reason(chat: Chat) -> tuple[str | None, str | None]:
    account = the_account(chat)
    return account.reason, account.broken_by


def the_components(*components: Any) -> ComponentSet:
    return ComponentSet(with_statics(components))


def with_rules(chat: Chat, **changed: Any) -> ComposeRules:
    return replace(chat.inputs.rules, **changed)


def test_growing_history_does_not_break_the_cached_prefix() -> None:
    chat = Chat([RULES])
    chat.say(4)
    assert reason(chat) == ("append", None)


@pytest.mark.req("S2-18")
def test_lost_facts_of_the_previous_turn_break_the_prefix_as_dynamic() -> None:
    chat = Chat([RULES])
    chat.say(3, facts="It rains.")
    assert reason(chat) == ("dynamic", "block:facts")


def test_first_facts_do_not_break_the_cached_prefix() -> None:
    chat = Chat([RULES])
    chat.say(2)
    chat.turn("three", facts="It rains.")
    assert reason(chat) == ("append", None)


@pytest.mark.req("S2-18")
def test_prefix_break_is_dynamic_when_a_volatile_component_changes_in_classic() -> None:
    scene = a_component("{{scene}}", id=1501, key="scene", volatile=True)
    chat = Chat([RULES, scene], layout="classic")
    chat.turn("one", values={"scene": "Rain."})
    chat.turn("two", values={"scene": "Sun."})
    assert reason(chat) == ("dynamic", "component:scene")


@pytest.mark.req("S2-18")
def test_prefix_break_is_moving_when_a_text_is_injected_by_depth() -> None:
    chat = Chat([RULES, injected("A note.", 2, key="tone")])
    chat.say(4)
    assert reason(chat) == ("moving", "component:tone")


def test_prefix_break_is_lore_when_an_entry_at_a_depth_activates() -> None:
    chat = Chat([RULES], books=(a_book(an_entry("@@depth 2\nCoins.")),))
    chat.say(3)
    chat.turn("a coin")
    assert reason(chat) == ("lore", "lore:book#0")


@pytest.mark.parametrize("turns", [2, 3])
def test_prefix_break_is_moving_when_a_text_is_after_the_history(turns: int) -> None:
    chat = Chat([RULES, a_component("Be brief.", id=5011, key="brief")])
    chat.say(turns)
    assert reason(chat) == ("moving", "component:brief")


@pytest.mark.req("S2-18")
def test_prefix_break_is_step_trim_when_old_messages_leave_the_history() -> None:
    chat = Chat([RULES], limit=90)
    while chat.say(1).cut == 0:
        pass
    assert reason(chat) == ("step_trim", "history")


def test_prefix_break_is_step_trim_when_old_messages_left_the_history_below_a_deep_text() -> None:
    chat = Chat([RULES, injected("Deep.", 99)], limit=90)
    while chat.say(1).cut == 0:
        pass
    assert reason(chat) == ("step_trim", "history")


def test_prefix_break_is_step_trim_when_examples_are_left_out() -> None:
    text = "<START>\nWhere is the rope?\n<START>\nThe tide is in."
    chat = Chat([RULES, a_component(text, id=1060, key="dialogue_examples")], limit=70)
    chat.say(1)
    while the_account_of(chat) == "append":
        pass
    assert reason(chat) == ("step_trim", "component:dialogue_examples")


def the_account_of(chat: Chat) -> str | None:
    chat.say(1)
    return the_account(chat).reason


@pytest.mark.req("S2-18")
def test_prefix_break_is_re_anchored_when_an_anchored_note_moves() -> None:
    chat = Chat([RULES], notes=[AuthorsNote(content="A note.", mode="anchored")])
    reasons = []
    chat.say(3)
    for _ in range(12):
        chat.say(1)
        reasons.append(reason(chat))
    assert set(reasons) == {("append", None), ("re_anchored", "note:0")}


@pytest.mark.req("S2-18")
def test_prefix_break_is_compaction_when_the_segment_changes() -> None:
    chat = Chat([RULES])
    chat.say(4)
    summary = said("user", "They spoke of the sea.")
    chat.turn("five", history=History([summary, *a_history(2)], segment=1))
    assert reason(chat) == ("compaction", "history")


@pytest.mark.req("S2-18")
def test_prefix_break_is_control_when_a_builder_began_the_segment() -> None:
    chat = Chat([RULES])
    chat.say(4)
    chat.turn("five", history=History(a_history(2), segment=1))
    older, newer = chat.prompts[-2:]
    controlled = replace(newer.sent, controlled_from=1)
    made = account_of(older.sent, controlled, counter=ESTIMATE, components=newer.components)
    assert made.reason == "control"


@pytest.mark.req("S2-18")
def test_prefix_break_is_revision_when_a_component_was_edited() -> None:
    chat = Chat([replace(RULES, revision=1)])
    chat.say(2)
    edited = the_components(replace(RULES, content="New rules.", revision=2))
    chat.turn("three", components=edited)
    assert reason(chat) == ("revision", "component:rules")


@pytest.mark.req("S2-18")
def test_prefix_break_is_revision_when_a_component_was_switched_off() -> None:
    chat = Chat([RULES, a_component("Calm.", key="mood")])
    chat.say(2)
    chat.turn("three", components=the_components(RULES, a_component(key="mood", enabled=False)))
    assert reason(chat) == ("revision", "component:mood")


def test_prefix_break_is_revision_when_a_component_was_created() -> None:
    chat = Chat([RULES])
    chat.say(2)
    chat.turn("three", components=the_components(RULES, a_component("Calm.", key="mood")))
    assert reason(chat) == ("revision", "component:mood")


@pytest.mark.req("S2-18")
def test_prefix_break_is_revision_when_a_card_was_edited() -> None:
    chat = Chat([RULES])
    chat.say(2)
    older = chat.prompts[-1].sent
    edited = chat.turn("three", components=the_components(replace(RULES, content="Edited.")))
    account = edited.account(replace(older, revisions={"card": "1"}))
    assert (older.revisions, account.reason) == ({}, "revision")


def test_prefix_break_is_revision_when_constant_lore_was_edited() -> None:
    entry = an_entry("The sea.", keys=[], constant=True)
    chat = Chat([RULES], books=(a_book(entry, revision=1),))
    chat.say(2)
    edited = a_book({**entry, "content": "The tide."}, revision=2)
    chat.turn("three", books=(edited,))
    assert reason(chat) == ("revision", "lore:book#0")


def test_prefix_break_is_lore_when_an_entry_before_the_history_activates_in_classic() -> None:
    chat = Chat([RULES], books=(a_book(an_entry("Coins.")),), layout="classic")
    chat.say(2)
    chat.turn("a coin")
    assert reason(chat) == ("lore", "lore:book#0")


def test_prefix_break_is_lore_when_an_outlet_changes_in_the_layout_classic() -> None:
    entry = an_entry("Coins.", extensions={"position": 7, "outlet_name": "money"})
    reader = a_component("Money: {{outlet::money}}", key="reader")
    chat = Chat([RULES, reader], books=(a_book(entry),), layout="classic")
    chat.say(2)
    chat.turn("a coin")
    assert reason(chat) == ("lore", "component:reader")


@pytest.mark.req("S2-18")
def test_prefix_break_is_values_when_a_named_value_changes() -> None:
    chat = Chat([RULES, MOOD])
    chat.turn("one", values={"mood": "Calm."})
    chat.turn("two", values={"mood": "Angry."})
    assert reason(chat) == ("values", "component:mood")


@pytest.mark.req("S2-18")
def test_prefix_break_is_dice_when_a_text_has_random_macros() -> None:
    chat = Chat([RULES, a_component("{{roll:1000000}}", key="luck")])
    chat.say(1)
    chat.turn("two", rules=with_rules(chat, dice=Dice(turn="2", conversation="1")))
    assert reason(chat) == ("dice", "component:luck")


@pytest.mark.req("S2-18")
def test_prefix_break_is_settings_when_the_token_limit_changes() -> None:
    chat = Chat([RULES, injected("A note.", 2)])
    chat.say(3)
    chat.turn("four", rules=with_rules(chat, budget=BudgetRules(limit_tokens=5000)))
    assert the_account(chat).reason == "settings"


def test_prefix_break_is_order_when_a_message_is_inserted_before_sent_ones() -> None:
    chat = Chat([RULES])
    chat.turn("one")
    before, answer = list(chat.history)
    chat.turn("three", history=History([said("user", "Psst."), before, answer]))
    assert reason(chat) == ("order", "history")


def test_prefix_break_is_order_when_a_message_comes_between_others() -> None:
    chat = Chat([RULES])
    chat.say(3)
    first, *rest = chat.history
    chat.turn("four", history=History([first, said("user", "Psst."), *rest]))
    assert reason(chat) == ("order", "history")


Rewrite = Callable[[History], list[Any]]


@pytest.mark.req("S2-18")
@pytest.mark.parametrize(
    "rewritten",
    [
        lambda history: [*history][1:],
        lambda history: [said("user", "Something else."), *[*history][1:]],
        lambda history: [],
    ],
    ids=["forgotten", "rewritten", "emptied"],
)
def test_prefix_break_is_undeclared_when_a_history_was_rewritten(rewritten: Rewrite) -> None:
    chat = Chat([RULES])
    chat.say(3)
    chat.turn("four", history=History(rewritten(chat.history)), event=None)
    assert the_account(chat).reason == "undeclared"


@pytest.mark.req("S2-18")
def test_prefix_break_is_undeclared_when_a_text_changed_without_a_cause() -> None:
    chat = Chat([RULES])
    chat.say(2)
    chat.turn("three", components=the_components(replace(RULES, content="Other rules.")))
    assert reason(chat) == ("undeclared", "component:rules")


def test_prefix_break_between_bare_messages_has_no_reason() -> None:
    chat = Chat([RULES, MOOD])
    older = chat.turn("one", values={"mood": "Calm."})
    newer = chat.turn("two", values={"mood": "Angry."})
    account = newer.account(older.messages)
    assert (account.reason, account.broken_by) == (None, "component:mood")


@pytest.mark.req("S2-18")
def test_every_reason_of_a_prefix_break_is_explained() -> None:
    assert tuple(MEANINGS) == get_args(Reason)


ROOM_RULES = a_component("Rules.", id=1, key="rules")


@pytest.mark.req("S2-06")
def test_first_cache_breakpoint_is_after_the_last_message_before_the_history() -> None:
    mood = a_component("Mood.", id=1201, key="mood")
    assert the_prompt([ROOM_RULES, mood], history=a_history(3)).breakpoints == (1, 4)


@pytest.mark.req("S2-06")
def test_no_cache_breakpoint_follows_a_text_that_moves_each_turn() -> None:
    prompt = the_prompt([ROOM_RULES, injected("note", 1)], history=a_history(3))
    assert [m.injected for m in prompt.messages] == [False, False, False, True, False]
    assert prompt.breakpoints == (0, 2)


@pytest.mark.req("S2-06")
def test_event_and_the_dynamic_block_are_never_cached() -> None:
    weather = a_component("Rain.", key="weather", volatile=True)
    prompt = the_prompt([ROOM_RULES, weather], history=a_history(2), event="now")
    assert [m.block for m in prompt.messages][-2:] == ["dynamic", "event"]
    assert prompt.breakpoints == (0, 2)


@pytest.mark.req("S2-06")
def test_cache_breakpoint_precedes_an_anchored_note() -> None:
    note = AuthorsNote(content="A note.", mode="anchored", depth=2)
    prompt = Chat([ROOM_RULES], notes=[note]).turn("now", history=History(a_history(4)))
    assert [m.injected for m in prompt.messages] == [False] * 3 + [True] + [False] * 3
    assert prompt.breakpoints == (0, 2, 5)


def test_empty_prompt_has_no_cache_breakpoints() -> None:
    prompt = the_prompt()
    assert (prompt.breakpoints, prompt.stable_tokens) == ((), 0)


def test_stable_tokens_are_those_up_to_the_last_cache_breakpoint() -> None:
    prompt = the_prompt([ROOM_RULES], history=a_history(2), event="now")
    assert prompt.stable_tokens == sum(m.tokens(ESTIMATE) for m in prompt.messages[:3])


def test_prompt_with_a_grown_history_shares_the_whole_previous_prompt() -> None:
    older = the_prompt([ROOM_RULES], history=a_history(4))
    newer = the_prompt([ROOM_RULES], history=a_history(6))
    account = newer.account(older.messages)
    assert (account.shared_messages, account.broken_by) == (5, None)


def test_cache_account_names_the_first_text_that_differs() -> None:
    older = the_prompt([ROOM_RULES, a_component("Calm.", key="mood")], history=a_history(2))
    newer = the_prompt([ROOM_RULES, a_component("Angry.", key="mood")], history=a_history(2))
    account = newer.account(older.messages)
    assert (account.shared_messages, account.broken_by) == (1, "component:mood")


def test_messages_before_the_history_do_not_change_with_facts_in_the_layout_cache() -> None:
    for hour in ("noon", "dusk"):
        facts = a_component(f"It is {hour}.", key="time", volatile=True)
        prompt = the_prompt([ROOM_RULES, facts], history=a_history(2), event=hour)
        assert [m.content for m in prompt.messages[:1]] == ["Rules."]
        assert hour in prompt.messages[-2].content
