"""Tests of active entries in the prompt: their places, their messages and their verdicts."""

import pytest

from evennia_ai.engine.compose import compose
from evennia_ai.engine.prompt.components import ALL_GRANTS, NO_GRANTS
from evennia_ai.engine.prompt.notes import AuthorsNote
from tests.engine.lorebook.builders import a_book, an_entry
from tests.engine.prompt.builders import (
    a_component,
    a_history,
    first_words,
    the_inputs,
    the_prompt,
    verdicts_of,
)

LAYOUTS = pytest.mark.parametrize("layout", ["cache", "classic"])
NOTE = AuthorsNote(content="note", depth=2)


def lore(content, *, position=1, own=None, **more):
    """Make a constant entry with a position in SillyTavern's numbers."""
    names = ("insertion_order", "id", "keys", "constant")
    fields = {name: more.pop(name) for name in names if name in more}
    extensions = {"position": position, **more, **({"evennia_ai": own} if own else {})}
    return an_entry(content, **{"keys": [], "constant": True, **fields}, extensions=extensions)


def contents(prompt):
    return [message.content for message in prompt.messages]


def origins(prompt, number):
    """Return the origin and the text of each part of a message."""
    message = prompt.messages[number]
    return [(part.origin, message.content[part.start : part.end]) for part in message.parts]


def last_verdict(prompt, item):
    return verdicts_of(prompt, item)[-1]


def composed(*entries, components=(), grants=ALL_GRANTS, **options):
    return the_prompt(components, books=(a_book(*entries, grants=grants),), **options)


@LAYOUTS
def test_constant_lore_before_and_after_the_character_shares_a_message_each(layout):
    prompt = composed(
        lore("B2", position=0, insertion_order=2),
        lore("B1", position=0, insertion_order=1),
        lore("A"),
        components=[a_component("char", id=1020, key="char_description")],
        layout=layout,
        history=a_history(1),
    )
    assert contents(prompt) == ["B1\nB2", "char", "A", "m1 word word"]
    assert origins(prompt, 0) == [("lore:book#1", "B1"), ("lore:book#0", "B2")]


def test_keyword_lore_joins_the_dynamic_message_in_the_layout_cache():
    matched = lore("Matched.", position=0, keys=["m1"], constant=False)
    options = {"history": a_history(1), "event": "now"}
    cache = composed(matched, lore("Always.", position=0), layout="cache", **options)
    assert contents(cache) == ["Always.", "m1 word word", "Matched.", "now"]
    assert cache.messages[2].block == "dynamic"
    classic = composed(matched, lore("Always.", position=0), layout="classic", **options)
    assert contents(classic) == ["Matched.\nAlways.", "m1 word word", "now"]


@LAYOUTS
def test_lore_around_the_note_shares_its_message_at_the_note_s_depth(layout):
    prompt = composed(
        lore("below", position=3),
        lore("above2", position=2, insertion_order=2),
        lore("above1", position=2, insertion_order=1),
        notes=[NOTE],
        history=a_history(3),
        layout=layout,
    )
    assert contents(prompt)[1] == "above1\nabove2\nnote\nbelow"
    assert origins(prompt, 1) == [
        ("lore:book#2", "above1"),
        ("lore:book#1", "above2"),
        ("note:0", "note"),
        ("lore:book#0", "below"),
    ]
    assert prompt.messages[1].injected


def test_lore_around_a_note_has_the_note_s_role():
    note = AuthorsNote(content="note", depth=0, role="user")
    prompt = composed(lore("above", position=2, role=0), notes=[note])
    assert [(message.role, message.content) for message in prompt.messages] == [
        ("user", "above\nnote")
    ]


def test_lore_around_a_note_is_left_out_when_the_note_is_not_due():
    note = AuthorsNote(content="note", depth=0, every=2)
    prompt = composed(lore("above", position=2), notes=[note], history=a_history(1))
    assert first_words(prompt) == ["m1"]
    assert last_verdict(prompt, "lore:book#0") == (
        *("expand", False),
        "the author's note is not due",
    )
    assert "above\nnote" in contents(
        composed(lore("above", position=2), notes=[note], history=a_history(3))
    )


@pytest.mark.parametrize(("notes", "depth"), [([], 4), ([AuthorsNote(content=" ", depth=1)], 1)])
def test_lore_around_the_note_is_placed_at_the_default_depth_without_a_note(notes, depth):
    prompt = composed(
        lore("below", position=3), lore("above", position=2), notes=notes, history=a_history(6)
    )
    assert contents(prompt)[6 - depth] == "above\nbelow"


