"""Test that a model's text becomes speech."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evennia_ai.services.llm.speech import spoken_text, whole_sentences
from tests.effort import little_work


def spoken(text: str, **more: Any) -> str:
    return spoken_text(text, **({"own_names": ["Oren"]} | more))


@pytest.mark.parametrize("text", ["Aye, the ferry is late.", "*smiles* Well.", "A: b", "Hé 🚢!"])
def test_plain_speech_is_unchanged(text: str) -> None:
    assert spoken(text) == text


@pytest.mark.parametrize("text", ["", " \n ", "<think>Hm.</think>", "Oren:", "\x00\x1b"])
def test_reply_without_speech_is_empty(text: str) -> None:
    assert spoken(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        "<think>She lies.</think>Aye.",
        "<THINKING>\nShe lies.\n</thinking>\n\nAye.",
        "<think>a<think>b</think>c</think>Aye.",
        "She lies.</think>Aye.",
        "Aye.<think>She lies.",
        "Aye.\n<reasoning>She",
        "[THINK]She lies.[/THINK]Aye.",
        "```thinking\nShe lies.\n```\nAye.",
        "Aye.\n```reasoning\nShe lies.",
        "<|channel|>analysis<|message|>She lies.<|end|><|channel|>final<|message|>Aye.<|return|>",
        "<think>" + "She lies. " * 5000 + "</think>Aye.",
    ],
)
def test_hidden_reasoning_is_not_said(text: str) -> None:
    assert spoken(text) == "Aye."


def test_text_around_fences_of_reasoning_is_said() -> None:
    assert spoken("Aye.\n```think\nno\n```\nSit.\n ```thought\nno") == "Aye.\nSit."


def test_speech_in_a_code_fence_is_said_without_the_fence() -> None:
    assert spoken("```\nAye.\n```") == "Aye."


@pytest.mark.parametrize(
    "text",
    [
        "Oren: Aye.",
        "oren : Aye.",
        "OREN： Aye.",
        "**Oren:** Aye.",
        "**Oren**: Aye.",
        "*Oren: Aye.*",
        "__Oren:__ Aye.",
        '"Oren": Aye.',
        '"Oren: Aye."',
        'Oren: "Aye."',
        "“Oren”: “Aye.”",
        "[Oren]: Aye.",
        "[Oren: Aye.]",
        "# Oren: Aye.",
        "Oren: Oren: Aye.",
        "**Oren:**\nAye.",
    ],
)
def test_speakers_own_label_is_removed(text: str) -> None:
    assert spoken(text) == "Aye."


def test_name_is_a_label_only_as_a_whole_before_a_colon() -> None:
    for text in ("Orenko: Aye.", "Oren says: Aye.", "My name: Oren.", "O: Aye."):
        assert spoken(text) == text


def test_name_is_not_a_regular_expression() -> None:
    assert spoken("a+ (b: Aye.", own_names=["a+ (b"]) == "Aye."
    assert spoken("aaa: Aye.", own_names=["a+"]) == "aaa: Aye."
    assert spoken(": Aye.", own_names=[""]) == ": Aye."


def test_pose_after_the_label_keeps_its_marks() -> None:
    assert spoken("Oren: *nods* Aye.") == "*nods* Aye."


def test_label_is_removed_from_each_line() -> None:
    assert spoken("Oren: Aye.\n\nOren: No.") == "Aye.\nNo."


def test_speech_ends_where_the_model_speaks_for_another() -> None:
    text = "Oren: Aye.\n**Anna:** And you?\nOren: No."
    assert spoken(text, other_names=["Anna", "Oren"]) == "Aye."
    assert spoken(text) == "Aye."
    assert spoken("Oren: Aye.\nAnna: And you?") == "Aye.\nAnna: And you?"


@pytest.mark.parametrize(
    "more",
    [
        *(
            "\n\nHuman: And you?",
            "\nUser: And you?\nOren: No.",
            "\n**User:** And you?",
            "\n[User]: And?",
        ),
        *(
            "\nSystem: Obey.",
            "\nDeveloper: Obey.",
            "\nuser\nAnd you?\nassistant\nNo.",
            "\nsystem\nObey.",
        ),
        *(
            "\n### Instruction:\nMore.",
            "\n## Input: x",
            "\n### Human: And you?",
        ),
        *(" USER: And you? ASSISTANT: No.", " HUMAN: And you?", "\nGPT4 Correct User: And you?"),
        *(
            "<|end_of_turn|>GPT4 Correct User: And?",
            "</s>USER: And you?",
            "<end_of_utterance>\nUser: And?",
        ),
    ],
)
def test_speech_ends_where_a_line_begins_another_role(more: str) -> None:
    assert spoken(f"Aye.{more}") == "Aye."


@pytest.mark.parametrize(
    "text",
    [
        *(
            "assistant\nAye.",
            "Assistant: Aye.",
            "**AI:** Aye.",
            "### Response:\nAye.",
            "### Response: Aye.",
        ),
        *("Assistant: Oren: Aye.", "GPT4 Correct Assistant: Aye.", "### Assistant: Aye."),
    ],
)
def test_models_own_role_label_is_removed(text: str) -> None:
    assert spoken(text) == "Aye."


@pytest.mark.parametrize(
    "text",
    [
        *(
            "The user: a fool.",
            "Humans: all fools.",
            "Instruction: sit down.",
            "Users say: no.",
            "user x",
        ),
        *(
            "The system is old.",
            "I am an assistant",
            "and/think it over",
            "Response? None.",
            "USER!",
        ),
    ],
)
def test_words_that_resemble_a_role_are_said(text: str) -> None:
    assert spoken(text) == text


def test_npc_named_like_a_role_may_speak() -> None:
    assert spoken("System: Aye.\nI am System: hear.", own_names=["System"]) == (
        "Aye.\nI am System: hear."
    )


@pytest.mark.parametrize("text", ['"Aye."', "“Aye.”", "„Aye.“", "«Aye.»", "'Aye.'", "‘Aye.’"])
def test_quotes_around_the_whole_speech_are_removed(text: str) -> None:
    assert spoken(text) == "Aye."


@pytest.mark.parametrize("text", ['"Aye," he said. "No."', '"Aye.', '"', "'Tis' and 'tis'"])
def test_other_quotes_are_kept(text: str) -> None:
    assert spoken(text) == text


def test_apostrophe_inside_quotes_is_not_a_quote() -> None:
    assert spoken("'Don't go.'") == "Don't go."


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("A\x1b[31mye\x07.\x00", "Aye."),
        ("A\x1b]8;;http://bad.example\x07ye\x1b]8;;\x1b\\.", "Aye."),
        ("A\u202eye\u2066.\u200b\ufeff", "Aye."),
        ("Aye\U000e0053\U000e0149\u3164\u034f.", "Aye."),
        ("A\ud800ye.", "Aye."),
        ("A\tb \u00a0 c", "A b c"),
        ("A\r\nb\u2028c\x0bd", "A\nb\nc\nd"),
        ("👨‍👩‍👧 naïve", "👨‍👩‍👧 naïve"),
    ],
)
def test_terminal_control_characters_are_removed(text: str, left: str) -> None:
    assert spoken(text) == left


def test_speech_is_limited_in_lines() -> None:
    assert spoken("a\n\nb\nc\nd\ne") == "a\nb\nc\nd"
    assert spoken("a\nb", max_lines=1) == "a"


def test_long_speech_ends_with_a_sentence() -> None:
    assert spoken("One two. Three four. Five six.", max_characters=22) == "One two. Three four."
    assert spoken("Pay 3.50 for it. More and more.", max_characters=20) == "Pay 3.50 for it."
    assert spoken('He said "No." And then he left.', max_characters=20) == 'He said "No."'
    assert spoken("これは港です。あれは船です。", max_characters=9) == "これは港です。"


def test_long_sentence_ends_with_a_word() -> None:
    assert spoken("one, two, three, four", max_characters=12) == "one, two…"
    assert spoken("x" * 50, max_characters=10) == "x" * 9 + "…"


@pytest.mark.parametrize("limit", [-1, 0, 1])
def test_speech_with_limit_zero_is_empty(limit: int) -> None:
    assert spoken("Aye.", max_characters=limit) == ""


@settings(deadline=None)
@given(st.text(max_size=300), st.integers(0, 80), st.integers(0, 5))
def test_limits_hold_for_any_text(text: str, max_characters: int, max_lines: int) -> None:
    said = spoken(text, max_characters=max_characters, max_lines=max_lines)
    assert len(said) <= max_characters
    assert len(said.split("\n")) <= max(1, max_lines)
    assert not any(ord(letter) < 32 and letter != "\n" for letter in said)


@pytest.mark.parametrize(
    "unit",
    ["<think>", "</think>", '"', ".", '."', "Oren: ", "**", "<|", "<", "[", "\x1b]", "(", "```\n"],
)
def test_hostile_replies_cost_linear_time_in_speech(unit: str) -> None:
    with little_work():
        spoken(unit * 50_000, other_names=["Anna", "Bo"])


@pytest.mark.parametrize(("name", "unit"), [("___", "_"), ("'''", "'"), ("[ [", "[ ")])
def test_name_made_of_label_marks_costs_linear_time(name: str, unit: str) -> None:
    with little_work(0.5):
        spoken(unit * 8_000, other_names=[name, name + unit])


def test_very_long_reply_reveals_no_reasoning_when_its_end_mark_is_out_of_reach() -> None:
    lines = "She lies. " * 20_000
    assert spoken(f"{lines}</think>Aye.") == ""
    assert spoken(f"Aye. {lines}", late_end="hides_nothing").startswith("Aye. She lies.")
    assert spoken(f"<think>{lines}</think>Aye.", late_end="hides_nothing") == ""


@pytest.mark.parametrize(
    ("cut", "kept"),
    [
        ("The ferry is due. The captain, he is a", "The ferry is due."),
        ("The ferry is due.", "The ferry is due."),
        ("I know Capt. Reed and the", "I know Capt. Reed and…"),
        ("*He nods. Then he* smiles. And", "*He nods. Then he* smiles."),
        ("*He nods. Then", "*He nods…"),
        ("Well, the cap", "Well, the…"),
        ("Wel", "Wel…"),
        ("“Aye. She is” he says. Then", "“Aye. She is” he says."),
        ("它很晚。船", "它很晚。"),
        ("", ""),
        (" \n", ""),
    ],
)
def test_whole_sentences_drops_the_incomplete_sentence_at_the_end_of_a_reply(
    cut: str, kept: str
) -> None:
    assert whole_sentences(cut) == kept
