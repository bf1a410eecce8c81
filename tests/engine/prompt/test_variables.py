"""Variables of templates: one text sets them, later texts of the same prompt read them."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evennia_ai.engine.compose import compose
from evennia_ai.engine.prompt.components import CONTAINED_PRIORITY, PromptComponent
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.expansion import ComponentSet
from evennia_ai.engine.prompt.filling import Filling, MacroState
from evennia_ai.engine.prompt.fragments import Fragment
from evennia_ai.engine.prompt.messages import said
from evennia_ai.engine.prompt.notes import AuthorsNote
from evennia_ai.engine.prompt.templates.variables import MAX_NAME, MAX_VALUE, Variable
from evennia_ai.engine.prompt.templates.work import (
    CONTAINED_WORK,
    COPIED_A_UNIT,
    COUNTED_A_UNIT,
    PLACED_WORK,
)
from evennia_ai.engine.prompt.tokens import ratio_counter
from evennia_ai.engine.prompt.trace import Verdict
from tests.effort import little_work
from tests.engine.prompt.builders import (
    a_component,
    injected,
    texts,
    the_inputs,
    the_prompt,
    verdicts_of,
)
from tests.properties import up_to

COUNTER = ratio_counter(4)


def preset(*contents: str, **fields: Any) -> list[PromptComponent]:
    """Return one imported component for each text, with ascending IDs."""
    return [
        a_component(content, id=1201 + at, trust="imported", **fields)
        for at, content in enumerate(contents)
    ]


def contained(content: str, number: int = 0, **fields: Any) -> PromptComponent:
    """Return a component for a card's text that has no grant."""
    return a_component(
        content,
        id=1201 + number,
        trust="imported",
        role="user",
        placement="history",
        priority=CONTAINED_PRIORITY,
        **fields,
    )


def filling(*, turn: str = "1:0", state: MacroState | None = None, **values: str) -> Filling:
    dice = Dice(turn=turn, conversation="1")
    before = state or MacroState()
    return Filling(dice=dice, counter=COUNTER, layout="cache", values=values, state=before)


def texts_or_reasons(made: Iterable[Fragment | Verdict]) -> list[str]:
    return [one.message.content if isinstance(one, Fragment) else one.reason for one in made]


def the_texts(*contents: str) -> list[str]:
    return texts(the_prompt(preset(*contents)))


def test_later_text_reads_a_variable_of_an_earlier_one() -> None:
    assert the_texts("{{setvar::mood::sad}}", "He is {{getvar::mood}}.") == ["He is sad."]


def test_earlier_text_does_not_read_a_variable_of_a_later_one() -> None:
    assert the_texts("A{{getvar::mood}}.", "{{setvar::mood::sad}}") == ["A."]


def test_texts_in_the_history_set_variables_in_the_order_of_ids() -> None:
    prompt = the_prompt(
        [
            a_component("{{getvar::x}}!", id=1300, key="last"),
            injected("{{addvar::x::b}}in the history: {{getvar::x}}", 1, id=1250, key="middle"),
            a_component("{{setvar::x::a}}", id=1202, key="first"),
        ],
        history=[said("user", "Hello.")],
    )
    assert texts(prompt) == ["ab!", "in the history: ab", "Hello."]


def test_disabled_text_sets_no_variable() -> None:
    off = a_component("{{setvar::x::1}}", id=1201, enabled=False)
    on = a_component("[{{getvar::x}}]", id=1202)
    assert texts(the_prompt([off, on])) == ["[]"]


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("{{setvar::n::1}}{{addvar::n::2}}{{getvar::n}}", "3"),
        ("{{setvar::n::0.5}}{{addvar::n::.25}}{{getvar::n}}", "0.75"),
        ("{{addvar::n::5}}{{getvar::n}}", "5"),
        ("{{addvar::n::tide}}{{addvar::n:: and 2}}{{getvar::n}}", "tideand 2"),
        ("{{setvar::n::1}}{{addvar::n::fish}}{{getvar::n}}", "1fish"),
        ("{{incvar::n}}{{incvar::n}}{{decvar::n}}", "121"),
        ("{{setvar::n::x}}{{incvar::n}}", "x1"),
        ("{{getvar::nobody}}", ""),
        ("{{setvar::n::007}}{{getvar::n}}", "7"),
        ("{{setvar::n::1}}{{setglobalvar::n::2}}{{getvar::n}}{{getglobalvar::n}}", "12"),
        ("{{addglobalvar::n::2}}{{incglobalvar::n}}{{decglobalvar::n}}{{getvar::n}}", "32"),
        ("{{SETVAR::n::a:b}}{{GetVar:: n }}", "a:b"),
        ("{{setvar::n::}}{{getvar::n}}", ""),
        ("{{setvar::x::{{random::a::a}}}}{{getvar::x}}", "a"),
        ("{{setvar::x::two\nlines of {{user}}}}{{getvar::x}}", "two\nlines of Anna"),
        ("{{setvar::k::x}}{{setvar::{{getvar::k}}::7}}{{getvar::{{getvar::k}}}}", "7"),
        ("{{setvar::x::{{setvar::y::1}}{{getvar::y}}}}{{getvar::x}}", "1"),
        ("{{setvar::x::<user>}}{{getvar::x}}", "Anna"),
        ("{{random::{{getvar::a}}x::x}}", "x"),
        ("{{addvar::n::1e400}}{{addvar::n::-1e400}}{{getvar::n}}", "1e400-1e400"),
        ("{{addvar::n::0.0000001}}{{getvar::n}}", "1e-7"),
    ],
)
def test_variable_macro_expands_to_the_documented_text(text: str, result: str) -> None:
    made = ComponentSet(preset(f"<{text}>")).compiled.expand(filling(user="Anna")).made
    assert texts_or_reasons(made) == [f"<{result}>"]