def test_only_the_first_note_has_lore_around_it():
    notes = [AuthorsNote(content="first", depth=0), AuthorsNote(content="second", depth=0)]
    prompt = composed(lore("above", position=2), notes=notes)
    assert contents(prompt) == ["above\nfirst", "second"]


@LAYOUTS
def test_lore_around_the_examples_is_placed_next_to_them(layout):
    examples = a_component("examples", id=1060, key="dialogue_examples")
    prompt = composed(
        lore("after", position=6),
        lore("before2", position=5, insertion_order=2),
        lore("before1", position=5, insertion_order=1),
        components=[examples],
        layout=layout,
    )
    assert contents(prompt) == ["before1\nbefore2", "examples", "after"]


def test_lore_around_the_examples_is_placed_without_examples():
    assert contents(composed(lore("after", position=6), lore("before", position=5))) == [
        *("before", "after")
    ]


@LAYOUTS
def test_lore_next_to_a_component_is_right_before_or_after_it(layout):
    prompt = composed(
        lore("before", own={"anchor": {"component": "goals", "side": "before"}}),
        lore("after", own={"anchor": {"component": "goals"}}),
        components=[
            a_component("goals", id=4000, key="goals", role="user"),
            a_component("3999", id=3999),
            a_component("4001", id=4001),
        ],
        layout=layout,
    )
    assert contents(prompt) == ["3999", "before", "goals", "after", "4001"]
    assert {message.role for message in prompt.messages[1:4]} == {"user"}


def test_lore_next_to_a_missing_component_is_placed_after_the_character():
    entry = lore("beside", own={"anchor": {"component": "nothing"}})
    prompt = composed(entry, components=[a_component("id1200", id=1200)])
    assert contents(prompt) == ["beside", "id1200"]
    [reason] = [why for stage, _, why in verdicts_of(prompt, "lore:book#0") if stage == "budget"]
    assert reason == "fits; there is no component nothing to be placed next to"


def test_lore_is_not_placed_next_to_a_component_in_the_history():
    deep = a_component("deep", key="deep", injection_depth=1, placement="history")
    entry = lore("beside", own={"anchor": {"component": "deep"}})
    prompt = composed(entry, components=[deep], history=a_history(1))
    assert first_words(prompt) == ["beside", "deep", "m1"]


def test_lore_next_to_a_disabled_component_is_left_out():
    off = a_component("goals", id=4000, key="goals", enabled=False)
    prompt = composed(lore("beside", own={"anchor": {"component": "goals"}}), components=[off])
    assert contents(prompt) == []
    assert last_verdict(prompt, "lore:book#0") == ("expand", False, "component goals is disabled")


@LAYOUTS
@pytest.mark.parametrize("content", ["The {{outlet::tides}}!", "The {{ outlet :: tides }}!"])
def test_component_contains_the_outlet_named_in_its_text(content, layout):
    prompt = composed(
        lore("flood", position=7, outlet_name="tides", insertion_order=2),
        lore("ebb", own={"outlet": "tides"}, insertion_order=1),
        lore("gale", own={"outlet": "winds"}),
        components=[a_component(content, key="sea")],
        layout=layout,
    )
    assert contents(prompt) == ["The ebb\nflood!"]
    assert last_verdict(prompt, "lore:book#0") == (
        *("expand", True),
        "in the outlet 'tides' of component sea",
    )
    assert last_verdict(prompt, "lore:book#2") == (
        *("expand", False),
        "no component or note names the outlet 'winds' ({{outlet::winds}})",
    )


def test_outlet_without_entries_is_empty():
    assert contents(composed(components=[a_component("The {{outlet::tides}}sea.")])) == ["The sea."]


def test_text_of_an_outlet_is_not_expanded_again():
    entry = lore("{{user}} and {{random:a,b}}", own={"outlet": "tides"})
    prompt = composed(
        entry, components=[a_component("{{outlet::tides}}")], values={"user": "{{outlet::tides}}"}
    )
    [content] = contents(prompt)
    assert content in ("outlet tides and a", "outlet tides and b")


def test_disabled_component_contains_no_outlet():
    off = a_component("{{outlet::tides}}", enabled=False)
    prompt = composed(lore("ebb", own={"outlet": "tides"}), components=[off])
    assert contents(prompt) == []
    assert last_verdict(prompt, "lore:book#0")[1] is False


