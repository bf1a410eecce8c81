"""Regex scripts in prompts: what they change, what they leave alone, and what they cost."""

from dataclasses import replace
from typing import Any

import pytest

from evennia_ai.engine import compose as composing
from evennia_ai.engine.compose import compose
from evennia_ai.engine.execution_request import ExecutionRequest, execution_request
from evennia_ai.engine.lorebook.scan.regex import replacing
from evennia_ai.engine.prompt.assembly.rules import AssemblyRules
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import event_message, said
from evennia_ai.engine.prompt.prompt import Prompt
from evennia_ai.engine.regex_scripts import SCRIPT_STEPS, RegexScript, display_text
from tests.engine.lorebook.builders import a_book, an_entry
from tests.engine.prompt.builders import a_tool_pair, texts, the_inputs

SAID = (
    said("user", "A <b>bold</b> word.", name="Ann", record="1"),
    said("assistant", "<think>hm</think>Yes.", record="2"),
    said("user", "And <b>this</b>?", name="Ann", record="3"),
)
BOLD = RegexScript(
    origin="regex:game/bold",
    find="/<b>(.*?)<\\/b>/g",
    replacement="*$1*",
    placements=("user_input",),
)
THINK = RegexScript(
    origin="regex:preset p/think",
    find="/<think>[\\s\\S]*?<\\/think>/g",
    placements=("ai_output",),
    prompt_only=True,
)


def a_prompt(*scripts: RegexScript, history: Any = SAID, **options: Any) -> Prompt:
    """Return the prompt with these scripts, in answer to an event of the same form."""
    event = event_message("Now <b>that</b>!", name="Ann", record="9")
    rules = options.pop("assembly", None)
    inputs = replace(the_inputs(**options), event=event, scripts=scripts)
    if rules is not None:
        inputs = replace(inputs, rules=replace(inputs.rules, assembly=rules))
    known = history if isinstance(history, History) else History(history)
    return compose(replace(inputs, history=known))


def reasons(prompt: Prompt) -> dict[str, str]:
    return {one.item: one.reason for one in prompt.verdicts if one.item.startswith("regex:")}


def test_scripts_change_history_and_event_of_their_placement_only() -> None:
    prompt = a_prompt(BOLD, THINK)
    assert texts(prompt)[-4:] == ["A *bold* word.", "Yes.", "And *this*?", "Now *that*!"]
    assert reasons(prompt)["regex:preset p/think"] == "changed #2 (1 place, -17 characters)"
    assert "changed #9 (1 place, -5 characters), #3 (" in reasons(prompt)["regex:game/bold"]
    assert SAID[0].content == "A <b>bold</b> word."
    [changed] = [m for m in prompt.messages if m.content == "Yes."]
    assert (changed.record, changed.origin) == (None, "history:2")


def test_unchanged_messages_stay_the_same_objects_and_changed_ones_are_made_once() -> None:
    history = History(SAID)
    first, second = a_prompt(THINK, history=history), a_prompt(THINK, history=history)
    assert any(message is SAID[0] for message in first.messages)
    assert all(a is b for a, b in zip(first.messages[-4:-1], second.messages[-4:-1], strict=True))
    assert first.history is second.history


def test_composing_without_scripts_searches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("scripts were run")

    monkeypatch.setattr(composing, "ScriptRun", refuse)
    monkeypatch.setattr(composing, "without_emptied", refuse)
    assert a_prompt().messages[-1].content == "Now <b>that</b>!"


def test_depth_counts_from_the_event_and_passes_over_tools_of_the_turn() -> None:
    at = {
        (low, high): texts(a_prompt(replace(BOLD, prompt_only=True, min_depth=low, max_depth=high)))
        for low, high in ((0, 0), (1, 1), (1, None), (3, 3), (None, 2))
    }
    starred = {
        bounds: [n for n, one in enumerate(made[-4:]) if "*" in one] for bounds, made in at.items()
    }
    assert starred == {(0, 0): [3], (1, 1): [2], (1, None): [0, 2], (3, 3): [0], (None, 2): [2, 3]}
    tools = tuple(replace(one, block="tool", memo={}) for one in a_tool_pair(1))
    bounded = replace(BOLD, prompt_only=True, max_depth=0)
    with_tools = texts(a_prompt(bounded, tools=tools))
    assert "Now *that*!" in with_tools


def test_words_of_people_are_never_expanded_and_macros_of_the_author_are() -> None:
    script = replace(BOLD, replacement="{{char}}:{{match}}:$1", find="/<b>(.*)<\\/b>/")
    history = (said("user", "<b>{{char}} {{setvar::x::1}} $0</b>", name="Ann", record="1"),)
    prompt = a_prompt(script, history=history, values={"char": "Oren", "user": "$1"})
    assert "Oren:<b>{{char}} {{setvar::x::1}} $0</b>:{{char}} {{setvar::x::1}} $0" in texts(prompt)
    named = replace(BOLD, find="/{{user}}/g", replacement="$0!", fills_find=True)
    prompt = a_prompt(named, history=(said("user", "a.b axb", record="1"),), values={"user": "a.b"})
    assert "a.b! axb" in texts(prompt)


