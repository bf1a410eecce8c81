"""Build requests and messages for tests."""

from typing import Any

from twisted.internet.task import Clock

from evennia_ai.engine.prompt.messages import Role, ToolCall, ToolSpec
from evennia_ai.services.llm.chat import ChatMessage, ChatRequest, Passage
from evennia_ai.services.llm.resilience import CircuitBreaker


def a_message(role: Role, content: str, **more: Any) -> ChatMessage:
    return ChatMessage(role=role, content=content, **more)


def a_call(call_id: str = "c1") -> ToolCall:
    return ToolCall(id=call_id, name="look", arguments="{}")


def a_tool(name: str = "look", **parameters: Any) -> ToolSpec:
    members = parameters or {"at": {"type": "string"}}
    schema = {"type": "object", "properties": members}
    return ToolSpec(name=name, description=f"To {name}.", parameters=schema)


def a_request(question: str = "Hello?", **more: Any) -> ChatRequest:
    wanted: dict[str, Any] = {
        "messages": (a_message("system", "You are Oren."), a_message("user", question)),
        "model": "tiny",
        "max_tokens": 64,
        "timeout_seconds": 60.0,
        "question": question,
    }
    return ChatRequest(**(wanted | more))


def a_passage(text: str, **more: Any) -> Passage:
    return Passage(label="harbour#1", text=text, **more)


def a_breaker(clock: Clock, **values: Any) -> CircuitBreaker:
    wanted = {"failures": 3, "window_seconds": 60, "rest_seconds": 30}
    return CircuitBreaker(seconds=clock.seconds, **(wanted | values))
