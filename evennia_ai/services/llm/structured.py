"""Answers in a required form: request one, read it, and ask once more if it does not fit.

Everything that decides what is sent is a pure function, so the caller can commit the messages
before each call: `request_for` before the first, `repair_request` before the second. Schemas are
written in the form that the least capable server accepts: no references, no additional members.
Nothing in an answer is guessed, repaired or evaluated. Text that begins like a JSON object must be
a valid one within the limits, or the whole answer is refused; otherwise the inner parts of a broken
object could be taken for the answer. The cost of a hostile text is linear in its length.
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
"""The most characters with hidden reasoning, which is looked for only within this limit."""

MAX_NESTING: Final = 32
MAX_NUMBER: Final = 10**15
MAX_OBJECTS: Final = 16

# The start of an object: a brace before a first key or a closing brace.
_OBJECT: Final = re.compile(r"\{(?=\s*[\"}])")
_FENCE: Final = re.compile(r"^[ \t]*```[ \t]*(?:json)?[ \t]*$\n?", re.MULTILINE | re.IGNORECASE)
_BRACE_FIRST: Final = re.compile(r"\s*(?:```[ \t]*\w{0,20}\s*)?(?:\[\s*)?\{")
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonObjects:
    """The JSON objects in a text, in order, and the text `around` them.

    `problem` says why something that begins like an object is none; "" if all are valid.
    """

    objects: tuple[dict[str, Any], ...] = ()
    around: str = ""
    problem: str = ""


def json_objects(text: str) -> JsonObjects:
    """Return the JSON objects in `text`, without its hidden reasoning."""
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
    """Return the limit that a value exceeds, as a problem, or ""."""
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
        return f"it is no whole JSON object ({error.msg.removesuffix(' at')} at {where})"
    if isinstance(error, RecursionError):
        return f"it is nested more than {MAX_NESTING} deep"
    return f"it is no JSON object ({error})"


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of an object, with texts that can be sent and stored."""
    return {_sendable(name): _sendable(value) for name, value in pairs}


def _sendable(value: Any) -> Any:
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("?", value)
    if isinstance(value, list):
        return [_sendable(one) if isinstance(one, str | list) else one for one in value]
    return value


def _no_number(written_as: str) -> NoReturn:
    raise ValueError(f"{written_as} is no number")


# `strict=False` accepts unescaped line breaks in texts, which small models write.
_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_members, parse_constant=_no_number, strict=False
)


MAX_SCHEMA_NESTING: Final = 24

# Keywords that models do not need, or that strict servers refuse.
_LEFT_OUT: Final = frozenset({"$defs", "$schema", "definitions", "default", "title"})
_PREFIXES: Final = ("#/$defs/", "#/definitions/")
# Keywords whose value is one schema, several by name, or a list of them.
_ONE: Final = frozenset({"items", "additionalProperties", "not"})
_LISTED: Final = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})


def strict_schema(schema: Mapping[str, Any], *, origin: str) -> dict[str, Any]:
    """Return `schema` with references resolved, all members required, and no others allowed.

    An optional member becomes required; its default is not sent.

    Raises:
        FormatError: the schema refers to itself or to nothing; the message names `origin`.
    """
    named = {**schema.get("definitions", {}), **schema.get("$defs", {})}
    return _Strict(named, origin).of(schema, 0)


class _Strict:
    """Rewrites the schemas of one document. `named` are those that it can refer to."""

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
            return self.of({**self._referred(schema["$ref"]), **beside}, depth + 1)
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

    def _referred(self, reference: str) -> Mapping[str, Any]:
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
"""How many characters of a wrong answer are shown to the model again."""

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
    """An answer, or the `problem` of a text that is none."""

    answer: AnswerT | None = None
    problem: str = ""


def request_for(
    messages: Sequence[ChatMessage], form: type[BaseModel], *, native: bool
) -> tuple[tuple[ChatMessage, ...], AnswerSchema | None]:
    """Return messages and schema that request an answer of a form.

    A server that supports schemas (`native`) gets the schema separately, any other server in a last
    message.
    """
    schema = schema_of(form)
    if native:
        return tuple(messages), schema
    told = INSTRUCTION.format(schema=_canonical(schema.schema))
    return (*messages, ChatMessage(role="system", content=told)), None


def read_answer(text: str, form: type[AnswerT]) -> Read[AnswerT]:
    """Return the first object in a reply's text that has the form, or what is wrong."""
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
    """Return the messages of the second try: the first ones, the wrong answer and its problem."""
    shown = without_reasoning(reply).strip()[:SHOWN_CHARACTERS]
    said = (ChatMessage(role="assistant", content=shown),) if shown else ()
    return (*messages, *said, ChatMessage(role="system", content=REPAIR.format(problem=problem)))


def ask_for_answer(
    ask: Ask, messages: Sequence[ChatMessage], form: type[AnswerT]
) -> Deferred[AnswerT]:
    """Return the answer to messages from `request_for`, after at most two calls.

    Fails with `ModelRubbish` if the second answer is wrong too, and with any failure of `ask`.
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
    """Return the schema of a form in the form that servers accept."""
    return AnswerSchema(
        name=form.__name__,
        schema=strict_schema(form.model_json_schema(), origin=form.__name__),
    )


def _canonical(schema: Mapping[str, Any]) -> str:
    return json.dumps(schema, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _why_unfit(error: ValidationError) -> str:
    """Return what is wrong with an answer, for the model that wrote it."""
    found = list_problems(error)
    told = [f"{where or 'the object'}: {words[:200]}" for where, words in found[:TOLD_PROBLEMS]]
    more = f"; and {len(found) - TOLD_PROBLEMS} more" if len(found) > TOLD_PROBLEMS else ""
    return "; ".join(told) + more