@pytest.mark.parametrize("text", ["{{setvar::a}}", "{{setvar::::1}}", "{{getvar}}", "{{incvar::}}"])
def test_variable_macro_without_a_part_stays_as_written(text: str) -> None:
    assert the_texts(text) == [text]


def test_macro_in_the_value_of_a_variable_is_not_expanded() -> None:
    prompt = the_prompt(
        preset("{{setvar::x::{{user}}}}", "{{getvar::x}}"), values={"user": "{{char}}"}
    )
    # A name in a system message is reduced to letters, so the braces are removed.
    assert texts(prompt) == ["char"]


def test_verdict_names_the_variables_that_a_text_sets_and_reads() -> None:
    prompt = the_prompt(
        preset("{{setvar::a::1}}{{setglobalvar::b::2}}", "x{{getvar::a}}{{getvar::c}}")
    )
    assert verdicts_of(prompt, "component:component_1201") == [
        ("expand", False, "empty; sets a, global b")
    ]
    [(_, kept, reason), *_] = verdicts_of(prompt, "component:component_1202")
    assert kept
    assert "reads a, c" in reason


def test_text_sets_no_variable_when_expanding_the_text_fails() -> None:
    failing = "{{setvar::x::1}}" + "{{setvar::" + "n" * (MAX_NAME + 1) + "::1}}"
    prompt = the_prompt(preset(failing, "[{{getvar::x}}]"))
    assert texts(prompt) == ["[]"]
    [(_, _, reason)] = verdicts_of(prompt, "component:component_1201")
    assert reason == (
        f"template error: the name of a variable has more than {MAX_NAME} characters; shorten it"
    )


def test_note_reads_variables_of_components() -> None:
    prompt = the_prompt(
        preset("{{setvar::mood::sad}}"),
        notes=[AuthorsNote(content="He is {{getvar::mood}}."), AuthorsNote(content="x", every=0)],
        event="Hello?",
    )
    assert "He is sad." in texts(prompt)


def test_note_that_is_not_due_sets_no_variable() -> None:
    notes = [
        AuthorsNote(content="{{setvar::x::1}}a", every=5),
        AuthorsNote(content="[{{getvar::x}}]"),
    ]
    assert texts(the_prompt(notes=notes, event="Hello?")) == ["[]", "Hello?"]


def test_cache_account_names_the_text_that_set_the_variable() -> None:
    parts = preset("{{setvar::n::{{roll:1000000}}}}", "Number {{getvar::n}}.")
    first, second = (
        compose(
            replace(
                (inputs := the_inputs(parts, event="Hello?")),
                rules=replace(inputs.rules, dice=Dice(turn=turn, conversation="1")),
            )
        )
        for turn in ("1:0", "1:1")
    )
    account = second.account(first.sent)
    assert (account.broken_by, account.reason) == ("component:component_1201", "variables")


# Contained texts (imported, without a grant)


def test_variable_of_a_contained_text_is_only_read_by_contained_texts() -> None:
    prompt = the_prompt(
        [
            a_component("{{setvar::x::ours}}", id=1101, key="sets"),
            contained("{{setvar::x::theirs}}{{setvar::y::theirs}}{{getvar::x}}", 1),
            a_component("{{getvar::x}}{{getvar::y}}.", id=1301, key="reads"),
        ],
        history=[said("user", "Hello.")],
    )
    assert texts(prompt) == ["ours.", "Hello.", "theirs"]


def test_contained_text_reads_variables_of_the_game() -> None:
    parts = [a_component("{{setvar::x::ours}}", id=1101, key="sets"), contained("{{getvar::x}}", 1)]
    assert texts(the_prompt(parts)) == ["ours"]


