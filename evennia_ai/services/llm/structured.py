"""Get an answer in a required form: request it, read it, and ask once more if it does not fit.

Pure functions decide what is sent, so the caller can commit the messages before each call:
`request_for` before the first one, `repair_request` before the second one. Schemas are written so
that the least capable server accepts them: no references, no additional members.

Nothing in an answer is guessed, repaired or evaluated. Text that begins like a JSON object must be
a valid one within the limits; otherwise the whole answer is refused. If a broken object were
accepted, its inner parts could be taken for the answer. The cost of a hostile text is linear in its
length.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError
from twisted.internet.defer import Deferred, maybeDeferred

from evennia_ai.engine.errors import FormatError, ModelRubbish
from evennia_ai.engine.foreign.fields import list_problems
from evennia_ai.services.llm.chat import AnswerSchema, ChatMessage, ChatReply
from evennia_ai.services.llm.reasoning import without_reasoning

MAX_JSON_CHARACTERS: Final = 100_000
MAX_WRITTEN_CHARACTERS: Final = 4 * MAX_JSON_CHARACTERS
"""The most characters of an answer, hidden reasoning included, that are read."""

MAX_NESTING: Final = 32
MAX_NUMBER: Final = 10**15
MAX_OBJECTS: Final = 16

# The start of an object: an opening brace before a key or before the closing brace.
_OBJECT: Final = re.compile(r"\{(?=\s*[\"}])")
_FENCE: Final = re.compile(r"^[ \t]*```[ \t]*(?:json)?[ \t]*$\n?", re.MULTILINE | re.IGNORECASE)
_BRACE_FIRST: Final = re.compile(r"\s*(?:```[ \t]*\w{0,20}\s*)?(?:\[\s*)?\{")
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonObjects:
    """The JSON objects in a text, in order, and the text `around` them.

    If something begins like an object but is not valid, `problem` says why. Otherwise it is "".
    """

    objects: tuple[dict[str, Any], ...] = ()
    around: str = ""
    problem: str = ""


def json_objects(text: str) -> JsonObjects:
    """Return the JSON objects in `text`, after hidden reasoning is removed."""
    if len(text) > MAX_WRITTEN_CHARACTERS:
        return JsonObjects(problem=f"it has more than {MAX_WRITTEN_CHARACTERS} characters")
    text = without_reasoning(text)
    if len(text) > MAX_JSON_CHARACTERS:
        return JsonObjects(problem=f"it has more than {MAX_JSON_CHARACTERS} characters")
    objects: list[dict[str, Any]] = []
    around: list[str] = []
    at = 0
    while found := _OBJECT.search(text, at):
        around.append(text[at : found.start()])
        try:
            value, at = _DECODER.raw_decode(text, found.start())
        except (ValueError, RecursionError) as error:
            return JsonObjects(around="".join(around), problem=_why_no_object(error))
        if problem := _over_a_limit(value) or _too_many(objects):
            return JsonObjects(around="".join(around), problem=problem)
        objects.append(value)
    around.append(text[at:])
    if not objects and _BRACE_FIRST.match(text):
        return JsonObjects(problem="it begins with a brace but is not a JSON object")
    outside = _FENCE.sub("", "".join(around)) if objects else "".join(around)
    return JsonObjects(objects=tuple(objects), around=outside.strip())


def _over_a_limit(value: object) -> str:
    """Return the problem if a value is nested too deep or has a too large number, else ""."""
    waiting = [(value, 1)]
    while waiting:
        one, depth = waiting.pop()
        if depth > MAX_NESTING:
            return f"it is nested more than {MAX_NESTING} deep"
        if isinstance(one, dict | list):
            inner = one.values() if isinstance(one, dict) else one
            waiting.extend((member, depth + 1) for member in inner)
        elif isinstance(one, int | float) and abs(one) > MAX_NUMBER:
            return f"it has a number over {MAX_NUMBER}"
    return ""


def _too_many(objects: list[dict[str, Any]]) -> str:
    return f"it has more than {MAX_OBJECTS} objects" if len(objects) >= MAX_OBJECTS else ""


def _why_no_object(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        where = f"line {error.lineno}, column {error.colno}"
        return f"it is not a complete JSON object ({error.msg.removesuffix(' at')} at {where})"
    if isinstance(error, RecursionError):
        return f"it is nested more than {MAX_NESTING} deep"
    return f"it is not a JSON object ({error})"


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object whose texts can be sent and stored: lone surrogates become ?."""
    return {_sendable(name): _sendable(value) for name, value in pairs}


