"""The whole pipeline: which texts reach the budget, and which have no place in the prompt."""

import re
from dataclasses import replace

import pytest

from evennia_ai.engine.compose import compose, compose_with_lore
from evennia_ai.engine.lorebook.activation.timers import NO_STATE, Clock, LoreState, Spell
from evennia_ai.engine.lorebook.book import Lorebook
from evennia_ai.engine.prompt.blocks import DynamicBlock
from evennia_ai.engine.prompt.components import STATIC_IDS
from evennia_ai.engine.prompt.messages import said
from evennia_ai.engine.prompt.notes import AuthorsNote
from evennia_ai.engine.prompt.prompt import Prompt
from evennia_ai.formats.lorebooks.books import read_book
from tests.engine.lorebook.builders import a_book, an_entry
from tests.engine.prompt.builders import (
    a_component,
    a_history,
    a_tool_pair,
    texts,
    the_inputs,
    the_prompt,
    verdicts_of,
)

NOON = DynamicBlock(key="time", text="It is noon.")


def blocks(prompt: Prompt) -> set[str]:
    return {message.block for message in prompt.messages}


@pytest.mark.parametrize(
    ("key", "block", "item"),
    [
        ("conversation_history", "history", "history"),
        ("dynamic_context", "dynamic", "block:time"),
        ("pending_event", "event", "event"),
        ("tool_result", "tool", "tools"),
    ],
)
def test_texts_are_left_out_with_a_verdict_when_their_component_is_disabled(
    key: str, block: str, item: str
) -> None:
    result = replace(a_tool_pair(1)[1], block="tool", memo={})
    given = {
        "history": a_history(2),
        "event": "now",
        "blocks": (NOON,),
        "tools": (result,),
    }
    off = a_component("", id=STATIC_IDS[key], key=key, enabled=False)
    prompt = the_prompt([off], **given)
    assert block in blocks(the_prompt(**given))
    assert block not in blocks(prompt)
    assert item not in prompt.by_origin
    assert ("expand", False, f"component {key} is disabled") in verdicts_of(prompt, item)


def test_volatile_text_is_left_out_without_the_dynamic_message() -> None:
    off = a_component("", id=5500, key="dynamic_context", enabled=False)
    tide = a_component("Low tide.", id=1301, key="tide", volatile=True)
    prompt = the_prompt([off, tide])
    assert prompt.messages == ()
    assert verdicts_of(prompt, "component:tide") == [
        ("expand", False, "component dynamic_context is disabled")
    ]
    assert texts(the_prompt([off, tide], layout="classic")) == ["Low tide."]


def test_lore_entries_at_a_disabled_component_are_left_out() -> None:
    book = a_book(an_entry("Lamps.", constant=True), an_entry("@@depth 0\nDeep.", constant=True))
    off = a_component("", id=1050, key="world_info_after", enabled=False)
    prompt = the_prompt([off], books=(book,))
    assert texts(prompt) == ["Deep."]
    assert verdicts_of(prompt, "lore:book#0")[-1] == (
        *("expand", False),
        "component world_info_after is disabled",
    )


def test_constant_lore_survives_matched_lore_of_any_priority() -> None:
    constant = an_entry("@@depth 0\nconstant", id=1, keys=[], constant=True, insertion_order=1)
    matched = an_entry("@@depth 0\nmatched!", id=2, insertion_order=900)
    book = read_book({"entries": [matched, constant], "token_budget": 999}, label="book")
    inputs = the_inputs(history=[said("user", "a coin")], books=(book,))
    both = compose(inputs)
    assert sorted(texts(both)) == ["a coin", "constant", "matched!"]
    costs = both.by_origin
    limit = costs["framing"] + costs["lore:book#1"]
    tight = compose_with_lore(
        the_inputs(history=[said("user", "a coin")], books=(book,), limit=limit)
    )
    assert [entry.uid for entry in tight.lore.entries] == ["1", "2"]
    assert texts(tight.prompt) == ["constant"]


def coin_lore(content: str = "Lore.", **extensions: object) -> Lorebook:
    return a_book(an_entry(f"@@depth 0\n{content}", extensions=extensions))


def test_timers_of_lore_are_returned_for_the_next_turn() -> None:
    books = (coin_lore(sticky=2),)
    coin = [said("user", "a coin")]
    first = compose_with_lore(the_inputs(history=coin, books=books, clock=Clock(turns=1)))
    assert first.lore.after.sticky == {"book#0": Spell(1, 3)}
    for turns, there in ((2, True), (3, False)):
        later = the_inputs(
            history=[said("user", "hm")],
            books=books,
            clock=Clock(turns=turns),
            lore_state=first.lore.after,
        )
        assert ("Lore." in texts(compose(later))) == there


def test_timers_of_lore_are_kept_without_books() -> None:
    state = LoreState(sticky={"book#0": Spell(1, 9)})
    assert compose_with_lore(the_inputs(lore_state=state)).lore.after is state
    assert compose_with_lore(the_inputs()).lore.after is NO_STATE


def test_composing_twice_gives_the_same_prompt() -> None:
    inputs = the_inputs(
        history=[said("user", "a coin")],
        books=(coin_lore("{{random:a,b,c}}", sticky=2, probability=50),),
        clock=Clock(turns=1),
    )
    first, *others = (compose_with_lore(inputs) for _ in range(3))
    for other in others:
        assert other.prompt.sha256 == first.prompt.sha256
        assert other.prompt.verdicts == first.prompt.verdicts
        assert other.lore.after == first.lore.after


