"""Test what a server's refusals teach: fields to leave out, and the length of prompts."""

import pytest

from evennia_ai.services.llm.learned import Learned, without_fields

BODY = {
    "model": "tiny",
    "messages": [{"role": "assistant", "content": "", "reasoning_content": "hm"}],
    "user": "u",
    "max_tokens": 9,
}


def test_refused_fields_are_left_out_or_renamed() -> None:
    refused = {"user": "", "max_tokens": "max_completion_tokens", "reasoning_content": ""}
    assert without_fields(BODY, refused) == {
        "model": "tiny",
        "messages": [{"role": "assistant", "content": ""}],
        "max_completion_tokens": 9,
    }


@pytest.mark.parametrize("needed", ["model", "messages", "max_tokens"])
def test_needed_field_is_never_left_out(needed: str) -> None:
    assert without_fields(BODY, {needed: ""}) == BODY


def test_tool_argument_with_a_refused_name_stays() -> None:
    schema = {"type": "object", "properties": {"strict": {"type": "string", "strict": True}}}
    assert without_fields({"tools": [{**schema, "strict": True}]}, {"strict": ""}) == {
        "tools": [{"type": "object", "properties": {"strict": {"type": "string"}}}]
    }


def test_refusal_is_news_only_once() -> None:
    learned = Learned()
    assert learned.learn_refusal("user")
    assert not learned.learn_refusal("user")


@pytest.mark.parametrize(
    ("window", "counted", "limit"),
    [
        (1125, None, 725),  # the window less the reply
        (1125, 4000, 362),  # the server counts twice as many tokens as we do
        (1125, 1500, 725),  # it counts fewer: no reason to send more
        # The server refused this prompt, whatever window it names, or it names none.
        (8192, None, 1999),
        (None, None, 1500),  # it names no window
        (7, None, 1500),  # A number that cannot be a window
        (300, None, 1),  # No tokens are left besides the reply
    ],
)
def test_prompt_limit_follows_a_refusal(
    window: int | None, counted: int | None, limit: int
) -> None:
    learned = Learned()
    learned.learn_window(
        window_tokens=window, counted_tokens=counted, sent_tokens=2000, reply_tokens=400
    )
    assert learned.prompt_limit(5000) == limit
    assert learned.prompt_limit(200) == min(200, limit)
    assert learned.window_tokens == (window if window and window > 7 else None)


def test_prompt_limit_is_unchanged_without_a_refusal() -> None:
    assert Learned().prompt_limit(7000) == 7000
