"""Persistent texts: facts and tail notes that one prompt sends and the history keeps."""

from itertools import pairwise

import pytest

from evennia_ai.engine.prompt.expansion import ComponentSet
from evennia_ai.engine.prompt.notes import AuthorsNote, Notes
from evennia_ai.engine.prompt.registry import with_statics
from tests.engine.prompt.builders import a_component, texts, verdicts_of
from tests.engine.prompt.chats import Chat, index_of, shared, staying

RULES = a_component("Rules.", id=1, key="rules")


def test_facts_do_not_persist_by_default() -> None:
    chat = Chat([RULES])
    chat.turn("one", facts="It rains.")
    prompt = chat.turn("two", facts="It rains.")
    assert texts(prompt) == ["Rules.", "one", "Aye.", "It rains.", "two"]
    assert staying(prompt) == []


def test_changed_facts_are_sent_once_before_the_event_and_persist() -> None:
    chat = Chat([RULES], blocks="on_change")
    first = chat.turn("one", facts="It rains.")
    second = chat.turn("two", facts="It rains.")
    third = chat.turn("three", facts="The sun is out.")
    assert texts(first) == ["Rules.", "It rains.", "one"]
    assert texts(second) == ["Rules.", "It rains.", "one", "Aye.", "two"]
    assert texts(third)[-2:] == ["The sun is out.", "three"]
    assert [shared(first, second), shared(second, third)] == [3, 5]


def test_facts_already_in_the_history_have_a_verdict_and_no_tokens() -> None:
    chat = Chat([RULES], blocks="on_change")
    chat.turn("one", facts="It rains.")
    prompt = chat.turn("two", facts="It rains.")
    said = "already in the history: 2 messages follow"
    assert verdicts_of(prompt, "block:facts") == [("place", True, said)]
    assert "block:facts" not in prompt.by_origin


def test_earlier_facts_are_sent_again_when_true_again() -> None:
    chat = Chat(blocks="on_change")
    for facts in ("rain", "sun", "rain"):
        prompt = chat.turn("and now?", facts=facts)
    assert [text for _, text in staying(prompt)] == ["rain", "sun", "rain"]


def test_volatile_components_persist_in_the_same_message_as_the_facts() -> None:
    mood = a_component("Calm.", key="mood", volatile=True)
    chat = Chat([RULES, mood], blocks="on_change")
    prompt = chat.turn("one", facts="It rains.")
    assert staying(prompt) == [("dynamic", "Calm.\n\nIt rains.")]


def test_facts_of_every_prompt_persist_with_blocks_all() -> None:
    chat = Chat(blocks="all")
    first = chat.turn("one", facts="rain")
    second = chat.turn("two", facts="rain")
    assert texts(second) == ["rain", "one", "Aye.", "rain", "two"]
    assert shared(first, second) == 2


def test_facts_are_sent_again_in_the_prompt_that_cuts_them_away() -> None:
    chat = Chat([RULES], blocks="on_change", limit=90)
    prompts = [chat.turn("a word or two", facts="It rains.") for _ in range(12)]
    assert any(prompt.cut for prompt in prompts)
    for prompt in prompts:
        assert texts(prompt).count("It rains.") == 1
        assert prompt.tokens <= 90


def test_persistent_text_is_no_message_of_the_conversation() -> None:
    note = AuthorsNote(content="A note.", depth=2)
    chat = Chat(blocks="all", notes=[note])
    chat.turn("one", facts="rain")
    prompt = chat.turn("two", facts="sun")
    assert texts(prompt) == ["rain", "A note.", "one", "Aye.", "sun", "two"]


TAIL = AuthorsNote(content="Stay in character.", mode="tail", every=3)


def test_tail_note_is_sent_after_its_number_of_messages_and_persists() -> None:
    chat = Chat(notes=[TAIL])
    prompts = [chat.turn(f"m{i}") for i in range(1, 6)]
    counts = [texts(prompt).count(TAIL.content) for prompt in prompts]
    assert counts == [0, 0, 1, 1, 1]
    assert texts(prompts[2])[-2:] == [TAIL.content, "m3"]
    assert index_of(prompts[4], TAIL.content) == index_of(prompts[2], TAIL.content)


def test_tail_note_is_sent_again_after_its_number_of_messages() -> None:
    chat = Chat(notes=[TAIL])
    counts = [texts(chat.turn(f"m{i}")).count(TAIL.content) for i in range(1, 10)]
    assert counts == [0, 0, 1, 1, 1, 2, 2, 2, 3]


def test_tail_note_does_not_break_the_cached_prefix() -> None:
    chat = Chat([RULES], notes=[TAIL])
    prompts = [chat.turn(f"m{i}") for i in range(9)]
    for older, newer in pairwise(prompts):
        assert shared(older, newer) == len(older.messages)


def test_verdict_says_where_in_the_history_a_tail_note_is() -> None:
    chat = Chat(notes=[TAIL])
    going_in = chat.say(3)
    resting = chat.say(1)
    assert verdicts_of(going_in, "note:0")[-1][2] == "at the end of the history, and stays there"
    reason = "already in the history; due every 3 messages of role user, 1 were said since"
    assert verdicts_of(resting, "note:0") == [("expand", True, reason)]


def test_tail_note_is_sent_in_the_next_prompt_after_it_left_the_history() -> None:
    note = AuthorsNote(content="Stay in character.", mode="tail", every=10)
    chat = Chat(notes=[note], limit=120)
    prompts = [chat.turn("a few more words of talk") for _ in range(40)]
    there = [note.content in texts(prompt) for prompt in prompts[9:]]
    assert not all(there)
    assert all(one or other for one, other in pairwise(there))


def test_edited_tail_note_is_sent_at_once() -> None:
    chat = Chat(notes=[AuthorsNote(content="Old.", mode="tail", every=2, revision=1)])
    chat.say(2)
    new = Notes([AuthorsNote(content="New.", mode="tail", every=2, revision=2)])
    prompt = chat.turn("now", notes=new)
    assert [text for _, text in staying(prompt)] == ["Old.", "New."]


@pytest.mark.parametrize("every", [0, 1])
def test_tail_note_is_never_sent_when_every_is_0_and_always_when_every_is_1(every: int) -> None:
    note = AuthorsNote(content="A note.", mode="tail", every=every)
    chat = Chat(notes=[note])
    assert texts(chat.say(3)).count("A note.") == 3 * every


def test_no_text_persists_without_a_history() -> None:
    chat = Chat([RULES], notes=[TAIL], blocks="on_change")
    chat.say(4, facts="It rains.")
    off = [c.changed(enabled=c.key != "conversation_history") for c in with_statics([RULES])]
    prompt = chat.turn("five", facts="It rains.", components=ComponentSet(off))
    assert texts(prompt) == ["Rules.", TAIL.content, "It rains.", "five"]
