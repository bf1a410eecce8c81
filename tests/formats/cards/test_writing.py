"""Editing the fields of a card one by one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.errors import FormatError
from evennia_ai.formats.cards.card import Card, greetings, read_card
from evennia_ai.formats.cards.exporting import card_as_v3
from evennia_ai.formats.cards.writing import (
    WORDS,
    CardField,
    field_named,
    fields_of,
    keeps_greetings,
    new_card,
    text_of,
    with_text,
)

OREN = Card(
    name="Oren",
    alternate_greetings=("Storm coming.", "Mind the rope."),
    group_only_greetings=("All aboard.",),
    tags=("ferry", "gruff"),
    extensions={"depth_prompt": {"prompt": "Tired.", "depth": 2, "role": "user"}, "mine": [1]},
)
NAMED = {
    "description": CardField("description"),
    "First Message": CardField("first_message"),
    "first_mes": CardField("first_message"),
    "greeting/0": CardField("first_message"),
    "mes_example": CardField("examples"),
    "alternate_greetings/02": CardField("greeting", "2"),
    "group-greeting/1": CardField("group_greeting", "1"),
    "post_history_instructions": CardField("post_history"),
    "character_version": CardField("version"),
    "depth_prompt/role": CardField("depth_prompt", "role"),
}
REFUSED = {
    "": "is not a field of a card: name, nickname",
    "colour": "'colour' is not a field of a card",
    "description/2": "'2' is not a part of description",
    "depth_prompt/size": "it has depth and role",
    "greeting": "name a greeting by its number: greeting/1",
    "greeting/-1": "by its number",
    "greeting/²": "by its number",
    "group_greeting/0": "counted from 1",
}


@pytest.mark.parametrize(("typed", "field"), NAMED.items())
def test_card_field_is_found_by_its_name_in_the_standard_or_a_shorter_word(typed, field):
    assert field_named(typed) == field


@pytest.mark.parametrize(("typed", "problem"), REFUSED.items())
def test_unknown_card_field_is_refused_with_the_list_of_known_fields(typed, problem):
    with pytest.raises(FormatError, match=problem):
        field_named(typed)


def test_every_listed_card_field_is_found_by_its_name():
    listed = [str(field) for field in fields_of(OREN)]
    assert {one.partition("/")[0] for one in listed} == set(WORDS)
    assert [str(field_named(one)) for one in listed] == listed


def test_editing_the_number_after_the_last_greeting_adds_a_greeting():
    new = with_text(OREN, CardField("greeting", "3"), "Ahoy.")
    assert greetings(new) == ("", "Storm coming.", "Mind the rope.", "Ahoy.")


def test_empty_text_removes_a_greeting():
    assert with_text(OREN, CardField("greeting", "1"), " ").alternate_greetings == (
        "Mind the rope.",
    )


@pytest.mark.parametrize(("number", "text"), [("4", "Ahoy."), ("3", "")])
def test_missing_greeting_is_refused(number, text):
    with pytest.raises(FormatError, match="it has 1 to 2; greeting/3 adds one"):
        with_text(OREN, CardField("greeting", number), text)


def test_edited_depth_prompt_keeps_its_depth_and_other_extensions():
    new = with_text(OREN, CardField("depth_prompt"), "Angry.")
    assert new.extensions == {
        "depth_prompt": {"prompt": "Angry.", "depth": 2, "role": "user"},
        "mine": [1],
    }
    deeper = with_text(new, CardField("depth_prompt", "depth"), "7")
    assert text_of(deeper, CardField("depth_prompt", "depth")) == "7"
    assert deeper.extensions["depth_prompt"]["depth"] == 7


@pytest.mark.parametrize(
    ("field", "text", "problem"),
    [
        ("depth_prompt/depth", "deep", "a number of messages, or bottom, not 'deep'"),
        ("depth_prompt/role", "boss", "one of system, user, assistant"),
        ("name", "  ", "must have a name"),
        ("tags", ",".join(map(str, range(101))), "at most 100 tags, not 101"),
    ],
)
def test_invalid_text_of_a_card_field_is_refused_with_a_reason(field, text, problem):
    with pytest.raises(FormatError, match=problem):
        with_text(OREN, field_named(field), text)


def test_tags_are_separated_by_commas():
    assert with_text(OREN, CardField("tags"), " sea ,, old  man, sea").tags == ("sea", "old man")


@pytest.mark.parametrize(
    ("field", "text", "kept"),
    [
        ("greeting/1", "Fog coming.", True),
        ("first_message", "Evening.", True),
        ("description", "Mends nets.", True),
        ("greeting/2", "", False),
        ("greeting/3", "Ahoy.", False),  # changes the number of the group greeting
        ("group_greeting/2", "All off.", True),
    ],
)
def test_keeps_greetings_is_true_when_each_number_keeps_its_greeting(field, text, kept):
    assert keeps_greetings(OREN, with_text(OREN, field_named(field), text)) is kept


def test_keeps_greetings_is_true_after_adding_one_without_group_greetings():
    alone = new_card("Mira")
    assert keeps_greetings(alone, with_text(alone, CardField("greeting", "1"), "Oh, you."))


TEXTED = [str(field) for field in fields_of(OREN) if field.word not in ("tags", "name")]


@given(field=st.sampled_from(TEXTED), text=st.text(st.characters(codec="utf-8"), min_size=1))
def test_edit_of_a_card_field_survives_the_export_and_changes_no_other_field(field, text):
    named = field_named(field)
    if named.part in ("depth", "role") or not text.strip():
        return
    new = with_text(OREN, named, text)
    assert text_of(new, named) == text
    back = read_card(card_as_v3(new, modified_at=1))
    others = [one for one in fields_of(OREN) if str(one) != field]
    assert [text_of(back, one) for one in others] == [text_of(OREN, one) for one in others]
    assert text_of(back, named) == text
