"""Redacting: what watchers are told of a call whose words nobody is to be told.

That it was made, how long its texts were, what it cost and how it ended; no word of a request, of a
reply or of an error, which may quote either. What a mediator decided is told in our words for it,
and of its texts how long each is.
"""

import json
from dataclasses import replace
from typing import Any, Final

from evennia_ai.errors import ModelError
from evennia_ai.knowledge.restricted.mediation import choices_in_answer
from evennia_ai.llm.chat import ChatMessage, ChatReply, ChatRequest
from evennia_ai.llm.replies.structured import json_objects

REDACTED: Final = "[redacted]"


class ProtectedCallError(ModelError):
    """A protected call gave no usable reply; only the kind of the failure is told."""

    def __init__(self, endpoint: str, kind: str) -> None:
        super().__init__(endpoint, f"failed with {kind}; more is not told of a protected call")


def redacted_request(request: ChatRequest) -> ChatRequest:
    """The request without a word of its messages."""
    messages = tuple(
        ChatMessage(role=message.role, content=_told(message.content))
        for message in request.messages
    )
    return replace(request, messages=messages, passages=(), speaker="", question="")


def redacted_reply(reply: ChatReply) -> ChatReply:
    """The reply without a word of it; of a mediator's answer what it decides, in our words."""
    objects = json_objects(reply.text).objects
    text = _decision(objects[0]) if len(objects) == 1 else ""
    return replace(reply, text=text or _told(reply.text), tool_calls=())


def _decision(answer: dict[str, Any]) -> str:
    """A mediator's answer as JSON without its texts, "" where it is no such answer."""
    told = choices_in_answer(answer, hidden=_told)
    return json.dumps(told, separators=(",", ":")) if told else ""


def redacted_error(error: BaseException, *, endpoint: str) -> ProtectedCallError:
    """An error that tells of which kind the real one is."""
    return ProtectedCallError(endpoint, type(error).__name__)


def _told(text: str) -> str:
    return f"{REDACTED} {len(text)} characters"