def test_emptied_message_is_left_out_and_costs_nothing() -> None:
    gone = RegexScript(origin="regex:game/gone", find="/^A .*$/", placements=("user_input",))
    prompt, before = a_prompt(gone), a_prompt()
    assert "" not in texts(prompt)
    assert len(prompt.messages) == len(before.messages) - 1
    assert prompt.tokens == before.tokens - SAID[0].tokens(prompt.counter)
    assert prompt.called(2) == f"message {len(prompt.messages) - 2}"


def test_names_are_added_after_the_scripts() -> None:
    rules = AssemblyRules(names="content")
    start = RegexScript(
        origin="regex:game/s", find="/^/", replacement="> ", placements=("user_input",)
    )
    assert "Ann: > And <b>this</b>?" in texts(a_prompt(start, assembly=rules))


def test_lore_is_changed_by_prompt_scripts_at_its_depth_and_left_out_when_empty() -> None:
    book = a_book(
        an_entry("@@depth 2\nThe <b>lamp</b>.", constant=True),
        an_entry("<b>rope</b>", constant=True),
    )
    lore = replace(BOLD, placements=("world_info",), prompt_only=True)
    assert "The *lamp*." in " ".join(texts(a_prompt(lore, books=(book,))))
    assert "<b>lamp" in " ".join(texts(a_prompt(replace(lore, prompt_only=False), books=(book,))))
    deep = replace(lore, replacement="", min_depth=3)
    made = " ".join(texts(a_prompt(deep, books=(book,))))
    assert "<b>lamp</b>" in made
    assert "rope" not in made


def test_key_of_lore_is_found_in_the_changed_words() -> None:
    book = a_book(an_entry("LORE of the ferry", keys=["ferry"]))
    secret = replace(BOLD, find="/bold/", replacement="ferry", placements=("user_input",))
    assert "LORE of the ferry" in " ".join(texts(a_prompt(secret, books=(book,))))


def test_slow_script_is_skipped_with_a_reason_and_others_still_run() -> None:
    slow = RegexScript(origin="regex:game/slow", find="/(x+x+)+y/", placements=("user_input",))
    long = tuple(said("user", f"{'x' * 40}z y {n}", record=str(n)) for n in range(1, 9))
    prompt = a_prompt(slow, BOLD, history=(*long, *SAID[:1]))
    told = reasons(prompt)
    assert "left #8: the search took more than 131,072 steps" in told["regex:game/slow"]
    assert "then not searched: 7 older texts" in told["regex:game/slow"]
    assert "*bold*" in " ".join(texts(prompt))


def test_steps_of_a_turn_are_bounded_and_cached_results_count_like_new_ones() -> None:
    every = RegexScript(
        origin="regex:game/every", find="/./g", replacement="$0", placements=("user_input",)
    )
    history = History([said("user", f"{n} {'word ' * 120}", record=str(n)) for n in range(1, 40)])
    first = a_prompt(every, history=history, limit=200_000)
    assert (
        "the steps that all scripts of a turn may take were used up"
        in (reasons(first)["regex:game/every"])
    )
    again = a_prompt(every, history=history, limit=200_000)
    fresh = a_prompt(
        every, history=History([replace(m, memo=type(m.memo)()) for m in history]), limit=200_000
    )
    assert reasons(first) == reasons(again) == reasons(fresh)
    assert first.sha256 == again.sha256 == fresh.sha256
    assert SCRIPT_STEPS >= 1 << 20


def test_result_that_grows_without_bound_is_refused() -> None:
    grow = replace(BOLD, find="/./g", replacement="y" * 5_000)
    told = reasons(a_prompt(grow))["regex:game/bold"]
    assert f"the text would get more than {replacing.MOST_RESULT:,} characters" in told


def test_request_with_scripts_composes_the_same_prompt_elsewhere() -> None:
    inputs = replace(the_inputs(history=SAID), scripts=(BOLD, THINK))
    request = execution_request(inputs, npc_ref="1", conversation=1, event="9")
    there = ExecutionRequest.from_json(request.to_json())
    assert (
        there.composed().prompt.sha256
        == compose(inputs).sha256
        != compose(replace(inputs, scripts=())).sha256
    )


def test_depth_bound_breaks_the_prefix_with_the_reason_scripts_and_others_do_not() -> None:
    def broken_by(script: RegexScript) -> tuple[str | None, str | None]:
        lines = [said("user", f"<b>{n}</b>", record=str(n)) for n in range(1, 8)]
        inputs = replace(the_inputs(), scripts=(script,))
        older, newer = (
            compose(
                replace(
                    inputs,
                    history=History(lines[:n]),
                    event=event_message(lines[n].content, record=lines[n].record),
                )
            )
            for n in (5, 6)
        )
        account = newer.account(older.sent)
        return account.reason, account.broken_by

    assert broken_by(BOLD) == ("append", None)
    bounded = replace(BOLD, prompt_only=True, min_depth=3)
    assert broken_by(bounded) == ("scripts", "history:4")


def test_display_scripts_change_what_players_see_at_depth_0() -> None:
    shown = RegexScript(
        origin="regex:game/hp",
        find="/<hp>(\\d+)<\\/hp>/",
        replacement="({{char}} $1)",
        placements=("ai_output",),
        display_only=True,
    )
    dice = Dice(turn="1", conversation="1")
    scripts = (shown, THINK, replace(shown, find="/Aye/", replacement="No", min_depth=1))
    made = display_text(
        "Aye <think>x</think><hp>7</hp>", scripts, values={"char": "Oren"}, dice=dice
    )
    assert made == "Aye <think>x</think>(Oren 7)"
