"""Tools with which an NPC remembers, recalls, and reads the result of an errand.

What a person whispered is recalled only in private with that person. An NPC learns nothing about
itself. `npc.upkeep.remembering` enforces both rules.
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
    """The tool that stores something that the NPC learnt."""

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
        """Store the memory.

        Raises:
            Refused: It may not be stored; the text says why.
        """
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
    """The tool that finds what the NPC learnt."""

    name = "recall"
    description = "Search your memory for what you learnt earlier."

    class Arguments(ToolArguments):
        query: Query = Field(default="", description="a few words it has to do with")
        about: Name | None = Field(
            default=None, description="whom it is about; leave it out for anything"
        )

    def run(self, use: Use, arguments: Arguments) -> str:
        """Return the memories that match, the best first."""
        found = remembering.recall(
            use.mind.ref,
            arguments.query,
            about=_reference(use, arguments.about),
            where=use.conversation,
            rules=use.conf.memory,
        )
        return "\n".join(f"- {memory.text}" for memory in found) or NOTHING


def _reference(use: Use, name: str | None) -> str | None:
    """Return the reference of the person with this name who is present or in the NPC's memories."""
    if name is None:
        return None
    known = person(
        use.npc, name, answered=use.event.speaker_ref, also=remembered_people(use.mind.ref)
    )
    return known_ref(use.npc, known)


class ErrandResult(Tool):
    """The tool that reads the result of an errand that began in the same conversation.

    An NPC gets it automatically together with any tool that takes long.
    """

    name = "errand_result"
    description = "Learn what came of an errand of yours, once you were told that it has ended."

    class Arguments(ToolArguments):
        number: int = Field(ge=1, le=999_999_999, description="the number of the errand")

    def run(self, use: Use, arguments: Arguments) -> str:
        """Return the result of the errand, or that it is not done yet."""
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
