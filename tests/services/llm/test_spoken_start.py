"""Test that what is said before the reply ends is the start of the whole speech."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evennia_ai.services.llm.speech import SpokenStart
from tests.effort import little_work
from tests.properties import up_to

NAMES = ["Oren", "Old Oren"]
OTHERS = ["Anna", "Bo"]


def a_start(**more: Any) -> SpokenStart:
    return SpokenStart(NAMES, OTHERS, **({"early": True} | more))


def said_early(text: str, *, size: int = 1, **more: Any) -> list[str]:
    """Return the sentences that are said early if the text comes in fragments of one size."""
    start = a_start(**more)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    return [sentence for piece in pieces for sentence in start.feed(piece)]


def test_nothing_is_said_early_unless_enabled() -> None:
    start = SpokenStart(NAMES)
    assert start.feed("Aye. The ferry is late. ") == []
    assert start.rest("Aye. The ferry is late. Sit.") == "Aye. The ferry is late. Sit."


def test_whole_sentences_are_said_while_the_rest_is_written() -> None:
    start = a_start()
    assert start.feed("Aye, the ferry is la") == []
    assert start.feed("te. Sit down! And") == ["Aye, the ferry is late.", " Sit down!"]
    assert start.rest("Aye, the ferry is late. Sit down! And wait.") == " And wait."


def test_last_sentence_waits_for_the_end_of_the_reply() -> None:
    start = a_start()
    assert start.feed("Aye, the ferry is late.") == []
    assert start.rest("Aye, the ferry is late.") == "Aye, the ferry is late."


def test_nothing_is_said_early_after_the_end() -> None:
    start = a_start()
    start.rest("Aye, so it is. Sit.")
    assert start.feed("Aye, so it is. Sit.") == []


@pytest.mark.parametrize(
    ("text", "early"),
    [
        ("It costs 3.50 silver. Pay.", ["It costs 3.50 silver."]),
        ("Ask Mr. Bell of St. Anne. He knows.", ["Ask Mr. Bell of St. Anne."]),
        ("Well... perhaps not. Sit.", ["Well... perhaps not."]),
        ("It was J. Bell himself. Sit.", ["It was J. Bell himself."]),
        ("Sit down here.\nthen wait. Now.", ["Sit down here.", "\nthen wait."]),
        ("これは港です。あれは船です。はい", ["これは港です。", "あれは船です。"]),
        ("*He nods. Slowly.* Aye then.", ["*He nods. Slowly.*"]),
        ("*nods* Aye, so it is. Sit.", ["*nods* Aye, so it is."]),
        ('He said "No. Never." to me. Sit.', ['He said "No. Never." to me.']),
        ("Sit (or stand. Or lie.) now. Well.", ["Sit (or stand. Or lie.) now."]),
        ('"Aye," he said. "No." Then more.', ['"Aye," he said.', ' "No."']),
        ("[sighs] Well, sit down. Now.", ["[sighs] Well, sit down."]),
        ("Oren: Aye, sit down.\nNow, wait here. Well.", ["Aye, sit down.", "\nNow, wait here."]),
        ("Orenko, sit down. Now.", ["Orenko, sit down."]),
        ("Sit here. Sit down.\nAnna: No.\nOren: Yes. Sit.", ["Sit here."]),
        ("<think>No. No.</think> \n Aye, sit down. Now.", ["Aye, sit down."]),
        ("<think>a</think>[THINK]b[/THINK]Aye, sit down. Now.", ["Aye, sit down."]),
        ("Sit down here. Now <think>No. No.</think> go. Well.", ["Sit down here."]),
        ("Sit down here. Well. <b>Now.</b> Go.", ["Sit down here."]),
        ("Sit down here.<｜User｜>And you? No. Well.", []),
        ("Sit down here. <｜User｜>And you? No. Well.", []),
        ("Sit down here. [INST] And you? No. Well.", []),
        ("Sit down here. Well [/INST] No. Well.", ["Sit down here."]),
        ("Sit down here.\n]~b]user\nAnd you? No. Well.", []),
        ("Sit down here. USER: And you? No. Well.", ["Sit down here."]),
        ("Sit down here.\nUser: And you? No. Well.", []),
        ("Sit down here.\nuser\nAnd you? No. Well.", []),
        ("Sit down here.\n### Instruction: And you? No. Well.", []),
        ("Sit down here. /no_think And you? No. Well.", []),
        ("Assistant: Sit down here. Well.", []),
        ("", []),
    ],
)
def test_early_sentence_ends_where_a_listener_hears_an_end(text: str, early: list[str]) -> None:
    given_out = said_early(text)
    assert given_out == early


@pytest.mark.parametrize(
    "text",
    [
        '"Aye. Sit down here. Now."',
        "“Aye. Sit down here. Now.”",
        'Oren: "Aye. Sit down here. Now."',
        "Anna: Aye. Sit down here. Now.",
        "<think>She lies. I see it. Well.",
        "Reasoning: she lies. I see it.\nAnswer: Aye.",
        "analysisShe lies. I see it. Well.assistantfinalAye.",
        "Here's my thought process: she lies. I see. Here's my response: Aye.",
        "```thinking\nShe lies. I see. Well.\n```\nAye.",
        '{"say": "Aye. Sit down. Now."}',
        '[{"say": "Aye. Sit down. Now."}]',
        "<|channel|>analysis<|message|>She lies. I see. Well.",
        "*He nods. He waits. He sits.",
    ],
)
def test_text_that_may_still_change_is_not_said_early(text: str) -> None:
    assert said_early(text) == []


def test_early_speech_obeys_the_limits_of_the_whole() -> None:
    assert said_early("Sit here.\nSit there.\nGo now.", max_lines=1) == []
    assert said_early("Sit down here. Go away there. Now.", max_characters=20) == ["Sit down here."]
    assert said_early("Sit down here. Go away there. Now.", max_characters=0) == []


PARTS = st.sampled_from(
    [
        *("Aye.", "No!", "why?", "Sit down here. ", "Well…", "港。", "3.5", "Mr.", "x", "."),
        *(" ", "  ", "\n", "\r\n", "\t", "\u200b", "\ud800", "\x1b[31m", "\x1b", "\u2028", ":"),
        *("Oren:", "Old Oren: ", "**Oren:** ", "Anna:", "anna ", "**Bo**:", "Or", "An", "# "),
        *('"', "'", "“", "”", "*", "(", ")", "[", "]", "[sighs]", "{", "don't", "’", "«", "_"),
        *("<think>", "</think>", "[think]", "[/think]", "◁think▷", "◁/think▷", "<seed:think>"),
        *("<|channel|>final<|message|>", "<|channel|>analysis<|message|>", "<|end|>", "<", "<|"),
        *("```thinking\n", "```\n", "`", "<|im_start|>user\n", "<channel|>", "<|START_THINKING|>"),
        *("Reasoning:", "Thinking", "\nAnswer: ", "analysis", "assistantfinal", "Here's my "),
        *("[INST]", "[/INST]", "[INS", "T]", "[EOS]", "]~b]user\n", "]~", "b]", "[e~[", "[|user|]"),
        *("/no_think ", "/no", "USER: ", " ASSISTANT: ", "User: ", "\nuser\n", "\nassistant\n"),
        *("<｜User｜>", "### Instruction: ", "### Response: ", "[UNUSED_TOKEN_146]", "</answer>"),
        *("**Aye.** ", "# Aye\n", "| a | b |\n", "|---|---|\n", "---\n", "`x`", "{{char}}", "> "),
        *("[give: jar -> Bo] ", "[map](http://x)", "__no__", "<b>", "[Oren] ", "oren> ", "<Oren> "),
        *("Oren (smiling): ", "Oren (", "Sure! Here is a reply in character: ", "Of course. "),
        *(
            "Would you like me to continue? ",
            "Response: ",
            "\nAnna says, ",
            '"No!" ',
            "*Bo nods.* ",
        ),
        *(
            'says Anna. "',
            "Bo: ",
            "```python\n",
            '{"say": "Aye."}',
            "以下は返答です：",
            "*Bo nods.* ",
        ),
        *("thought process:", "Here's my response: ", "[thinking", "</s>", "<think", ">"),
    ]
)
TEXTS = st.lists(PARTS, max_size=25).map("".join)


@settings(deadline=None, max_examples=up_to(400))
@given(
    TEXTS | st.text(max_size=60),
    st.lists(st.integers(0, 200), max_size=12),
    st.integers(0, 80),
    st.integers(0, 4),
    st.booleans(),
)
def test_early_speech_is_the_start_of_the_whole_speech(
    text: str, cuts: list[int], max_characters: int, max_lines: int, early: bool
) -> None:
    start = a_start(early=early, max_characters=max_characters, max_lines=max_lines)
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    pieces = [text[one:other] for one, other in pairwise(places)]
    given_out = "".join(sentence for piece in pieces for sentence in start.feed(piece))
    whole = start.whole(text)
    assert whole.startswith(given_out)
    assert given_out + start.rest(text) == whole


@settings(deadline=None, max_examples=up_to(200))
@given(TEXTS, st.integers(0, 80))
def test_early_speech_does_not_depend_on_the_pieces(text: str, max_characters: int) -> None:
    by_one = "".join(said_early(text, size=1, max_characters=max_characters))
    by_more = "".join(said_early(text, size=7, max_characters=max_characters))
    at_once = "".join(said_early(text, size=len(text) or 1, max_characters=max_characters))
    assert by_one.startswith(by_more) or by_more.startswith(by_one)
    assert at_once.startswith(by_one) or by_one.startswith(at_once)


@pytest.mark.parametrize("size", [1, 4000])
@pytest.mark.parametrize(
    "unit",
    [
        *("Aye. ", ".", " ", "\u200b.", "<think>", "<think></think>", "<think>a", "[", "Oren: "),
        *("\n.", '"', "*.", "think", "\nOren: .", "A", "</think>", "\nOren:", "\n"),
    ],
)
def test_hostile_replies_cost_linear_time_in_early_speech(unit: str, size: int) -> None:
    text = unit * (40_000 // len(unit))
    with little_work():
        said_early(text, size=size)


def test_npc_says_no_sentence_early_that_follows_very_long_reasoning() -> None:
    text = f"<think>{'She lies. ' * 20_000}</think>Sit down here. Go away there. Now."
    start = a_start()
    assert [
        one for at in range(0, len(text), 9_000) for one in start.feed(text[at : at + 9_000])
    ] == []
    assert start.whole(text) == ""
