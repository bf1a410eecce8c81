"""Forms: what kinds of work are given and what comes of them, as dataclasses that are plain JSON.

A job's `given` and a proposal's body cross processes and stand in tables, so both are written by
`plain` and read by `read_form`, which judges every field. What a model was sent is part of a body:
the game keeps as a record what was really sent, not what it would have sent itself.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from typing import Any, Final, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from evennia_ai.engine.foreign.fields import to_format_error
from evennia_ai.engine.history.records import make_storable
from evennia_ai.engine.prompt.messages import Message, Role
from evennia_ai.services.llm.chat import ChatMessage

FormT = TypeVar("FormT")

_DIGITS: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class SentMessage:
    """One message of a request, before it is fitted to a model."""

    role: Role
    content: str

    @property
    def message(self) -> Message:
        """The same for who asks and records, shown where the game shows a record of it."""
        return Message(role=self.role, content=self.content, block="ordered", origin="ordered")


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRequest:
    """What a model was asked, as it is recorded."""

    model: str
    """Its name at its provider, or else that of its profile."""
    messages: tuple[SentMessage, ...]
    about: int = 0
    """How many messages of the history it is about."""
    schema: dict[str, Any] | None = None
    """The form of the answer that its server was held to."""


def sent_messages(messages: Iterable[Message | ChatMessage]) -> tuple[SentMessage, ...]:
    """The messages as they are recorded, with what no database stores replaced."""
    return tuple(SentMessage(role=one.role, content=make_storable(one.content)) for one in messages)


def plain(value: Any) -> dict[str, Any]:
    """A form as JSON values, the same whoever made it."""
    made: dict[str, Any] = json.loads(text_of(value))
    return made


def text_of(value: Any) -> str:
    """A form as the one line of JSON that it is."""
    return json.dumps(asdict(value), ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def digest_of(value: Any) -> str:
    """A short name for a form: two that say the same have one."""
    return sha256(text_of(value).encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


def read_form(form: type[FormT], said: Mapping[str, Any], *, where: str) -> FormT:
    """The form that `plain` wrote. FormatError names `where` and the first field that is wrong."""
    try:
        made: FormT = _reader(cast(Any, form)).validate_json(json.dumps(dict(said)), strict=True)
    except ValidationError as error:
        raise to_format_error(error, kind="job", where=where) from error
    return made


@cache
def _reader(form: Any) -> TypeAdapter[Any]:
    return TypeAdapter(form)
