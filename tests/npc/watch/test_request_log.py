"""The request log: both lines of a call, what they contain, and what they must never contain."""

import json
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from evennia_ai.engine.errors import ModelRefused
from evennia_ai.engine.prompt.messages import Message, ToolCall
from evennia_ai.npc.model_calls.calls import CountedCall
from evennia_ai.npc.model_calls.limits import CallKey
from evennia_ai.npc.runtime import runtime
from evennia_ai.npc.watch.request_log import RequestLog, kinds_of
from evennia_ai.services.llm.chat import ChatMessage, ChatReply, ChatRequest, Usage
from evennia_ai.services.llm.roles import OPEN, STRICT, adapt_messages, chat_messages
from evennia_ai.services.net.secrets import SecretText

LONG = "The ferry leaves at dawn, and not a minute later, whatever the harbour master says."
PROMPT = (
    Message(role="system", content="You are Oren.", block="ordered"),
    Message(role="user", content="hello", name="Anna"),
    Message(role="assistant", content="well met"),
    Message(role="user", content="Place: the landing.\nIt rains.", block="dynamic"),
    Message(role="user", content=LONG, name="Anna", block="event"),
)
REPLY = ChatReply(
    text="Then I wait.", model="small-1", usage=Usage(input_tokens=40, output_tokens=4)
)


def request_of(prompt: Any = PROMPT, profile: Any = OPEN) -> ChatRequest:
    return ChatRequest(
        messages=adapt_messages(chat_messages(prompt), profile=profile),
        model="small",
        max_tokens=50,
        timeout_seconds=5.0,
    )


def watched_by(stage: Any, log: RequestLog, *script: Any) -> None:
    stage.talks_with(*script)
    runtime().watch.add(log)


def called(request: ChatRequest, prompt: Any = PROMPT, **values: Any) -> None:
    usual: dict[str, Any] = {"npc_ref": "5", "role": "speaker", "turn": 3}
    call = CountedCall(runtime().calls, runtime().access, CallKey(**{**usual, **values}))
    call.ask(request, prompt=prompt).addErrback(lambda _: None)


def lines_of(logged: list[str], tag: str) -> list[dict[str, Any]]:
    return [json.loads(line.removeprefix(tag)) for line in logged if line.startswith(f"{tag} ")]


@pytest.mark.req("S0-50")
def test_both_lines_of_a_call_are_logged_with_the_same_id(stage: Any, logged: list[str]) -> None:
    watched_by(stage, RequestLog(), REPLY)
    called(request_of())
    (request,), (response,) = lines_of(logged, "LLM_REQUEST"), lines_of(logged, "LLM_RESPONSE")
    assert request["id"] == response["id"]
    assert (request["name"], request["npc"], request["turn"]) == ("speaker", "5", 3)
    assert (request["model"], request["max_tokens"]) == ("small", 50)


