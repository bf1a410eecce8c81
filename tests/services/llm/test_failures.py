"""Test that the causes of failures are found in what servers say."""

import json
from typing import Any

import pytest

from evennia_ai.engine.errors import Fault, ModelError, ModelRefused, ModelUnavailable
from evennia_ai.services.llm.failures import ENDINGS, failure
from evennia_ai.services.llm.profiles import Endpoint

THERE = Endpoint(name="stub", base_url="http://127.0.0.1:1/v1", model="tiny")


def failed(status: int | None, said: Any, **more: Any) -> ModelError:
    """Return the failure for a response with this body, or for an error with these words."""
    body = {"error": {"message": said}} if isinstance(said, str) else said
    return failure(THERE, status=status, words=json.dumps(said), body=body, **more)


def error(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, **more}}


FAULTS: list[tuple[int | None, Any, Fault, str]] = [
    # Temporary failures
    (503, error("Loading model", type="unavailable_error"), Fault.TEMPORARY, ""),
    (529, error("Overloaded", type="overloaded_error"), Fault.TEMPORARY, ""),
    (429, "Rate limit reached for model in tokens per minute", Fault.TEMPORARY, ""),
    (429, "You exceeded your current quota. Please retry in 34.07s.", Fault.TEMPORARY, ""),
    (500, "CUDA out of memory", Fault.TEMPORARY, ""),
    (None, error("The server had an error", type="server_error", code=None), Fault.TEMPORARY, ""),
    (None, error("Provider disconnected", code="server_error"), Fault.TEMPORARY, ""),
    (None, error("Rate limit", type="tokens", code="rate_limit_exceeded"), Fault.TEMPORARY, ""),
    (None, error("upstream died", code="502"), Fault.TEMPORARY, ""),
    (None, error("upstream died", code=502), Fault.TEMPORARY, ""),
    (None, {"object": "error", "message": "CUDA", "type": "InternalServerError"}, "temporary", ""),
    (400, {"__type": "ThrottlingException", "message": "Rate exceeded"}, "temporary", ""),
    (
        429,
        error("You exceeded your current quota", details=[{"@type": "google.rpc.RetryInfo"}]),
        Fault.TEMPORARY,
        "",
    ),
    (None, {"error": "Engine is overloaded, please try again later"}, "temporary", ""),
    (None, {"error": "upstream connect error or disconnect/reset"}, "temporary", ""),
    (None, error("Request timed out."), Fault.TEMPORARY, ""),
    (None, error("CUDA error: out of memory"), Fault.TEMPORARY, ""),
    (None, {"base_resp": {"status_code": 1002, "status_msg": "rate limit (RPM)"}}, "temporary", ""),
    # Failures of the account
    (400, "This organization has been disabled.", Fault.ACCOUNT, "api_key_env"),
    (429, error("余额不足或无可用资源包,请充值。", code="1113"), Fault.ACCOUNT, "credit"),
    (404, error("model: claude-9", type="not_found_error"), Fault.ACCOUNT, "check model"),
    (401, "Incorrect API key provided", Fault.ACCOUNT, "api_key_env"),
    (400, "API key not valid. Please pass a valid API key.", Fault.ACCOUNT, "api_key_env"),
    (403, "Forbidden", Fault.ACCOUNT, "api_key_env"),
    (402, "Insufficient credits", Fault.ACCOUNT, "credit"),
    (400, "Your credit balance is too low to access the Anthropic API.", Fault.ACCOUNT, "credit"),
    (429, error("quota", type="insufficient_quota"), Fault.ACCOUNT, "credit"),
    (404, "model 'qwen9' not found, try pulling it first", Fault.ACCOUNT, "check model"),
    (400, "qwen9 is not a valid model ID", Fault.ACCOUNT, "check model"),
    (404, {"detail": "Not Found"}, Fault.ACCOUNT, "base_url"),
    (307, "https://models.example/v1/chat/completions", Fault.ACCOUNT, "server redirects"),
    (None, {"error": "Unexpected endpoint or method. (POST /chat)"}, Fault.ACCOUNT, "base_url"),
    (None, error("no", code="insufficient_quota"), Fault.ACCOUNT, ""),
    # Failures of the prompt
    (500, "Jinja Exception: System message must be at the beginning.", "prompt", "strict_roles"),
    (400, "Conversation roles must alternate user/assistant/...", "prompt", "strict_roles"),
    (500, "Jinja Exception: something of its own", Fault.PROMPT, "strict_roles"),
    (400, "System role not supported", Fault.PROMPT, "system_role"),
    (400, "registry.ollama.ai/library/gemma3 does not support tools", "prompt", "tools"),
    (404, "No endpoints found that support tool use.", Fault.PROMPT, "tools"),
    (500, "tools param requires --jinja flag", Fault.PROMPT, "tools"),
    (400, "'response_format' of type json_schema is not available", "prompt", "schema"),
    (400, "Thinking may not be enabled when tool_choice forces tool use.", "prompt", "schema"),
    (400, "Streaming is not supported for this model", Fault.PROMPT, "stream"),
    (400, "Function call is missing a thought_signature in functionCall", "prompt", "past_calls"),
    (400, "Missing `reasoning_content` field in the assistant message", "prompt", "past_calls"),
    (400, "Expected `thinking` or `redacted_thinking`, but found `text`.", "prompt", "past_calls"),
    (400, "max_tokens is too large: 5000", Fault.PROMPT, "reply_tokens"),
    # Failures of the policy
    (400, error("no", code="content_filter"), Fault.POLICY, "model"),
    (403, "x requires moderation on y. Your input was flagged for z", Fault.POLICY, "model"),
    (400, "Content Exists Risk", Fault.POLICY, "model"),
    # Replies that cannot be used
    (400, error("Failed to call a function.", code="tool_use_failed"), Fault.MALFORMED, ""),
    (400, error("Failed to generate JSON.", code="json_validate_failed"), Fault.MALFORMED, ""),
    (None, error("something of its own"), Fault.MALFORMED, ""),
]