def test_depth_entries_are_messages_of_their_own_with_roles_and_order():
    prompt = composed(
        lore("system", position=4, depth=1, role=0, insertion_order=3),
        lore("user", position=4, depth=1, role=1, insertion_order=2),
        lore("assistant", position=4, depth=1, role=2, insertion_order=1),
        lore("deep", position=4, depth=99),
        lore("bottom", position=4, depth=0),
        lore("@@reverse_depth 1\noldest"),
        history=a_history(3),
        event="now",
    )
    assert first_words(prompt) == [
        *("deep", "m1", "oldest", "m2", "assistant", "user", "system", "m3", "bottom", "now")
    ]
    roles = {message.content: message.role for message in prompt.messages}
    assert (roles["assistant"], roles["user"], roles["system"]) == ("assistant", "user", "system")


def test_lore_without_grants_is_a_user_message_at_the_top_of_the_history():
    prompt = composed(
        lore("found", position=0),
        grants=NO_GRANTS,
        components=[a_component()],
        history=a_history(1),
    )
    assert [(message.role, message.content) for message in prompt.messages] == [
        ("system", "A text."),
        ("user", "found"),
        ("user", "m1 word word"),
    ]


ALL = [
    lore("before", position=0),
    lore("after", position=1),
    lore("matched", position=1, keys=["m1"], constant=False),
    lore("above", position=2),
    lore("below", position=3),
    lore("deep", position=4, depth=2),
    lore("examples before", position=5),
    lore("examples after", position=6),
    lore("outlet", position=7, outlet_name="tides"),
    lore("anchored", own={"anchor": {"component": "sea"}}),
]


@LAYOUTS
def test_each_entry_is_placed_once_and_its_tokens_are_counted_once(layout):
    inputs = the_inputs(
        [a_component("The {{outlet::tides}}.", key="sea")],
        books=(a_book(*ALL),),
        notes=[NOTE],
        history=a_history(3),
        event="now",
        layout=layout,
    )
    prompt = compose(inputs)
    assert sum(prompt.by_origin.values()) == prompt.tokens <= prompt.limit_tokens
    spans = [
        (part.origin, message.content[part.start : part.end])
        for message in prompt.messages
        for part in message.parts
        if part.origin.startswith("lore:")
    ]
    texts = {text for _, text in spans}
    assert len(spans) == len(texts) == len(ALL) - 1
    assert texts == {entry["content"] for entry in ALL} - {"outlet"}
    assert "The outlet." in contents(prompt)
    placed = [v.item for v in prompt.verdicts if v.stage == "place" and v.item.startswith("lore:")]
    assert sorted(placed) == sorted(origin for origin, _ in spans)


@LAYOUTS
def test_placed_lore_is_deterministic(layout):
    hashes = {
        compose(
            the_inputs(
                [a_component("The {{outlet::tides}}.", key="sea")],
                books=(a_book(*ALL),),
                notes=[NOTE],
                history=a_history(3),
                layout=layout,
            )
        ).sha256
        for _ in range(2)
    }
    assert len(hashes) == 1


@LAYOUTS
@pytest.mark.parametrize("position", [0, 1, 2, 3, 5, 6, 7])
def test_entry_without_the_roles_grant_never_gets_the_role_system(position, layout):
    prompt = composed(
        lore("EVIL", position=position, outlet_name="tides"),
        components=[
            a_component("char", id=1020, key="char_description"),
            a_component("The tides: {{outlet::tides}}.", id=1200, key="tides"),
            a_component("examples", id=1060, key="dialogue_examples"),
        ],
        grants=ALL_GRANTS - {"roles"},
        notes=[NOTE],
        layout=layout,
        history=a_history(3),
    )
    evil = [
        (message.role, message.content) for message in prompt.messages if "EVIL" in message.content
    ]
    assert evil == [("user", "EVIL")]


def test_entry_that_keeps_its_role_is_a_separate_message():
    prompt = the_prompt(
        books=(
            a_book(lore("theirs", position=0), grants=ALL_GRANTS - {"roles"}, label="card"),
            a_book(lore("ours", position=0), label="world"),
        ),
        history=a_history(1),
    )
    assert [(m.role, m.content) for m in prompt.messages[:2]] == [
        ("system", "ours"),
        ("user", "theirs"),
    ]
