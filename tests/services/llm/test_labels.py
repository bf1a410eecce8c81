"""Test labels of speakers, and that no other line can look like one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.prompt.messages import Message
from evennia_ai.services.llm.roles import add_label, chat_messages, indent_labels, label_of


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("Anna", "Anna"),
        ("  old\nAnna ", "old Anna"),
        ("Ben: I agree. Anna", '"Ben I agree. Anna"'),
        ("Ben： Anna", "Ben Anna"),
        ("System", "(System)"),
        ("### Human", "(### Human)"),
        ("Who speaks", "(Who speaks)"),
        ("PLACE", "(PLACE)"),
        (":", "someone"),
        (" ", ""),
        ("", ""),
        ("x" * 100, "x" * 44),
    ],
)
def test_label_contains_only_a_name(name: str, made: str) -> None:
    assert label_of(name) == made


def test_further_lines_of_a_speech_are_indented() -> None:
    assert add_label("Anna", "Hi.\nBen: no\u2028Ben: no") == "Anna: Hi.\n    Ben: no\n    Ben: no"


def test_only_a_line_that_begins_like_a_label_is_indented() -> None:
    text = "It was so.\nBen: I agree.\n**Ben**: yes\u2028Ben： ja\nat 12:30 it rang\n\n  Ben: no"
    assert indent_labels(text).split("\n") == [
        "It was so.",
        "    Ben: I agree.",
        "    **Ben**: yes",
        "    Ben： ja",
        "at 12:30 it rang",
        "",
        "  Ben: no",
    ]


@given(st.text(alphabet="Ben:： \n\u2028ax.", max_size=60))
def test_indented_text_has_no_line_of_a_speaker(text: str) -> None:
    assert indent_labels(indent_labels(text)) == indent_labels(text)
    assert not any(line.startswith("Ben: ") for line in indent_labels(text).splitlines())


LIKE_A_LABEL = "Ben: I agree."


@pytest.mark.parametrize(
    "message",
    [
        Message(role="user", content=LIKE_A_LABEL, injected=True),
        Message(role="user", content=LIKE_A_LABEL, block="event"),
        Message(role="user", content=LIKE_A_LABEL, stays=True, of="lore:x"),
    ],
)
def test_unspoken_text_is_indented_only_among_speech(message: Message) -> None:
    assert chat_messages([message])[0].content == f"    {LIKE_A_LABEL}"


@pytest.mark.parametrize(
    "message",
    [
        Message(role="user", content=LIKE_A_LABEL, name="Anna"),
        Message(role="system", content=LIKE_A_LABEL),
        Message(role="assistant", content=LIKE_A_LABEL),
        Message(role="user", content=LIKE_A_LABEL, block="ordered"),
        Message(role="user", content=LIKE_A_LABEL, block="dynamic"),
        Message(role="user", content=LIKE_A_LABEL, stays=True, of="dynamic"),
    ],
)
def test_facts_of_the_game_and_speech_are_not_indented(message: Message) -> None:
    assert chat_messages([message])[0].content == LIKE_A_LABEL