def test_contained_texts_cannot_use_up_the_work_of_the_games_texts() -> None:
    hungry = "{{setvar::x::" + "x" * 1_000 + "}}" + "{{getvar::x}}" * 1_000
    parts = [
        *(contained(hungry, number) for number in range(20)),
        a_component("{{setvar::y::1}}{{getvar::y}}", id=1401, key="ours"),
    ]
    prompt = the_prompt(parts, limit=10**6)
    assert "1" in texts(prompt)
    [(_, _, reason)] = verdicts_of(prompt, "component:component_1201")
    assert "more work than is left" in reason


# Results that are cached from turn to turn

NAMES = st.sampled_from(["a", "b", "c"])
MACROS = st.one_of(
    NAMES.map("{{{{setvar::{}::1}}}}".format),
    NAMES.map("{{{{setvar::{}::{{{{tide}}}}}}}}".format),
    NAMES.map("{{{{setvar::{}::{{{{roll:2}}}}}}}}".format),
    NAMES.map("{{{{addvar::{}::2}}}}".format),
    NAMES.map("{{{{incvar::{}}}}}".format),
    NAMES.map("{{{{getvar::{}}}}}".format),
    NAMES.map("{{{{getglobalvar::{}}}}}".format),
    st.builds("{{{{setvar::{}::{{{{getvar::{}}}}}}}}}".format, NAMES, NAMES),
    st.builds("{{{{setglobalvar::{}::{{{{getvar::{}}}}}}}}}".format, NAMES, NAMES),
    st.just("{{setvar::{{tide}}::9}}"),
    st.just("{{getvar::{{tide}}}}"),
    st.just("word {{tide}}"),
    st.just("{% if tide == 'a' %}{{setvar::a::5}}{% endif %}"),
    st.just("{{setvar::" + "n" * (MAX_NAME + 1) + "::1}}"),
)


@st.composite
def lists_of_components(draw: st.DrawFn) -> list[PromptComponent]:
    made = []
    for at in range(draw(st.integers(1, 8))):
        content = "".join(draw(st.lists(MACROS, min_size=1, max_size=3)))
        kind = draw(st.sampled_from(["builder", "imported", "contained"]))
        made.append(
            contained(content, at)
            if kind == "contained"
            else a_component(content, id=1201 + at, trust=kind, enabled=draw(st.integers(0, 5)) > 0)
        )
    return made


TURNS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "high"]),
        st.sampled_from(["1:0", "1:1", "1:2"]),
        st.sampled_from(
            [
                None,
                MacroState({Variable("a"): "7"}),
                MacroState({}, {Variable("b"): "8"}),
                MacroState(work=PLACED_WORK - 150),
                MacroState(work=PLACED_WORK - 300, work_contained=40),
                MacroState(work_contained=CONTAINED_WORK - 80),
                MacroState(work=99, work_of_lore=PLACED_WORK - 200),
            ]
        ),
    ),
    min_size=2,
    max_size=5,
)


@settings(max_examples=up_to(150), deadline=None)
@given(lists_of_components(), TURNS)
def test_cached_texts_with_variables_equal_texts_rendered_again(
    components: list[PromptComponent], turns: list[tuple[str, str, MacroState | None]]
) -> None:
    kept = ComponentSet(components).compiled
    for tide, turn, state in turns:
        asked = filling(turn=turn, state=state, tide=tide)
        fresh = ComponentSet(components).compiled.expand(asked)
        now = kept.expand(asked)
        assert texts_or_reasons(now.made) == texts_or_reasons(fresh.made)
        assert [_told(one) for one in now.made] == [_told(one) for one in fresh.made]
        assert now.left == fresh.left


def _told(one: Fragment | Verdict) -> str:
    return one.note if isinstance(one, Fragment) else one.reason


@settings(max_examples=up_to(40), deadline=None)
@given(lists_of_components())
def test_texts_with_variables_give_equal_prompts_for_equal_inputs(
    components: list[PromptComponent],
) -> None:
    first, second = (
        compose(the_inputs(components, event="Hello?", values={"tide": "a"})) for _ in range(2)
    )
    assert first.sha256 == second.sha256
    assert first.verdicts == second.verdicts


def test_only_texts_that_read_a_changed_variable_are_rendered_again() -> None:
    members = ComponentSet(
        preset("{{setvar::a::{{tide}}}}", "{{setvar::b::1}}", "{{getvar::a}}", "{{getvar::b}}")
    ).compiled
    first = members.expand(filling(tide="low")).made
    second = members.expand(filling(tide="high")).made
    assert texts_or_reasons(second)[2:] == ["high", "1"]
    assert second[1] is first[1]
    assert second[3] is first[3]


def test_later_texts_are_not_rendered_again_when_a_variable_keeps_its_value() -> None:
    members = ComponentSet(
        preset("{{tide}}{{setvar::a::1}}", "{{getvar::a}}", "{{setvar::a::{{getvar::a}}}}")
    ).compiled
    first = members.expand(filling(tide="low")).made
    second = members.expand(filling(tide="high")).made
    assert texts_or_reasons(second)[0] == "high"
    assert second[1] is first[1]


