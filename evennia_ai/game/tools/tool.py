"""A tool: one act that a model may ask of its NPC, as a class that a game may subclass.

A tool has no state: one instance serves all NPCs. Whatever it needs of the moment is in the `Use`.
It checks as the NPC what the game lets the NPC do, and refuses what it does not.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict, StringConstraints
from twisted.internet.defer import Deferred

from evennia_ai.errors import EvenniaAIError
from evennia_ai.game.inputs.mind import Mind
from evennia_ai.game.runtime import Runtime
from evennia_ai.game.senses.events import Event
from evennia_ai.game.senses.presence import NPC
from evennia_ai.game.senses.text import LINE_BREAK, one_line, unmarked
from evennia_ai.history.role_markup import neutral
from evennia_ai.minds.view import NPCView
from evennia_ai.settings.npc import NPCSettings
from evennia_ai.store.history.conversations import ConversationRef

Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80)]
"""The name of a person, a thing or an exit."""

Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=600)]
"""What is said or done, or a text of that length."""


class ToolArguments(BaseModel):
    """Arguments of a tool, as a model gives them: exactly these, of exactly these types."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Refused(EvenniaAIError):  # noqa: N818 - it is an answer to the model, not a failure
    """A tool does not do what it was asked; nothing was done. The text is told to the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One use of a tool: by whom, because of what, in which turn."""

    npc: NPC
    mind: Mind

    view: NPCView
    """What the NPC was made of when the turn began."""

    settings: NPCSettings
    """What was set for the NPC alone when the turn began."""

    runtime: Runtime
    """What all NPCs of the process share."""

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
    return neutral("\n".join([line for line in lines if line][:MAX_LINES])) or NOTHING
