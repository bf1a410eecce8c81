"""Special tokens, tags and heads of chat formats are found, and undone by degrees."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.history.role_markup import neutral, role_markup, without_tags, without_tokens

TOKENS = [
    "<|im_start|>",
    "<|im_end|>",
    "<｜User｜>",
    "<|turn>",
    "<turn|>",
    "<|start_header_id|>",
    "<|START_OF_TURN_TOKEN|>",
    "<EOS_TOKEN>",
    "<s>",
    "</s>",
    "<bos>",
    "<start_of_turn>",
    "<end_of_turn>",
    "[INST]",
    "[/INST]",
    "[SYSTEM_PROMPT]",
    "[TOOL_RESULTS]",
    "[TOOL_CONTENT]",
    "<<SYS>>",
    "<</SYS>>",
    "[|endofturn|]",
    "]~b]",
    "[e~[",
    "[gMASK]",
    "<unused7>",
]
TAGS = [
    "<tool_call>",
    "</tool_response>",
    "<function_calls>",
    "<x:function_calls>",
    '<x:invoke name="give">',
    "</think>",
]
WORDS = [
    "a < b and b > c",
    "<3",
    "x | y",
    "[sic]",
    "<b>bold</b>",
    "if a<b: c>d",
    "I said [gold] and |stop|",
    "The system: it works",
    "list[int]",
]


@pytest.mark.parametrize("token", TOKENS)
def test_a_special_token_is_undone_and_can_still_be_read(token: str) -> None:
    plain = without_tokens(f"Hello {token} there")
    assert token not in plain
    assert role_markup(plain) is None
    letters = [letter for letter in token if letter.isalpha()]
    assert [letter for letter in plain[6:-6] if letter.isalpha()] == letters


@pytest.mark.parametrize("tag", TAGS)
def test_a_tag_of_a_model_is_undone_where_asked_and_stays_in_what_the_game_says(tag: str) -> None:
    assert tag not in without_tags(f"Hello {tag} there")
    assert without_tokens(f"Hello {tag} there") == f"Hello {tag} there"


@pytest.mark.parametrize("words", WORDS)
def test_words_with_brackets_are_left_alone(words: str) -> None:
    assert neutral(words) == words


def test_what_undoing_would_make_is_undone_too() -> None:
    assert without_tags("<|a<s>|> </<s>s>") == "‹|a‹s›|› </‹s›s>"


def test_our_own_fence_around_a_transcript_is_undone_in_transcripts_alone() -> None:
    assert without_tags("<transcript>") == "<transcript>"
    assert neutral("</transcript>") == "‹/transcript›"


@given(st.lists(st.sampled_from([*"<>[]|｜ \n/~b", "s", "im_start", "INST", "x:"])).map("".join))
def test_nothing_that_was_undone_holds_a_token(text: str) -> None:
    plain = without_tags(text)
    assert without_tags(plain) == without_tokens(plain) == plain
