"""Forms: the inputs and results of jobs, as dataclasses that can be written as JSON.

The `given` of a job and the body of a proposal cross processes and are stored in tables.
`form_to_json` writes them, and `read_form` parses and checks them. The body contains the requests
to models, because the game must record what was really sent.
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
    """One message of a request, before it is adapted to a model."""

    role: Role
    content: str

    @property
    def message(self) -> Message:
        """Return the message in the form that the game makes of its record."""
        return Message(role=self.role, content=self.content, block="ordered", origin="ordered")


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRequest:
    """A request to a model, in the form in which it is recorded."""

    model: str
    """The model's name at its provider; if unknown, the name of its profile."""
    messages: tuple[SentMessage, ...]
    about: int = 0
    """How many messages of the history the request summarises."""
    schema: dict[str, Any] | None = None
    """The JSON schema to which the server held the reply; None for none."""


def sent_messages(messages: Iterable[Message | ChatMessage]) -> tuple[SentMessage, ...]:
    """Return the messages for recording. Characters that no database can store are replaced."""
    return tuple(SentMessage(role=one.role, content=make_storable(one.content)) for one in messages)


def form_to_json(value: Any) -> dict[str, Any]:
    """Return a form as JSON values. Equal forms give equal values."""
    made: dict[str, Any] = json.loads(text_of(value))
    return made


def text_of(value: Any) -> str:
    """Return a form as one line of JSON."""
    return json.dumps(asdict(value), ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def digest_of(value: Any) -> str:
    """Return a short hash of a form. Equal forms have the same hash."""
    return sha256(text_of(value).encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


def read_form(form: type[FormT], said: Mapping[str, Any], *, where: str) -> FormT:
    """Parse a form that `form_to_json` wrote.

    Raises:
        FormatError: A field is invalid. The message names `where` and the first such field.
    """
    try:
        made: FormT = _reader(cast(Any, form)).validate_json(json.dumps(dict(said)), strict=True)
    except ValidationError as error:
        raise to_format_error(error, kind="job", where=where) from error
    return made


@cache
def _reader(form: Any) -> TypeAdapter[Any]:
    return TypeAdapter(form)