@pytest.mark.parametrize(("status", "said", "fault", "advice"), FAULTS, ids=lambda one: str(one))
def test_failure_has_the_fault_that_its_words_show(
    status: int | None, said: Any, fault: Fault | str, advice: str
) -> None:
    found = failed(status, said)
    assert found.fault == fault, str(found)
    assert advice in (found.advice if isinstance(found, ModelRefused) else "")


TOO_LONG = [
    (
        (
            "This model's maximum context length is 4096 tokens. However, your messages resulted in"
            " 5210 tokens."
        ),
        4096,
        5210,
    ),
    (
        (
            "This model's maximum context length is 4,096 tokens. However, you requested 5610"
            " tokens (5210 in the messages, 400 in the completion)."
        ),
        4096,
        5210,
    ),
    ("prompt is too long: 210000 tokens > 200000 maximum", 200000, 210000),
    ("prompt is too long: 210000 > 200000", 200000, 210000),
    ("request (1234 tokens) exceeds the available context size (1125 tokens)", 1125, 1234),
    (
        (
            "Trying to keep the first 5210 tokens when context the overflows. However, the model is"
            " loaded with context length of only 4096 tokens"
        ),
        4096,
        5210,
    ),
    (
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        1048576,
        1200000,
    ),
    (
        "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
        32768,
        40000,
    ),
    (
        (
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given:"
            " 5000 `inputs` tokens and 400 `max_new_tokens`"
        ),
        4096,
        5000,
    ),
    (
        "The input (5210 tokens) is longer than the model's context length (4096 tokens).",
        4096,
        5210,
    ),
    ("Range of input length should be [1, 30720]", 30720, None),
    (
        "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
        131072,
        140000,
    ),
    ("Your request exceeded model token limit: 8192", 8192, None),
    ("Requested tokens (5000) exceed context window of 4096", 4096, 5000),
    ("Request length 9000 is greater than max_seq_len 8192", 8192, 9000),
    (
        "input length and `max_tokens` exceed context limit: 199000 + 4000 > 200000, decrease it",
        200000,
        199000,
    ),
    ("max_tokens must be at least 1, got -500.", None, None),
    ("litellm.ContextWindowExceededError: too big", None, None),
    ("The number of tokens to keep is greater than the context length.", None, None),
    ("Prompt 超长", None, None),
    ("context shift is disabled", None, None),
    ("input length exceeds the context length", None, None),
    ("Please reduce the length of the messages or completion.", None, None),
]


@pytest.mark.parametrize(("words", "window", "counted"), TOO_LONG)
def test_refusal_of_a_long_prompt_has_its_numbers(
    words: str, window: int | None, counted: int | None
) -> None:
    for status in (400, 422, 500, None):
        found = failed(status, words)
        assert isinstance(found, ModelRefused), str(found)
        assert found.fault is Fault.TOO_LONG
        assert (found.window_tokens, found.counted_tokens) == (window, counted)
        assert "context_tokens" in found.advice


def test_numbers_in_a_body_take_precedence_over_those_in_a_sentence() -> None:
    body = error("the request exceeds the context size", n_prompt_tokens=5210, n_ctx=4096)
    found = failed(400, body)
    assert isinstance(found, ModelRefused)
    assert (found.window_tokens, found.counted_tokens) == (4096, 5210)


