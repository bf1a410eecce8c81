"""Tools to remember, to recall, and to read the outcome of an errand.

Whispered memories are found only in private with the person who whispered, and an NPC learns
nothing about itself. `npc.upkeep.remembering` enforces these rules.
"""

from typing import Annotated, Final

from pydantic import Field, StringConstraints

from evennia_ai.engine.errors import NotStoredError
from evennia_ai.engine.memory.memories import (
    LEAST_IMPORTANT,
    MAX_TEXT,
    MOST_IMPORTANT,
    USUAL_IMPORTANCE,
)
from evennia_ai.npc.senses.presence import known_ref
from evennia_ai.npc.tools.targets import person, remembered_people
from evennia_ai.npc.tools.tool import Name, Refused, Tool, ToolArguments, Use
from evennia_ai.npc.upkeep import remembering
from evennia_ai.store.history import errands

NOTHING: Final = "You remember nothing of that."

Fact = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_TEXT)]
Query = Annotated[str, StringConstraints(strip_whitespace=True, max_length=200)]


class Remember(Tool):
    """Keeps something that the NPC learnt."""

    name = "remember"
    description = (
        "Remember something for good that you learnt about the world or about somebody, as one"
        " sentence in the third person, with names."
    )

    class Arguments(ToolArguments):
        text: Fact = Field(description="what you learnt")
        importance: int = Field(
            default=USUAL_IMPORTANCE,
            ge=LEAST_IMPORTANT,
            le=MOST_IMPORTANT,
            description="from 1, hardly worth it, to 10, never to be forgotten",
        )
        about: Name | None = Field(
            default=None, description="whom it is about; leave it out for the world"
        )

    def run(self, use: Use, arguments: Arguments) -> str:
        """Keep it. Refuse with the reason if it may not be kept."""
        kept = remembering.remember(
            use.mind.ref,
            arguments.text,
            importance=arguments.importance,
            about=_reference(use, arguments.about) or "",
            where=use.conversation,
            source=use.turn,
            rules=use.conf.memory,
        )
        if kept.refusal:
            raise Refused(str(kept))
        return str(kept)


class Recall(Tool):
    """Finds what the NPC learnt."""

    name = "recall"
    description = "Search your memory for what you learnt earlier."

    class Arguments(ToolArguments):
        query: Query = Field(default="", description="a few words it has to do with")
        about: Name | None = Field(
            default=None, description="whom it is about; leave it out for anything"
        )

    def run(self, use: Use, arguments: Arguments) -> str:
        """Return the memories found, the best first."""
        found = remembering.recall(
            use.mind.ref,
            arguments.query,
            about=_reference(use, arguments.about),
            where=use.conversation,
            rules=use.conf.memory,
        )
        return "\n".join(f"- {memory.text}" for memory in found) or NOTHING


def _reference(use: Use, name: str | None) -> str | None:
    """Return the reference of a person present or remembered, by name."""
    if name is None:
        return None
    known = person(
        use.npc, name, answered=use.event.speaker_ref, also=remembered_people(use.mind.ref)
    )
    return known_ref(use.npc, known)


class ErrandResult(Tool):
    """Reads the outcome of an errand that began in the same conversation.

    Every NPC with a tool that takes long has this tool too.
    """

    name = "errand_result"
    description = "Learn what came of an errand of yours, once you were told that it has ended."

    class Arguments(ToolArguments):
        number: int = Field(ge=1, le=999_999_999, description="the number of the errand")

    def run(self, use: Use, arguments: Arguments) -> str:
        """Return the outcome, or that there is none yet."""
        try:
            errand = errands.get_errand(use.mind.ref, arguments.number)
        except NotStoredError as error:
            raise Refused(f"There is no errand {arguments.number}.") from error
        if errand.conversation.id != use.conversation.id:
            raise Refused(f"There is no errand {arguments.number}.")
        if errand.state == "open":
            return f"Errand {errand.number} is not done yet."
        how = "is done" if errand.state == "done" else "came to nothing"
        return f"Errand {errand.number} {how}: {errand.result}"