def _sendable(value: Any) -> Any:
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("?", value)
    if isinstance(value, list):
        return [_sendable(one) if isinstance(one, str | list) else one for one in value]
    return value


def _no_number(written_as: str) -> NoReturn:
    raise ValueError(f"{written_as} is not a number")


# `strict=False` accepts unescaped line breaks in texts, which small models write.
_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_members, parse_constant=_no_number, strict=False
)


MAX_SCHEMA_NESTING: Final = 24

# Keywords of JSON Schema that models do not need, or that strict servers refuse.
_LEFT_OUT: Final = frozenset({"$defs", "$schema", "definitions", "default", "title"})
_PREFIXES: Final = ("#/$defs/", "#/definitions/")
# Keywords whose value is one schema, several schemas by name, or a list of schemas.
_ONE: Final = frozenset({"items", "additionalProperties", "not"})
_LISTED: Final = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})


def strict_schema(schema: Mapping[str, Any], *, origin: str) -> dict[str, Any]:
    """Return `schema` with all references resolved, all members required, and no others allowed.

    Optional members become required, and their defaults are not sent.

    Raises:
        FormatError: the schema refers to itself or to nothing; the message names `origin`.
    """
    named = {**schema.get("definitions", {}), **schema.get("$defs", {})}
    return _Strict(named, origin).of(schema, 0)