def test_first_texts_are_expanded_in_each_turn_in_which_the_work_runs_out() -> None:
    big = "{{setvar::x{{tide}}::" + "x" * 150_000 + "}}"
    members = preset(*[big] * 80, "{{setvar::y::1}}{{getvar::y}}")
    kept = ComponentSet(members).compiled
    for tide in ("low", "high", "low"):
        now = kept.expand(filling(tide=tide))
        fresh = ComponentSet(members).compiled.expand(filling(tide=tide))
        assert texts_or_reasons(now.made) == texts_or_reasons(fresh.made)
        assert now.left == fresh.left
    done = [text.startswith("empty") for text in texts_or_reasons(now.made[:80])]
    assert done == sorted(done, reverse=True)
    assert 0 < sum(done) < 80


def test_work_of_unchanged_texts_counts_if_no_text_uses_variables() -> None:
    long = "{{tide}}" + "x" * 40_000
    members = [*preset("{{mood}} {{tide}}", long), contained(long), contained("{{mood}}", 1)]
    kept = ComponentSet(members).compiled
    for tide, mood in (("low", "dry"), ("low", "merry" * 9), ("high", "dry"), ("high", "dry")):
        now = kept.expand(filling(tide=tide, mood=mood))
        fresh = ComponentSet(members).compiled.expand(filling(tide=tide, mood=mood))
        assert texts_or_reasons(now.made) == texts_or_reasons(fresh.made)
        assert now.left == fresh.left


# Hostile texts


@pytest.mark.parametrize("trust", ["imported", "builder"])
def test_variable_that_doubles_its_value_stops_at_a_limit(trust: str) -> None:
    text = "{{setvar::x::1234567890}}" + "{{setvar::x::{{getvar::x}}{{getvar::x}}}}" * 60
    adding = "{{setvar::x::text}}" + "{{addvar::x::{{getvar::x}}}}" * 60
    parts = [
        a_component(one, id=1201 + at, trust=trust) for at, one in enumerate([text, adding] * 50)
    ]
    with little_work():
        prompt = the_prompt(parts)
    assert texts(prompt) == []
    told = ("makes more than 200000 characters", f"would have more than {MAX_VALUE} characters")
    for at, limit in enumerate(told):
        [(_, _, reason)] = verdicts_of(prompt, f"component:component_{1201 + at}")
        assert limit in reason


@pytest.mark.long
def test_texts_that_set_a_million_variables_stop_at_a_limit() -> None:
    parts = preset(
        *("".join(f"{{{{setvar::v{at}_{n}::1}}}}" for n in range(400)) for at in range(20))
    )
    with little_work(6.0):
        left = ComponentSet(parts).compiled.expand(filling()).left
    assert 400 <= len(left.granted) < PLACED_WORK // 40


@pytest.mark.parametrize("name", ["setvar::x", "random", "setvar::x::{{random::a", "//", "getvar"])
def test_deeply_nested_variable_macros_take_linear_time(name: str) -> None:
    deep = f"{{{{{name}::" * 7_000 + "}}" * 7_000
    for text in (deep, f"{{{{{name}::" * 7_000, deep[:100_000]):
        with little_work():
            the_prompt(preset(text), limit=10**6)


def work_to_read(characters: int) -> int:
    """Return the work of a text that reads a variable of this length.

    Its characters are copied twice (read, then put into the text), and its tokens are counted once.
    """
    return 2 * (characters // COPIED_A_UNIT) + characters // COUNTED_A_UNIT


def test_repeated_reading_of_a_long_variable_stops_at_a_limit() -> None:
    parts = preset("{{setvar::x::" + "x" * 100_000 + "}}", *["{{getvar::x}}"] * 500)
    with little_work(10.0):
        made = ComponentSet(parts).compiled.expand(filling()).made
    full = [text for text in texts_or_reasons(made) if len(text) == 100_000]
    assert len(full) == PLACED_WORK // work_to_read(100_000)
    assert "need more work than is left for the texts of this turn" in texts_or_reasons(made)[-1]


def test_contained_texts_have_a_limited_share_of_the_work() -> None:
    parts = [
        contained("{{setvar::x::" + "x" * 50_000 + "}}", 0),
        *(contained("{{getvar::x}}", number) for number in range(1, 50)),
    ]
    made = ComponentSet(parts).compiled.expand(filling()).made
    full = [text for text in texts_or_reasons(made) if len(text) == 50_000]
    assert len(full) == CONTAINED_WORK // work_to_read(50_000)


def test_variables_are_unchanged_when_there_are_no_texts_to_expand() -> None:
    assert ComponentSet([]).compiled.expand(filling()).left == MacroState()
