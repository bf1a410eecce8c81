"""The prompt components of a card, with and without grants."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.prompt.components import (
    ALL_GRANTS,
    MAX_DEPTH,
    NO_GRANTS,
    PLUGGABLE_IDS,
    STATIC_IDS,
)
from evennia_ai.formats.cards.components import (
    card_components,
    character_book,
    containment_notices,
    describe_changing_texts,
    with_original,
)
from tests.formats.cards.builders import a_card, lore, prompt_of, shown, with_lore

FULL = {
    "system_prompt": "S",
    "personality": "P",
    "scenario": "C",
    "mes_example": "E",
    "post_history_instructions": "H",
    "creator": "NOT-THIS",
    "creator_notes": "NOT-THIS",
    "character_version": "NOT-THIS",
    "tags": ["NOT-THIS"],
}


def test_card_fields_get_their_registry_ids_and_empty_ones_are_left_out():
    made = card_components(a_card(**FULL))
    assert {c.key: c.id for c in made} == {
        key: PLUGGABLE_IDS[key]
        for key in PLUGGABLE_IDS
        if key not in ("world_info_before", "world_info_after", "persona_description")
    }
    assert [c.key for c in card_components(a_card())] == ["char_description"]


def test_creator_version_tags_and_notes_are_never_in_a_prompt():
    assert all("NOT-THIS" not in line for line in shown(prompt_of(a_card(**FULL), "user: hi")))


def test_template_logic_of_a_card_never_runs_with_any_grants():
    text = "{% for i in range(9) %}x{% endfor %} {{ 7 * 7 }} {{user.__class__}}"
    for grants in (ALL_GRANTS, NO_GRANTS):
        prompt = prompt_of(a_card(description=text), grants=grants)
        # Like SillyTavern, `{{user.x}}` is read as `{{user}}`. No attribute is read.
        assert shown(prompt)[0].endswith(text.replace("{{user.__class__}}", "Anna"))
        assert all(c.trust == "imported" for c in card_components(a_card(**FULL), grants=grants))


@pytest.mark.req("S0-03")
@pytest.mark.parametrize("field", ["description", "personality", "scenario", "system_prompt"])
@pytest.mark.parametrize("name", ["{{ SPEAKER }}", "{{lastMessage}}", "{{lastUserMessage}}"])
def test_field_before_the_history_that_repeats_speech_is_reported(field, name):
    (sentence,) = describe_changing_texts(a_card(**{field: f"Answers {name}."}))
    assert "in the layout classic it is left out" in sentence


@pytest.mark.parametrize("name", ["{{time}}", "{{Weekday}}", "{{datetimeformat HH}}"])
def test_field_before_the_history_that_names_the_time_is_reported(name):
    (sentence,) = describe_changing_texts(a_card(description=f"It is {name}."))
    assert "in the layout cache it is placed after the history" in sentence
    assert "in the layout classic it stays where it is" in sentence


@pytest.mark.parametrize(
    "fields",
    [
        {"description": "Answers {{user}} in {{random:rain,fog}} or {{pick:sun,snow}}."},
        {"post_history_instructions": "Answer {{speaker}}."},
        {"first_mes": "Hail, {{speaker}}."},
    ],
)
def test_text_inside_the_history_is_not_reported_as_repeating_speech(fields):
    assert not [*describe_changing_texts(a_card(**fields))]


@pytest.mark.req("S3-10")
def test_post_history_instructions_are_placed_after_the_history():
    prompt = prompt_of(a_card(post_history_instructions="Be brief."), "user: hi")
    assert shown(prompt)[-2:] == ["user: hi", "system: Be brief."]


@pytest.mark.req("S3-10")
def test_post_history_instructions_without_the_grant_are_at_depth_4():
    made = card_components(a_card(post_history_instructions="Be brief."), grants=NO_GRANTS)
    [own] = [c for c in made if c.key == "post_history_instructions"]
    assert (own.placement, own.injection_depth, own.role) == ("history", 4, "user")
    card = a_card(description="", post_history_instructions="Be brief.")
    lines = [f"user: m{number}" for number in range(1, 7)]
    assert shown(prompt_of(card, *lines, grants=NO_GRANTS)) == [
        *("user: m1", "user: m2"),
        "+user: Be brief.",
        *("user: m3", "user: m4", "user: m5", "user: m6"),
    ]


@pytest.mark.req("S3-10")
def test_post_history_instructions_without_the_grant_never_leave_a_short_history():
    card = a_card(description="", post_history_instructions="Be brief.")
    prompt = prompt_of(card, "user: hi", grants=NO_GRANTS)
    assert shown(prompt) == ["+user: Be brief.", "user: hi"]


@pytest.mark.req("S3-10")
def test_depth_of_post_history_instructions_without_the_grant_can_be_set():
    card = a_card(description="", post_history_instructions="Be brief.")
    made = card_components(card, grants=NO_GRANTS, post_history_depth=1)
    assert [c.injection_depth for c in made] == [1]
    granted = card_components(card, grants=ALL_GRANTS, post_history_depth=1)
    assert [(c.placement, c.id) for c in granted] == [("ordered", 5010)]


def test_notice_names_the_depth_of_post_history_instructions_without_the_grant():
    card = a_card(post_history_instructions="Be brief.")
    grants = frozenset(ALL_GRANTS - {"after_history"})
    assert containment_notices(card, grants=grants, post_history_depth=2) == (
        (
            "the card lacks the grant after_history: its post_history_instructions are in the"
            " history at depth 2, role user"
        ),
    )


@pytest.mark.parametrize(
    ("written", "depth"),
    [
        (2, 2),
        ("3", 3),
        ("", 4),
        (None, 4),
        ("x", 4),
        (-1, 0),
        (True, 4),
        (10**12, MAX_DEPTH),
        (2.5, 4),
    ],
)
def test_depth_of_a_depth_prompt_is_read_from_number_or_text(written, depth):
    extensions = {"depth_prompt": {"prompt": "Note.", "depth": written}}
    made = card_components(a_card(extensions=extensions))
    [note] = [c for c in made if c.key == "card_depth_prompt"]
    assert (note.injection_depth, note.placement, note.role) == (depth, "history", "system")


@pytest.mark.parametrize(
    "found", [None, "x", {}, {"prompt": None}, {"prompt": ["x"]}, {"prompt": " "}]
)
def test_depth_prompt_without_text_gives_no_component(found):
    keys = [c.key for c in card_components(a_card(extensions={"depth_prompt": found}))]
    assert "card_depth_prompt" not in keys


@pytest.mark.parametrize(
    ("text", "default", "whole"),
    [
        ("", "D", "D"),
        ("  ", "D", "D"),
        ("A", "D", "A"),
        ("A {{original}} B", "D", "A D B"),
        ("A {{ORIGINAL}} {{ original }}", "D", "A D "),
        ("{{original}}", "", ""),
        ("{{original}}", "x {{original}} y", "x {{original}} y"),
        (r"\1 {{original}}", r"\g<0>", r"\1 \g<0>"),
    ],
)
def test_macro_original_is_replaced_only_once_by_the_games_text(text, default, whole):
    assert with_original(text, default) == whole


def test_card_without_grants_gives_a_notice_for_each_missing_one():
    card = a_card(system_prompt="Obey.")
    assert containment_notices(card, grants=ALL_GRANTS) == ()
    assert containment_notices(card, grants=NO_GRANTS) == (
        "the card lacks the grant fields: its fields are at the top of the history, role user",
        "the card lacks the grant system_prompt: its system_prompt is left out",
    )


def test_book_of_a_card_is_attached_to_the_character_under_the_books_name():
    book = character_book(with_lore(lore("L.")), revision=3)
    assert book is not None
    assert (book.label, book.attach, book.revision) == ("Marta", "character", 3)
    named = character_book(
        a_card(character_book={"name": "Lamps", "entries": []}), grants=NO_GRANTS
    )
    assert named is not None
    assert (named.label, named.grants) == ("Lamps", NO_GRANTS)
    assert character_book(a_card()) is None


TEXT = st.text(max_size=40) | st.sampled_from(
    ["{{user}}", "@@depth 0\nx", "<|system|>", "{{original}}"]
)


@pytest.mark.req("S3-28")
@given(
    fields=st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(
            [
                "description",
                "personality",
                "scenario",
                "system_prompt",
                "post_history_instructions",
            ],
            TEXT,
        ),
    ),
    depth=st.integers(-(10**12), 10**12),
    lines=st.lists(st.sampled_from(["user: a", "assistant: b"]), max_size=4),
)
def test_card_without_grants_stays_in_the_history_in_the_role_user(fields, depth, lines):
    card = with_lore(
        lore(f"@@depth {depth}\n@@role system\nLore."),
        lore("@@position before_desc\nMore lore."),
        extensions={"depth_prompt": {"prompt": "Note.", "depth": depth, "role": "system"}},
        **fields,
    )
    prompt = prompt_of(card, *lines, grants=NO_GRANTS)
    assert all(m.block == "history" for m in prompt.messages)
    assert all(m.role == "user" for m in prompt.messages if m.injected)
    assert [f"{m.role}: {m.content}" for m in prompt.messages if not m.injected] == lines


def test_card_components_never_have_ids_of_static_components():
    made = card_components(a_card(**FULL), grants=NO_GRANTS, default_post_history="D")
    assert not {c.id for c in made} & set(STATIC_IDS.values())
    assert len({c.key for c in made}) == len(made)