class _Strict:
    """A converter of schemas for strict servers.

    `named` are the schemas that others can refer to.
    """

    def __init__(self, named: Mapping[str, Any], origin: str) -> None:
        self._named = named
        self._origin = origin

    def of(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        if depth > MAX_SCHEMA_NESTING:
            raise FormatError(
                "schema",
                f"{self._origin}: its schema refers to itself or is nested more than"
                f" {MAX_SCHEMA_NESTING} deep; make the form flatter",
            )
        if "$ref" in schema:
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            return self.of({**self._resolve_reference(schema["$ref"]), **beside}, depth + 1)
        made = {
            key: self._value(key, value, depth + 1)
            for key, value in schema.items()
            if key not in _LEFT_OUT
        }
        return _closed(made) if "properties" in made or _is_object(made) else made

    def _value(self, key: str, value: Any, depth: int) -> Any:
        if key == "properties":
            return {name: self.of(one, depth) for name, one in value.items()}
        if key in _ONE and isinstance(value, Mapping):
            return self.of(value, depth)
        if key in _LISTED:
            return [self.of(one, depth) for one in value]
        return value

    def _resolve_reference(self, reference: str) -> Mapping[str, Any]:
        for prefix in _PREFIXES:
            name = reference.removeprefix(prefix)
            if name != reference and isinstance(self._named.get(name), Mapping):
                found: Mapping[str, Any] = self._named[name]
                return found
        raise FormatError("schema", f"{self._origin}: its schema refers to nothing: {reference}")


def _is_object(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "object" and "additionalProperties" not in schema


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    members = schema.get("properties", {})
    return {
        **schema,
        "type": "object",
        "properties": members,
        "required": list(members),
        "additionalProperties": False,
    }


AnswerT = TypeVar("AnswerT", bound=BaseModel)
Ask = Callable[[tuple[ChatMessage, ...]], Deferred[ChatReply]]
"""A function that commits the messages and then calls the model."""

SHOWN_CHARACTERS: Final = 4_000
"""How many characters of a wrong answer the model is shown again."""

TOLD_PROBLEMS: Final = 5

INSTRUCTION: Final = (
    "Answer with one JSON object and nothing else: no text around it, no code fence."
    " It must fit this JSON schema:\n{schema}"
)
REPAIR: Final = (
    "Your last answer cannot be used: {problem}. Write the whole answer again, as one JSON object"
    " that fits the schema, and nothing else."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Read(Generic[AnswerT]):
    """The answer in a text, or the `problem` if the text has none."""

    answer: AnswerT | None = None
    problem: str = ""


def request_for(
    messages: Sequence[ChatMessage], form: type[BaseModel], *, native: bool
) -> tuple[tuple[ChatMessage, ...], AnswerSchema | None]:
    """Return the messages and the schema that request an answer of this form.

    A server that supports schemas (`native`) gets the schema as a field of the request. Any other
    server gets it in an additional last message.
    """
    schema = schema_of(form)
    if native:
        return tuple(messages), schema
    told = INSTRUCTION.format(schema=_canonical(schema.schema))
    return (*messages, ChatMessage(role="system", content=told)), None


def read_answer(text: str, form: type[AnswerT]) -> Read[AnswerT]:
    """Return the first object in a reply that has the required form, or the problem."""
    found = json_objects(text)
    if found.problem:
        return Read(problem=found.problem)
    problem = "it holds no JSON object"
    for place, value in enumerate(found.objects):
        try:
            return Read(answer=form.model_validate(value))
        except ValidationError as error:
            problem = problem if place else _why_unfit(error)
    return Read(problem=problem)


def repair_request(
    messages: Sequence[ChatMessage], reply: str, problem: str
) -> tuple[ChatMessage, ...]:
    """Return the messages that ask again: the first ones, the wrong answer and its problem."""
    shown = without_reasoning(reply).strip()[:SHOWN_CHARACTERS]
    said = (ChatMessage(role="assistant", content=shown),) if shown else ()
    return (*messages, *said, ChatMessage(role="system", content=REPAIR.format(problem=problem)))


def ask_for_answer(
    ask: Ask, messages: Sequence[ChatMessage], form: type[AnswerT]
) -> Deferred[AnswerT]:
    """Return a Deferred of the answer, after at most two calls of `ask`.

    The messages come from `request_for`. The Deferred fails with `ModelRubbish` if the second
    answer is wrong too, and with any failure of `ask`.
    """

    def first(reply: ChatReply) -> AnswerT | Deferred[AnswerT]:
        got = read_answer(reply.text, form)
        if got.answer is not None:
            return got.answer
        again = ask(repair_request(messages, reply.text, got.problem))
        return again.addCallback(second)

    def second(reply: ChatReply) -> AnswerT:
        got = read_answer(reply.text, form)
        if got.answer is None:
            raise ModelRubbish(reply.model, f"asked twice for {form.__name__}: {got.problem}")
        return got.answer

    return maybeDeferred(ask, tuple(messages)).addCallback(first)


def schema_of(form: type[BaseModel]) -> AnswerSchema:
    """Return the JSON schema of a pydantic model, written so that all servers accept it."""
    return AnswerSchema(
        name=form.__name__,
        schema=strict_schema(form.model_json_schema(), origin=form.__name__),
    )


def _canonical(schema: Mapping[str, Any]) -> str:
    return json.dumps(schema, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _why_unfit(error: ValidationError) -> str:
    """Return what is wrong with an answer, in words for the model that wrote it."""
    found = list_problems(error)
    told = [f"{where or 'the object'}: {words[:200]}" for where, words in found[:TOLD_PROBLEMS]]
    more = f"; and {len(found) - TOLD_PROBLEMS} more" if len(found) > TOLD_PROBLEMS else ""
    return "; ".join(told) + more
