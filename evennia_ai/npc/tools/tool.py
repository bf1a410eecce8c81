"""The base class of tools: a tool is one action that a model may ask of its NPC.

A game writes its own tools as subclasses of `Tool`. A tool has no state: one instance serves all
NPCs, and `Use` has everything that it needs to know. The tool checks whether the game lets the NPC
do the action, and refuses it otherwise.

Arguments that a model wrote are limited in size and checked by their types. The model gets one
short text about everything that is wrong. No argument is converted: "5" is not a number. The JSON
schema of the arguments is part of every prompt, so it is small and always has the same bytes.
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
"""A text that an NPC may say, of limited length."""


class ToolArguments(BaseModel):
    """The base class of a tool's arguments. Unknown fields and wrong types are refused."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One use of a tool: the NPC, the event that it answers, and the turn."""

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
    """The only way to ask a model, which enforces limits and stops."""

    event: Event
    """The event that the turn answers."""

    speaker: Any | None
    """The object that the turn answers. None if there is none, or if it left."""

    conversation: ConversationRef

    hops: int
    """The number of replies of NPCs in a row, if the NPC speaks now, including this one."""

    turn: int
    """The number of the turn."""


class Tool(ABC):
    """The base class of all tools.

    Every prompt of an NPC with the tool contains `name`, `description` and the schema of
    `Arguments`. They must not change while the game runs.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    Arguments: ClassVar[type[ToolArguments]] = ToolArguments
    dangerous: ClassVar[bool] = False
    """True if the tool changes the world. Only one such action is done in a turn."""
    ends_turn: ClassVar[bool] = False
    """True if the model is not asked again after the tool was used."""
    speaks: ClassVar[bool] = False
    """True if using the tool counts as an answer of the NPC."""
    waits: ClassVar[bool] = False
    """True if `run` returns a Deferred, for example of a search, and the turn waits for it.

    The turn waits two minutes at most.
    """
    later: ClassVar[bool] = False
    """True if `run` returns a Deferred that takes long.

    The turn goes on. An event tells the NPC later that the action has ended.
    """

    def refusal(self, use: Use, arguments: Any) -> str:
        """Return why the NPC may not do this now, as a text for the model; "" if it may."""
        return ""

    @abstractmethod
    def run(self, use: Use, arguments: Any) -> "str | Deferred[str]":
        """Do the action, and return what the NPC perceives of it.

        Args:
            use: The NPC, the event and the turn.
            arguments: An instance of `Arguments`.

        Raises:
            Refused: The action was not done; the model reads the reason. Every other exception is
                logged, and the model only reads that the action did not work.
        """

    def recorded(self, arguments: Any, *, npc: NPC, event: Event) -> ToolArguments:
        """Return the arguments as the history of this conversation may store them.

        Override it if some arguments belong to another conversation, such as whispered words.
        """
        kept: ToolArguments = arguments
        return kept


MAX_LINES: Final = 400
NOTHING: Final = "Done."


def result_text(told: object) -> str:
    """Return a tool's result as the NPC reads it: without markup and invisible characters.

    Lines are kept. Descriptions may be written by anybody, so text that looks like a message of a
    chat is defused. Only the first 20,000 characters are used.
    """
    lines = [one_line(line) for line in LINE_BREAK.split(strip_markup(str(told)))]
    return neutralize_markup("\n".join([line for line in lines if line][:MAX_LINES])) or NOTHING


MAX_CHARACTERS: Final = 8_000
MAX_NESTING: Final = 12
MOST_TOLD: Final = 3
"""The most wrong arguments that the model reads about for one call."""

UNREADABLE: Final = "The arguments are not one JSON object."

_MAX_PATH: Final = 60
_MAX_PROBLEM: Final = 160
_BRACKETS: Final = {"[": 1, "{": 1, "]": -1, "}": -1}


class WrongArgumentsError(Refused):
    """The error for a call with wrong arguments. The model reads the text."""


def arguments_of(tool: Tool, text: str) -> ToolArguments:
    """Parse the arguments of a call.

    Raises:
        WrongArgumentsError: The tool does not accept them.
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
    """True if `text` is a JSON object within the limits, which requests can contain."""
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
    """Return how deeply brackets are nested. Brackets inside strings count too."""
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
    """Describe one wrong argument, such as `'to' is missing`."""
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
    """Return the JSON schema of `arguments`, with all references replaced by what they name.

    Raises:
        FormatError: The references form a circle, or are nested too deeply.
    """
    whole = arguments.model_json_schema()
    made = _compact(whole, definitions=whole.get("$defs", {}), nesting=0)
    made.pop("description", None)  # the tool has its own description
    return {**made, "properties": made.get("properties", {})}


def _compact(schema: Mapping[str, Any], *, definitions: Mapping[str, Any], nesting: int) -> Any:
    """Return a schema in which each reference is replaced by what it names."""
    if nesting > MOST_NESTED:
        raise FormatError("arguments", "refer to themselves or are nested too deeply")
    referred = schema.get("$ref")
    if isinstance(referred, str):
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**definitions[referred.removeprefix(_REFERENCE)], **rest}
    made: dict[str, Any] = {}
    for key, value in schema.items():
        # these keys are names of arguments, and an argument may be called "title"
        if key == "properties":
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
