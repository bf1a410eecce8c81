"""A tool: one act that a model may ask of its NPC, as a class that a game may subclass.

A tool has no state: one instance serves all NPCs. Whatever it needs of the moment is in the `Use`.
It checks as the NPC what the game lets the NPC do, and refuses what it does not.

What a model wrote as arguments is read with limits and checked by its types. Whatever is wrong
becomes one short text for the model, and nothing is guessed: "5" is no number. The JSON schema of
the arguments is part of every prompt, so it is small and the same bytes each time.
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
from evennia_ai.engine.history.role_markup import neutralize
from evennia_ai.npc.inputs.mind import Mind
from evennia_ai.npc.knowledge.backends import Backends
from evennia_ai.npc.model_calls.calls import ModelCalls
from evennia_ai.npc.senses.events import Event
from evennia_ai.npc.senses.presence import NPC
from evennia_ai.npc.senses.text import LINE_BREAK, one_line, unmarked
from evennia_ai.npc.tools.targets import Refused as Refused  # noqa: PLC0414 - for games
from evennia_ai.npc.views.view import NPCView
from evennia_ai.services.settings.game import Conf
from evennia_ai.services.settings.npc import NPCSettings
from evennia_ai.store.history.record_rows import ConversationRef

Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80)]
"""The name of a person, a thing or an exit."""

Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=600)]
"""What is said or done, or a text of that length."""


class ToolArguments(BaseModel):
    """Arguments of a tool, as a model gives them: exactly these, of exactly these types."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One use of a tool: by whom, because of what, in which turn."""

    npc: NPC
    mind: Mind

    view: NPCView
    """What the NPC was made of when the turn began."""

    settings: NPCSettings
    """What was set for the NPC alone when the turn began."""

    conf: Conf
    """The settings of the game."""

    backends: Backends
    """Where knowledge bases are."""

    calls: ModelCalls
    """Through what models are asked."""

    event: Event
    """What the turn answers."""

    speaker: Any | None
    """Who is answered, None where nobody is or they are not here any more."""

    conversation: ConversationRef

    hops: int
    """Of what the NPC says in this turn: the NPC replies in a row, this one among them."""

    turn: int
    """The number of the turn."""


class Tool(ABC):
    """What a game subclasses for a tool of its own.

    `name` and `description` are part of every prompt of an NPC that has the tool, and so is the
    schema of `Arguments`: they must never change while the game runs. A `dangerous` tool changes
    the world and runs at most once a turn. After one that `ends_turn` the model is not asked
    again. With one that `speaks` the NPC has answered, whether or not it says anything more. One
    whose `run` gives back a Deferred of the result is marked: `waits` where the turn waits for it,
    a minute or two at most, as for a search; `later` where it takes long and the NPC goes on.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    Arguments: ClassVar[type[ToolArguments]] = ToolArguments
    dangerous: ClassVar[bool] = False
    ends_turn: ClassVar[bool] = False
    speaks: ClassVar[bool] = False
    waits: ClassVar[bool] = False
    later: ClassVar[bool] = False

    def refusal(self, use: Use, arguments: Any) -> str:
        """Why the NPC may not do this now, "" where it may; told to the model."""
        return ""

    @abstractmethod
    def run(self, use: Use, arguments: Any) -> "str | Deferred[str]":
        """Do it; what the NPC perceives of it. `Refused`: it was not done after all.

        `arguments` are an instance of `Arguments`. Whatever else is raised is logged, and the
        model is told that it did not work.
        """

    def recorded(self, arguments: Any, *, npc: NPC, event: Event) -> ToolArguments:
        """The arguments as the conversation that `event` belongs to may show them ever after.

        The same, unless something of them belongs to another conversation alone.
        """
        kept: ToolArguments = arguments
        return kept


MAX_LINES: Final = 400
NOTHING: Final = "Done."


def result_text(told: object) -> str:
    """What is told, as the NPC perceives it: lines without markup or invisible characters.

    What reads as the frame of a chat is undone: descriptions are written by anybody. Of a text over
    20,000 characters only the start is told.
    """
    lines = [one_line(line) for line in LINE_BREAK.split(unmarked(str(told)))]
    return neutralize("\n".join([line for line in lines if line][:MAX_LINES])) or NOTHING


MAX_CHARACTERS: Final = 8_000
MAX_NESTING: Final = 12
MOST_TOLD: Final = 3
"""Wrong arguments that are told of one call."""

UNREADABLE: Final = "The arguments are not one JSON object."

_MAX_PATH: Final = 60
_MAX_PROBLEM: Final = 160
_BRACKETS: Final = {"[": 1, "{": 1, "]": -1, "}": -1}


class WrongArgumentsError(Refused):
    """A call whose arguments are not what the tool takes; the text is for the model."""


def arguments_of(tool: Tool, text: str) -> ToolArguments:
    """The arguments in `text`; WrongArgumentsError says what is wrong with them."""
    given = _checked_object(text)
    try:
        return tool.Arguments.model_validate_json(given)
    except ValidationError as error:
        if error.errors()[0]["type"] == "json_invalid":  # halves of surrogate pairs and such
            raise WrongArgumentsError(UNREADABLE) from error
        wrong = [_told(tool, detail) for detail in error.errors(include_url=False)]
        more = f" and {len(wrong) - MOST_TOLD} more" if len(wrong) > MOST_TOLD else ""
        raise WrongArgumentsError(
            f"{tool.name} was not done: {'; '.join(wrong[:MOST_TOLD])}{more}."
        ) from error


def is_object(text: str) -> bool:
    """Whether `text` is one JSON object within the limits, as a later request may show it."""
    try:
        _checked_object(text)
    except WrongArgumentsError:
        return False
    return True


def _checked_object(text: str) -> str:
    """`text`, "{}" for an empty one; WrongArgumentsError where it is no JSON object to be read."""
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
    """How deep brackets stand in one another, those inside of texts among them."""
    deepest = depth = 0
    for character in text:
        depth += _BRACKETS.get(character, 0)
        deepest = max(deepest, depth)
    return deepest


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a name stands there twice")
    return dict(pairs)


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


def _finite(digits: str) -> float:
    if not isfinite(number := float(digits)):
        raise ValueError(f"{digits} is larger than any number")
    return number


def _told(tool: Tool, detail: ErrorDetails) -> str:
    """One thing that is wrong, as `'to' is missing`."""
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
    """The schema of `arguments`; FormatError where it has none without references in circles."""
    whole = arguments.model_json_schema()
    made = _compact(whole, definitions=whole.get("$defs", {}), nesting=0)
    made.pop("description", None)  # that of the tool says it
    return {**made, "properties": made.get("properties", {})}


def _compact(schema: Mapping[str, Any], *, definitions: Mapping[str, Any], nesting: int) -> Any:
    """A schema with its references put in."""
    if nesting > MOST_NESTED:
        raise FormatError("arguments", "refer to themselves or are nested too deeply")
    referred = schema.get("$ref")
    if isinstance(referred, str):
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**definitions[referred.removeprefix(_REFERENCE)], **rest}
    made: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "properties":  # its keys are names of arguments, which may be any word
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
