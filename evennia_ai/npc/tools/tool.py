"""A tool is one act that a model may ask of its NPC. A game subclasses `Tool` for its own.

A tool has no state: one instance serves all NPCs, and `Use` has everything it needs of the moment.
The tool checks whether the game lets the NPC do the act, and refuses it otherwise.

Arguments that a model wrote are read within limits and checked by their types. Anything wrong
becomes one short text for the model. Nothing is guessed: "5" is not a number. The JSON schema of
the arguments is part of every prompt, so it is small and has the same bytes each time.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Annotated, Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError
from pydantic_core import ErrorDetails
from twisted.internet.defer import Deferred

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.history.role_markup import neutralize_markup
from evennia_ai.npc.inputs.mind import Mind
from evennia_ai.npc.knowledge.backends import Backends
from evennia_ai.npc.model_calls.calls import ModelCalls
from evennia_ai.npc.senses.events import Event
from evennia_ai.npc.senses.presence import NPC
from evennia_ai.npc.senses.text import LINE_BREAK, one_line, strip_markup
from evennia_ai.npc.tools.targets import Refused as Refused  # noqa: PLC0414 - for games
from evennia_ai.npc.views.view import NPCView
from evennia_ai.services.settings.game import Conf
from evennia_ai.services.settings.npc import NPCSettings
from evennia_ai.store.history.record_rows import ConversationRef

Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80)]
"""The name of a person, a thing or an exit."""

Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=600)]
"""A text of the length that an NPC may say."""


class ToolArguments(BaseModel):
    """Arguments that a model gives a tool. Other fields and other types are refused."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One use of a tool: the NPC, the event it answers, and the turn."""

    npc: NPC
    mind: Mind

    view: NPCView
    """The components, card, books and notes of the NPC when the turn began."""

    settings: NPCSettings
    """The settings of this NPC when the turn began."""

    conf: Conf
    """The settings of the game."""

    backends: Backends
    """The knowledge bases of the game."""

    calls: ModelCalls
    """The only way to ask a model."""

    event: Event
    """The event that the turn answers."""

    speaker: Any | None
    """The object that is answered. None if nobody is, or if they left."""

    conversation: ConversationRef

    hops: int
    """How many replies of NPCs follow one another when the NPC speaks now, this one included."""

    turn: int
    """The number of the turn."""