@pytest.mark.parametrize("status", [413, 400])
def test_error_code_alone_shows_that_a_prompt_is_too_long(status: int) -> None:
    code = "context_length_exceeded" if status == 400 else "unknown"
    assert failed(status, error("no", code=code)).fault is Fault.TOO_LONG


REFUSED: list[tuple[int, Any, dict[str, str]]] = [
    (
        400,
        (
            'Invalid JSON payload received. Unknown name "prompt_cache_key": Cannot find field.\n'
            'Invalid JSON payload received. Unknown name "user": Cannot find field.'
        ),
        {"prompt_cache_key": "", "user": ""},
    ),
    (400, "property 'prompt_cache_key' is unsupported", {"prompt_cache_key": ""}),
    (
        422,
        {"detail": [{"type": "extra_forbidden", "loc": ["body", "user"], "msg": "Extra inputs"}]},
        {"user": ""},
    ),
    (
        422,
        {
            "message": {
                "detail": [
                    {"type": "extra_forbidden", "loc": ["body", one], "msg": "Extra inputs"}
                    for one in ("user", "stream_options")
                ]
            }
        },
        {"user": "", "stream_options": ""},
    ),
    (
        400,
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use"
            " 'max_completion_tokens' instead."
        ),
        {"max_tokens": "max_completion_tokens"},
    ),
    (
        400,
        error("no", param="max_tokens", code="unsupported_parameter"),
        {"max_tokens": "max_completion_tokens"},
    ),
    (
        400,
        (
            "Unsupported value: 'temperature' does not support 0.7 with this model. Only the"
            " default (1) value is supported."
        ),
        {"temperature": ""},
    ),
    (400, "temperature does not support 0.7 with this model", {"temperature": ""}),
    (400, "Unrecognized request argument supplied: user", {"user": ""}),
    (400, "prompt_cache_key: Extra inputs are not permitted", {"prompt_cache_key": ""}),
    (400, 'json: unknown field "stream_options"', {"stream_options": ""}),
    (
        422,
        "unknown field `stream_options`, expected one of `model`, `user`, `temperature`",
        {"stream_options": ""},
    ),
    (400, "Additional properties are not allowed ('top_k' was unexpected)", {"top_k": ""}),
    (
        422,
        {
            "detail": [
                {
                    "type": "extra_forbidden",
                    "loc": ["body", "messages", 2, "assistant", "reasoning_content"],
                    "msg": "Extra inputs are not permitted",
                }
            ]
        },
        {"reasoning_content": ""},
    ),
    (
        400,
        "Unknown name \"additionalProperties\" at 'tools[0].function': Cannot find field.",
        {"additionalProperties": ""},
    ),
    (400, "Argument not supported on this model: stop", {"stop": ""}),
    (422, "Extra inputs are not permitted: user", {"user": ""}),
    # A needed field is not removed, whatever a server says.
    (400, "property 'messages' is unsupported", {}),
    (400, "Unknown name \"tools\": Cannot find field. Unknown name 'model'", {}),
    # The field is mentioned but not refused.
    (400, "temperature: Input should be less than or equal to 1", {}),
    (400, "Conversation roles must alternate user/assistant/user; this is not supported", {}),
    (400, "Unexpected role 'user' after role 'tool'", {}),
    (500, "property 'user' is unsupported", {}),
]


@pytest.mark.parametrize(("status", "said", "refused"), REFUSED)
def test_refused_field_is_found_by_name(status: int, said: Any, refused: dict[str, str]) -> None:
    found = failed(status, said, extra=("top_k",))
    assert getattr(found, "refused", {}) == refused, str(found)
    if refused:
        assert found.fault is Fault.PROMPT
        setting = "reply_limit" if any(refused.values()) else "extra"
        assert isinstance(found, ModelRefused)
        assert setting in found.advice


def test_retry_time_of_a_server_is_kept() -> None:
    found = failed(429, "slow down", retry_in_seconds=3.0)
    assert isinstance(found, ModelUnavailable)
    assert (found.status, found.retry_in_seconds) == (429, 3.0)


def test_huge_error_body_is_read_within_limits() -> None:
    body: Any = {"error": [{"message": "x" * 1000, "code": number} for number in range(2_000)]}
    assert failed(400, body).fault is Fault.PROMPT
    deep: Any = "user"
    for _ in range(900):
        deep = [deep]
    assert failed(400, {"error": deep}).fault is Fault.PROMPT


def test_finish_reasons_are_of_three_kinds() -> None:
    assert ENDINGS["stop"] == "stop"
    assert ENDINGS["max_tokens"] == "length"
    assert ENDINGS["refusal"] is Fault.POLICY
    assert ENDINGS["insufficient_system_resource"] is Fault.TEMPORARY