@pytest.mark.req("S0-50")
def test_setting_switches_the_request_log_on_and_off(
    stage: Any, logged: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from evennia_ai.services.settings.conf import conf

    tags = []
    for flag in ("0", "1"):
        logged.clear()
        monkeypatch.setenv("AI_LOG_LLM_REQUESTS", flag)
        conf.cache_clear()
        stage.talks_with(REPLY)
        called(request_of())
        tags.append([line.split()[0] for line in logged])
    conf.cache_clear()
    assert tags == [[], ["LLM_REQUEST", "LLM_RESPONSE"]]


@pytest.mark.req("S0-51", "S1-10")
def test_dynamic_context_is_logged_between_history_and_current_message(
    stage: Any, logged: list[str]
) -> None:
    watched_by(stage, RequestLog(), REPLY)
    called(request_of())
    (request,) = lines_of(logged, "LLM_REQUEST")
    told = [(one["index"], one["role"], one["kind"]) for one in request["messages"]]
    assert told == [
        (0, "system", "ordered"),
        (1, "user", "history"),
        (2, "assistant", "history"),
        (3, "user", "dynamic_context"),
        (4, "user", "event"),
    ]


@pytest.mark.req("S0-51", "S1-10")
def test_turn_in_the_game_logs_its_dynamic_context_in_place(stage: Any, logged: list[str]) -> None:
    watched_by(stage, RequestLog(), "Aye.", "Aye.")
    for said in ("Oren, are you there?", "Oren, when does the ferry sail?"):
        stage.says(stage.anna, said)
        stage.passes(5)
    _, request = lines_of(logged, "LLM_REQUEST")
    told = [(one["role"], one["kind"]) for one in request["messages"]]
    assert told[-4:] == [
        ("user", "history"),
        ("assistant", "history"),
        ("user", "dynamic_context"),
        ("user", "event"),
    ]


def test_message_joined_for_a_strict_model_has_all_its_kinds() -> None:
    sent = request_of(profile=STRICT).messages
    assert kinds_of(sent, PROMPT) == ["ordered", "history", "history", "dynamic_context+event"]


def test_message_inserted_by_the_adapter_is_marked_as_added() -> None:
    prompt = (PROMPT[0], replace(PROMPT[2]), PROMPT[4])
    sent = request_of(prompt, profile=STRICT).messages
    assert [message.role for message in sent] == ["system", "user", "assistant", "user"]
    assert kinds_of(sent, prompt) == ["ordered", "added", "history", "event"]


def test_kind_is_message_without_a_prompt() -> None:
    assert kinds_of([ChatMessage(role="user", content="hello")], ()) == ["message"]


def test_request_is_logged_with_its_own_name(stage: Any, logged: list[str]) -> None:
    watched_by(stage, RequestLog(), REPLY)
    called(request_of(), role="summariser", name="restricted_kb_safe_summary")
    for tag in ("LLM_REQUEST", "LLM_RESPONSE"):
        (line,) = lines_of(logged, tag)
        assert line["name"] == "restricted_kb_safe_summary"


def test_text_is_logged_as_length_hash_and_first_words(stage: Any, logged: list[str]) -> None:
    watched_by(stage, RequestLog(), REPLY)
    called(request_of())
    (request,) = lines_of(logged, "LLM_REQUEST")
    event = request["messages"][-1]
    sent = f"Anna: {LONG}"
    assert event["characters"] == len(sent)
    assert event["sha256"] == sha256(sent.encode()).hexdigest()
    assert event["text"] == sent[:60] + "..."
    assert "harbour master" not in "".join(logged)


def test_text_is_logged_in_full_when_the_setting_asks_for_it(stage: Any, logged: list[str]) -> None:
    watched_by(stage, RequestLog(in_full=True), REPLY)
    called(request_of())
    (request,) = lines_of(logged, "LLM_REQUEST")
    assert request["messages"][-1]["text"] == f"Anna: {LONG}"


@pytest.mark.req("S0-53")
def test_reply_of_the_model_is_logged(stage: Any, logged: list[str]) -> None:
    watched_by(stage, RequestLog(), REPLY)
    called(request_of())
    (response,) = lines_of(logged, "LLM_RESPONSE")
    assert (response["text"], response["model"]) == ("Then I wait.", "small-1")
    assert (response["outcome"], response["finish_reason"]) == ("answered", "stop")
    assert (response["input_tokens"], response["output_tokens"]) == (40, 4)


def test_tool_calls_are_logged_by_name_with_shortened_arguments(
    stage: Any, logged: list[str]
) -> None:
    call = ToolCall(id="1", name="remember", arguments='{"text": "' + "x" * 100 + '"}')
    watched_by(stage, RequestLog(), replace(REPLY, text="", tool_calls=(call,)))
    called(request_of())
    (response,) = lines_of(logged, "LLM_RESPONSE")
    (told,) = response["tool_calls"]
    assert told["name"] == "remember"
    assert told["characters"] == 112
    assert len(told["text"]) == 63


def test_failed_call_is_logged(stage: Any, logged: list[str]) -> None:
    watched_by(stage, RequestLog(), ModelRefused("small", 400, "too long"))
    called(request_of())
    (response,) = lines_of(logged, "LLM_RESPONSE")
    assert response["outcome"] == "failed:refused"
    assert "too long" in response["error"]


@pytest.mark.req("S0-53")
def test_key_of_a_model_is_never_logged(stage: Any, logged: list[str]) -> None:
    log = RequestLog(in_full=True, secrets=[SecretText("sk-very-secret"), SecretText()])
    said = "my key is sk-very-secret"
    watched_by(
        stage, log, replace(REPLY, text=said), ModelRefused("small", 401, "sk-very-secret is wrong")
    )
    prompt = (Message(role="user", content=said, name="sk-very-secret", block="event"),)
    called(request_of(prompt), prompt)
    called(request_of(prompt), prompt)
    assert len(logged) == 4
    assert "sk-very-secret" not in "".join(logged)
    assert "my key is ***" in logged[0]


def test_keys_in_the_settings_are_masked(
    stage: Any, logged: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from evennia_ai.services.settings.conf import conf

    monkeypatch.setenv("AI_LOG_LLM_REQUESTS", "full")
    monkeypatch.setenv("EVENNIA_AI_API_KEY", "sk-very-secret")
    conf.cache_clear()
    stage.talks_with(replace(REPLY, text="sk-very-secret"))
    called(request_of())
    conf.cache_clear()
    assert len(logged) == 2
    assert "sk-very-secret" not in "".join(logged)


@pytest.mark.parametrize(
    "text", ["a\nb", "\x1b[31mred", "\u202eevil", "\u2028", "\x00", "\x7f", "\ud800"]
)
def test_log_line_is_one_line_of_ascii(stage: Any, logged: list[str], text: str) -> None:
    watched_by(stage, RequestLog(in_full=True), replace(REPLY, text=text))
    prompt = (Message(role="user", content=text, block="event"),)
    called(request_of(prompt), prompt)
    assert len(logged) == 2
    assert all(" " <= letter <= "~" for line in logged for letter in line)