class Tool(ABC):
    """The base class of a tool.

    Every prompt of an NPC with the tool contains `name`, `description` and the schema of
    `Arguments`. They must not change while the game runs.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    Arguments: ClassVar[type[ToolArguments]] = ToolArguments
    dangerous: ClassVar[bool] = False
    """True if it changes the world. It then runs at most once a turn."""
    ends_turn: ClassVar[bool] = False
    """True if the model is not asked again after it."""
    speaks: ClassVar[bool] = False
    """True if the NPC has answered by using it."""
    waits: ClassVar[bool] = False
    """True if `run` returns a Deferred that the turn waits for, such as a search: a minute or two
    at most."""
    later: ClassVar[bool] = False
    """True if `run` returns a Deferred that takes long. The NPC goes on; the result is an event."""

    def refusal(self, use: Use, arguments: Any) -> str:
        """Return why the NPC may not do this now, for the model; "" if it may."""
        return ""

    @abstractmethod
    def run(self, use: Use, arguments: Any) -> "str | Deferred[str]":
        """Do it, and return what the NPC perceives of it.

        Args:
            use: The NPC, the event and the turn.
            arguments: An instance of `Arguments`.

        Raises:
            Refused: It was not done after all; the model reads the reason. Any other exception is
                logged, and the model reads that it did not work.
        """

    def recorded(self, arguments: Any, *, npc: NPC, event: Event) -> ToolArguments:
        """Return the arguments as the history of this conversation may keep them.

        Override it if some of them belong to another conversation.
        """
        kept: ToolArguments = arguments
        return kept


MAX_LINES: Final = 400
NOTHING: Final = "Done."


def result_text(told: object) -> str:
    """Return a tool's result as the NPC reads it: lines without markup or invisible characters.

    Anybody may write descriptions, so text that imitates chat is neutralised. Only the first 20,000
    characters are read.
    """
    lines = [one_line(line) for line in LINE_BREAK.split(strip_markup(str(told)))]
    return neutralize_markup("\n".join([line for line in lines if line][:MAX_LINES])) or NOTHING


MAX_CHARACTERS: Final = 8_000
MAX_NESTING: Final = 12
MOST_TOLD: Final = 3
"""The most wrong arguments that are listed for one call."""

UNREADABLE: Final = "The arguments are not one JSON object."

_MAX_PATH: Final = 60
_MAX_PROBLEM: Final = 160
_BRACKETS: Final = {"[": 1, "{": 1, "]": -1, "}": -1}


class WrongArgumentsError(Refused):
    """A call with arguments that the tool does not take. The model reads the text."""


def arguments_of(tool: Tool, text: str) -> ToolArguments:
    """Parse the arguments in `text`.

    Raises:
        WrongArgumentsError: They are not what the tool takes.
    """
    given = _checked_object(text)
    try:
        return tool.Arguments.model_validate_json(given)
    except ValidationError as error:
        if error.errors()[0]["type"] == "json_invalid":  # for example half of a surrogate pair
            raise WrongArgumentsError(UNREADABLE) from error
        wrong = [_describe_error(tool, detail) for detail in error.errors(include_url=False)]
        more = f" and {len(wrong) - MOST_TOLD} more" if len(wrong) > MOST_TOLD else ""
        raise WrongArgumentsError(
            f"{tool.name} was not done: {'; '.join(wrong[:MOST_TOLD])}{more}."
        ) from error


def is_object(text: str) -> bool:
    """True if `text` is a JSON object within the limits, so that later requests may hold it."""
    try:
        _checked_object(text)
    except WrongArgumentsError:
        return False
    return True


def _checked_object(text: str) -> str:
    """Return `text`, or "{}" if it is empty.

    Raises:
        WrongArgumentsError: It is not a JSON object within the limits.
    """
    text = text.strip() or "{}"
    if len(text) > MAX_CHARACTERS:
        raise WrongArgumentsError(f"The arguments are over {MAX_CHARACTERS} characters long.")
    if _nesting(text) > MAX_NESTING:
        raise WrongArgumentsError("The arguments are nested too deeply.")
    try:
        found = json.loads(
            text, object_pairs_hook=_without_doubles, parse_constant=_no_number, parse_float=_finite
        )
    except (ValueError, RecursionError) as error:
        raise WrongArgumentsError(UNREADABLE) from error
    if not isinstance(found, dict):
        raise WrongArgumentsError("The arguments must be a JSON object.")
    return text


def _nesting(text: str) -> int:
    """Return how deeply brackets are nested. Brackets inside texts count too."""
    deepest = depth = 0
    for character in text:
        depth += _BRACKETS.get(character, 0)
        deepest = max(deepest, depth)
    return deepest


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a name occurs twice")
    return dict(pairs)


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def _finite(digits: str) -> float:
    if not isfinite(number := float(digits)):
        raise ValueError(f"{digits} is too large for a number")
    return number


def _describe_error(tool: Tool, detail: ErrorDetails) -> str:
    """Describe one wrong argument, for example `'to' is missing`."""
    path = one_line(".".join(map(str, detail["loc"])))[:_MAX_PATH]
    if detail["type"] == "missing":
        return f"'{path}' is missing"
    if detail["type"] == "extra_forbidden":
        known = ", ".join(tool.Arguments.model_fields) or "none"
        return f"there is no '{path}' (arguments: {known})"
    problem = one_line(detail["msg"])[:_MAX_PROBLEM]
    return f"'{path}': {problem}" if path else problem


MOST_NESTED: Final = 12

_SAYS_NOTHING: Final = frozenset({"title", "$defs", "discriminator"})
_REFERENCE: Final = "#/$defs/"


def schema_of(arguments: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of `arguments`, with references resolved.

    Raises:
        FormatError: The references form a circle, or are nested too deeply.
    """
    whole = arguments.model_json_schema()
    made = _compact(whole, definitions=whole.get("$defs", {}), nesting=0)
    made.pop("description", None)  # the tool has a description of its own
    return {**made, "properties": made.get("properties", {})}


def _compact(schema: Mapping[str, Any], *, definitions: Mapping[str, Any], nesting: int) -> Any:
    """Return a schema with references replaced by what they refer to."""
    if nesting > MOST_NESTED:
        raise FormatError("arguments", "refer to themselves or are nested too deeply")
    referred = schema.get("$ref")
    if isinstance(referred, str):
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**definitions[referred.removeprefix(_REFERENCE)], **rest}
    made: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "properties":  # its keys are argument names, which may be any word, also "title"
            made[key] = {
                name: _compact(one, definitions=definitions, nesting=nesting + 1)
                for name, one in value.items()
            }
        elif key not in _SAYS_NOTHING:
            made[key] = _compact_value(value, definitions=definitions, nesting=nesting + 1)
    return made


def _compact_value(value: Any, *, definitions: Mapping[str, Any], nesting: int) -> Any:
    if isinstance(value, Mapping):
        return _compact(value, definitions=definitions, nesting=nesting)
    if isinstance(value, list):
        return [_compact_value(v, definitions=definitions, nesting=nesting) for v in value]
    return value
