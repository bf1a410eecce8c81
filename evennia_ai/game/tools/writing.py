"""The tool to write: a letter or a book that players can read and carry away.

It is handed over by the game's own hooks, those of giving and of putting down. Where they forbid
it nothing was written.
"""

from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, StringConstraints

from evennia_ai.game.senses.presence import NPC
from evennia_ai.game.speech.output import pose
from evennia_ai.game.tools.handling import hand_over, one_of, put_down
from evennia_ai.game.tools.sight import person, shown_name
from evennia_ai.game.tools.tool import Name, Refused, Tool, ToolArguments, Use
from evennia_ai.game.writings import plain_text, why_no_more, writing_by
from evennia_ai.settings.conf import conf
from evennia_ai.settings.kinds import MOST_WRITTEN

NOTHING: Final = "Not done: nothing of it can be read."

FORMS: Final = ("letter", "book")


def _known(form: str) -> str:
    if form not in FORMS:
        raise ValueError(f"it is {' or '.join(FORMS)}")
    return form


Form = Annotated[str, AfterValidator(_known), Field(json_schema_extra={"enum": list(FORMS)})]
Text = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MOST_WRITTEN)
]


class Write(Tool):
    """Writes a letter or a book, and gives it to somebody or puts it down."""

    name = "write"
    description = (
        "Write a letter or a book that people can keep, for what is too long to be said. It is"
        " opened with the command: read <its name>"
    )
    dangerous = True

    class Arguments(ToolArguments):
        form: Form = Field(description="what it is")
        text: Text = Field(description="all that stands in it, in plain text")
        title: Name | None = Field(default=None, description="a few words on its outside")
        to: Name | None = Field(
            default=None, description="who here gets it; leave it out to put it down"
        )

    def refusal(self, use: Use, arguments: Arguments) -> str:
        """Whether the limits of the game let the NPC write this."""
        limits = conf().writings
        length = len(plain_text(arguments.text))
        if length > limits.characters:
            return (
                f"Not done: it has {length} characters, and a {arguments.form} holds"
                f" {limits.characters}; write less."
            )
        if not length:
            return NOTHING
        return why_no_more(use.npc, limits)

    def run(self, use: Use, arguments: Arguments) -> str:
        """Write it and hand it over, if the hooks of the thing, the receiver or the place let."""
        npc = use.npc
        to = arguments.to and person(npc, arguments.to, answered=use.event.speaker_ref)
        if npc.location is None:
            raise Refused("There is nobody here to read it.")
        made = writing_by(
            npc,
            form=arguments.form,
            title=arguments.title or "",
            text=plain_text(arguments.text),
        )
        name = one_of(npc, made)
        try:
            where = _delivered(npc, made, to)
        except Exception:  # a game's own hooks may raise anything
            made.delete()
            raise
        pose(npc, f"writes {name}.", hops=use.hops)
        return f"You wrote {name}{where}. It is opened with: read {made.key}"


def _delivered(npc: NPC, made: Any, to: Any | None) -> str:
    """Give the writing to somebody, or put it down; where it is then. `Refused`: it is not."""
    if to is None:
        put_down(npc, made)
        return " and put it down here"
    hand_over(npc, made, to)
    return f" and gave it to {shown_name(npc, to)}"