def test_facts_of_the_game_decide_conditions_of_lore_entries() -> None:
    books = (coin_lore(evennia_ai={"zones": ["harbour"]}),)
    for zones, there in ((("harbour",), True), (("hill",), False), ((), False)):
        facts = {"room.zones": zones} if zones else {}
        prompt = compose(the_inputs(history=[said("user", "coin")], books=books, facts=facts))
        assert ("Lore." in texts(prompt)) == there


def test_entries_may_ask_to_search_texts_outside_the_conversation() -> None:
    books = (coin_lore(evennia_ai={"sources": ["room"]}),)
    assert texts(compose(the_inputs(books=books, sources={"room": "A coin lies here."}))) == [
        "Lore."
    ]
    assert texts(compose(the_inputs(books=books, sources={"persona": "A coin lies here."}))) == []


@pytest.mark.parametrize(
    ("note", "there"),
    [
        (AuthorsNote(content="A {{thing}}.", scanned=True), True),
        (AuthorsNote(content="A {{thing}}."), False),
        (AuthorsNote(content="A {{thing}}.", scanned=True, every=2), False),
        (AuthorsNote(content="A {{nothing}}.", scanned=True), False),
    ],
)
def test_scanned_note_activates_lore_with_its_expanded_text(note: AuthorsNote, there: bool) -> None:
    prompt = the_prompt(notes=[note], books=(coin_lore(),), event="hm", values={"thing": "coin"})
    assert ("Lore." in texts(prompt)) == there


@pytest.mark.req("S3-09")
def test_note_that_is_off_is_left_out_with_a_verdict() -> None:
    off = AuthorsNote(content="Hush.", key="scene", off="off: note/on Oren/scene turns it on")
    prompt = the_prompt(notes=[off, AuthorsNote(content="Aye.", key="note")])
    (said_of_it,) = (one for one in prompt.verdicts if one.item == "note:scene")
    assert (said_of_it.kept, said_of_it.reason) == (False, "off: note/on Oren/scene turns it on")
    assert texts(prompt) == ["Aye."]


def test_lore_is_activated_before_history_is_cut_to_the_budget() -> None:
    history = [said("user", "a coin"), *a_history(3, words=40)]
    roomy = the_prompt(history=history, books=(coin_lore(),))
    tight = the_prompt(history=history, books=(coin_lore(),), limit=90)
    assert texts(roomy)[0] == "a coin"
    assert "a coin" not in texts(tight)
    assert "Lore." in texts(tight)


def test_budget_verdict_says_that_an_active_lore_entry_does_not_fit() -> None:
    book = a_book(an_entry(f"@@depth 0\n{'word ' * 30}"), token_budget=999)
    prompt = the_prompt(history=[said("user", "a coin")], books=(book,), limit=30)
    told = verdicts_of(prompt, "lore:book#0")
    assert [(stage, kept) for stage, kept, _ in told] == [("activate", True), ("budget", False)]


def test_budget_verdict_on_a_lore_entry_has_the_cause_of_its_activation():
    rules = [a_component(f"Rule {n}.", id=n, key=f"rule{n}") for n in (10, 11, 12)]
    book = a_book(an_entry("@@depth 0\nLore.", keys=["coin"]))
    prompt = the_prompt(rules, history=[said("user", "A coin.")], books=(book,))
    causes = {v.stage: v.cause for v in prompt.touched if v.item.startswith("lore:") and v.cause}
    assert causes == dict.fromkeys(("activate", "budget"), "key 'coin' in message 3 at 2-6")


@pytest.mark.parametrize("limit", [2000, 110])
def test_message_has_the_same_number_in_every_verdict(limit):
    entries = [an_entry(f"@@depth {n}\nLore {n}.", id=n, keys=[f"key{n}"]) for n in (1, 3, 5)]
    rules = a_component("Be brief.", id=0, key="system_prompt", is_static=True)
    history = [said("user", f"word word word, key{n} word word word") for n in range(8)]
    prompt = the_prompt(
        [rules], history=history, books=(a_book(*entries, scan_depth=50),), limit=limit
    )
    found = [
        re.search(r"key 'key(\d)' in (?:message (\d+)|a message that is cut away)", v.reason)
        for v in prompt.touched
        if v.stage == "activate"
    ]
    numbers = {one[1]: one[2] for one in found if one is not None}
    assert set(numbers) == {"1", "3", "5"}
    in_prompt = {
        key: next(
            (str(at) for at, m in enumerate(prompt.messages) if f"key{key} " in m.content), None
        )
        for key in numbers
    }
    assert numbers == in_prompt
    (cut,) = [v.reason for v in prompt.touched if (v.stage, v.item) == ("budget", "history")]
    oldest = next(at for at, m in enumerate(prompt.messages) if "word, key" in m.content)
    assert cut == "all 8 messages fit" or cut.endswith(f"cut before message {oldest}")
    assert ("all 8" in cut, None in numbers.values()) == (limit == 2000, limit != 2000)


def test_speaker_value_is_the_events_speaker_or_the_newest_user() -> None:
    who = a_component("{{speaker}}", injection_depth=9)
    history = [said("user", "hello", name="Ben"), said("assistant", "Aye.", name="Oren")]
    assert texts(the_prompt([who], history=history))[0] == "Ben"
    assert texts(the_prompt([who], history=history, event="now"))[0] == "Anna"
    assert texts(the_prompt([who]))[0] == "Anna"
