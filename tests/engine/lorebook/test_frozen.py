"""Tests of frozen books: an active entry is sent once and stays where it was sent."""

from dataclasses import replace
from typing import Any

from evennia_ai.engine.prompt.budget import BudgetRules
from evennia_ai.engine.prompt.expansion import ComponentSet
from evennia_ai.engine.prompt.prompt import Prompt
from evennia_ai.engine.prompt.registry import with_statics
from tests.engine.lorebook.builders import a_book, an_entry
from tests.engine.prompt.builders import a_component, texts, verdicts_of
from tests.engine.prompt.chats import Chat, shared, staying

RULES = a_component("Rules.", id=1, key="rules")
COIN = an_entry("Coins are cut from shells.", keys=["coin"])


def a_chat(*entries: dict[str, Any], **options: Any) -> Chat:
    mode = options.pop("mode", "frozen")
    return Chat([RULES], books=(a_book(*(entries or (COIN,)), mode=mode),), **options)


def times(prompt: Prompt, text: str = "Coins are cut from shells.") -> int:
    return texts(prompt).count(text)


def test_frozen_entry_is_its_own_message_before_the_event() -> None:
    prompt = a_chat().turn("A coin?", facts="It rains.")
    assert texts(prompt) == ["Rules.", "Coins are cut from shells.", "It rains.", "A coin?"]
    assert staying(prompt) == [("lore:book#0", "Coins are cut from shells.")]


def test_frozen_entry_is_not_sent_again_while_it_is_in_the_history() -> None:
    chat = a_chat()
    first = chat.turn("A coin?")
    second = chat.turn("Which coin?")
    assert texts(second)[:4] == ["Rules.", "Coins are cut from shells.", "A coin?", "Aye."]
    assert times(second) == 1
    assert shared(first, second) == len(first.messages)


def test_verdict_says_where_a_frozen_entry_is() -> None:
    chat = a_chat()
    chat.turn("A coin?")
    prompt = chat.turn("Which coin?")
    placed = verdicts_of(prompt, "lore:book#0")[-1]
    assert placed == ("place", True, "already in the history: 2 messages follow")


def test_frozen_entry_stays_when_no_key_activates_it() -> None:
    chat = a_chat()
    chat.turn("A coin?")
    assert times(chat.say(10)) == 1


def test_frozen_entry_is_sent_again_in_the_prompt_that_cuts_it_away() -> None:
    chat = a_chat(limit=120)
    prompts = [chat.turn("Another coin for the ferry?") for _ in range(25)]
    assert any(prompt.cut for prompt in prompts)
    assert {times(prompt) for prompt in prompts} == {1}
    assert all(prompt.tokens <= 120 for prompt in prompts)


def test_frozen_entry_waits_for_a_key_again_after_its_message_left_the_history() -> None:
    chat = a_chat(limit=120)
    chat.turn("A coin?")
    prompts = [chat.turn("and so many words about the sea") for _ in range(20)]
    assert times(prompts[-1]) == 0
    assert times(chat.turn("A coin?")) == 1


def test_frozen_entry_in_the_history_activates_no_entry() -> None:
    chat = a_chat(an_entry("Shells.", keys=["coin"]), an_entry("Of shells.", keys=["shells"]))
    chat.turn("A coin?")
    late = chat.say(10)
    assert not any(v.kept for v in late.verdicts if v.stage == "activate")


def test_frozen_entries_keep_the_order_of_the_book() -> None:
    one = an_entry("One.", keys=["coin"], insertion_order=2)
    two = an_entry("Two.", keys=["coin"], insertion_order=1)
    prompt = a_chat(one, two).turn("A coin?")
    assert [text for _, text in staying(prompt)] == ["Two.", "One."]


def test_edited_frozen_entry_is_sent_again() -> None:
    chat = a_chat()
    chat.turn("A coin?")
    edited = a_book(an_entry("Coins are gone.", keys=["coin"]), mode="frozen", revision=2)
    prompt = chat.turn("A coin?", books=(edited,))
    assert [text for _, text in staying(prompt)] == [COIN["content"], "Coins are gone."]


def test_edit_of_another_entry_sends_no_frozen_entry_again() -> None:
    chat = a_chat()
    chat.turn("A coin?")
    same = a_book(COIN, an_entry("New.", keys=["moon"]), mode="frozen", revision=2)
    assert times(chat.turn("A coin?", books=(same,))) == 1


def test_changed_macro_value_sends_no_frozen_entry_again() -> None:
    chat = a_chat(an_entry("{{speaker}} has {{roll:1000000}} coins.", keys=["coin"]))
    chat.turn("A coin?")
    assert len(staying(chat.turn("A coin?"))) == 1


def test_constant_entry_of_a_frozen_book_stays_before_the_history() -> None:
    prompt = a_chat(an_entry("Always.", keys=[], constant=True)).turn("A coin?")
    assert texts(prompt) == ["Rules.", "Always.", "A coin?"]
    assert staying(prompt) == []


def test_entry_with_a_depth_is_not_frozen() -> None:
    chat = a_chat(an_entry("@@depth 1\nDeep.", keys=["coin"]))
    chat.turn("A coin?")
    prompt = chat.turn("A coin?")
    assert texts(prompt) == ["Rules.", "A coin?", "Deep.", "Aye.", "A coin?"]
    assert staying(prompt) == []


def test_frozen_book_is_floating_in_the_classic_layout() -> None:
    prompt = a_chat(layout="classic").turn("A coin?")
    assert texts(prompt) == ["Rules.", "Coins are cut from shells.", "A coin?"]
    assert staying(prompt) == []


def test_no_entry_is_frozen_without_the_dynamic_message() -> None:
    off = [c.changed(enabled=c.key != "dynamic_context") for c in with_statics([RULES])]
    prompt = a_chat().turn("A coin?", components=ComponentSet(off))
    assert staying(prompt) == []
    assert verdicts_of(prompt, "lore:book#0")[-1][2] == "component dynamic_context is disabled"


def test_floating_entry_is_sent_in_every_prompt() -> None:
    chat = a_chat(mode="floating")
    chat.turn("A coin?")
    prompt = chat.turn("Which coin?")
    assert texts(prompt)[-2:] == ["Coins are cut from shells.", "Which coin?"]


def test_frozen_entry_that_does_not_fit_is_sent_when_it_fits() -> None:
    chat = a_chat(an_entry("word " * 200, keys=["coin"]))
    rules = chat.inputs.rules
    small = replace(rules, budget=BudgetRules(limit_tokens=60))
    assert staying(chat.turn("A coin?", rules=small)) == []
    assert len(staying(chat.turn("A coin?"))) == 1
