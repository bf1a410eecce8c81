"""Tools for what others hear and see of the NPC: say and pose.

What a model writes is cleaned as its replies are, and goes out by `game.output`, where nothing of
it is markup. The game's own `at_pre_say` may change what is said, or forbid it.
"""

from typing import Any, Final

from pydantic import Field

from evennia_ai.game.output import pose, speak
from evennia_ai.game.perception import bystanders
from evennia_ai.game.speech import speech
from evennia_ai.game.text import plain_name
from evennia_ai.game.tools.tool import Refused, Tool, ToolArguments, Use, Words

UNSAID: Final = "Not done: nothing of it can be said aloud."
SILENCED: Final = "Not done: you cannot speak now."


class Say(Tool):
    """Says something aloud."""

    name = "say"
    description = "Say something aloud to everybody here, apart from your reply."
    speaks = True

    class Arguments(ToolArguments):
        text: Words = Field(description="your words, without quotes")

    def run(self, use: Use, arguments: Arguments) -> str:
        """Say it where the NPC is."""
        text = allowed(use, cleaned(use, arguments.text))
        speak(use.npc, text, hops=use.hops)
        return f'You say: "{text}"'


class Pose(Tool):
    """Does something that can be seen and changes nothing."""

    name = "pose"
    description = (
        "Do something that everybody here sees and that changes nothing, such as a gesture."
    )
    speaks = True

    class Arguments(ToolArguments):
        action: Words = Field(description="what you do, such as: looks out over the water.")

    def run(self, use: Use, arguments: Arguments) -> str:
        """Show it where the NPC is."""
        action = cleaned(use, arguments.action).strip("* ")
        for name in own_names(use):
            action = action.removeprefix(f"{name} ").strip()
        if not action:
            raise Refused("Not done: nothing of it can be seen.")
        pose(use.npc, action, hops=use.hops)
        return f"You did it: {plain_name(use.npc.key)} {action}"


def cleaned(use: Use, text: str) -> str:
    """What of a model's words is said, by the rules of its replies; `Refused`: nothing is."""
    said = speech(
        text,
        own_names=own_names(use),
        other_names=[plain_name(other.key) for other in bystanders(use.npc)],
    )
    if not said:
        raise Refused(UNSAID)
    return said


def allowed(use: Use, text: str, **options: Any) -> str:
    """What the game lets the NPC say of `text`, by its hook; `Refused`: nothing."""
    said = use.npc.at_pre_say(text, **options)
    if not said:
        raise Refused(SILENCED)
    return str(said)


def own_names(use: Use) -> tuple[str, str]:
    """By what a model may call the one it speaks for."""
    return use.mind.view().char_name, plain_name(use.npc.key)
