"""Tools for what others hear and see of the NPC: say, whisper and pose.

What a model writes is cleaned as its replies are, and goes out by `game.output`, where nothing of
it is markup. The game's own `at_pre_say` may change what is said, or forbid it.
"""

from typing import Any, Final

from pydantic import Field

from evennia_ai.game.committed import ConversationKey
from evennia_ai.game.delivery import behind_name
from evennia_ai.game.events import Event
from evennia_ai.game.output import deliver, pose
from evennia_ai.game.text import plain_name
from evennia_ai.game.tools.asides import noted_aside, room_talk
from evennia_ai.game.tools.sight import person, shown_name
from evennia_ai.game.tools.tool import Name, Refused, Tool, ToolArguments, Use, Words
from evennia_ai.game.voice import Voice

UNSAID: Final = "Not done: nothing of it can be said aloud."
SILENCED: Final = "Not done: you cannot speak now."
WHISPERED: Final = "(whispered)"
"""What stands for words that were whispered outside of the turn's own conversation."""


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
        noted_aside(use, room_talk(use.npc), text)
        deliver(use.npc, text, own_names=own_names(use), hops=use.hops)
        return f'You say: "{text}"'


class Whisper(Tool):
    """Says something to one person alone.

    The words belong to the conversation with that person, and are recorded in no other: not even
    the call shows them where somebody else is answered.
    """

    name = "whisper"
    description = "Say something to one person here that nobody else hears."
    speaks = True

    class Arguments(ToolArguments):
        to: Name = Field(description="who is to hear it")
        text: Words = Field(description="your words, without quotes")

    def run(self, use: Use, arguments: Arguments) -> str:
        """Whisper it."""
        hearer = person(use.npc, arguments.to, answered=use.event.speaker_ref)
        words = cleaned(use, arguments.text)
        text = allowed(use, words, whisper=True, receivers=[hearer])
        noted_aside(use, ConversationKey(kind="private", partner_ref=str(hearer.id)), text)
        deliver(use.npc, text, own_names=own_names(use), hops=use.hops, to=hearer)
        told = f': "{text}"' if _is_with(use.event, hearer) else ", and nobody else hears it."
        return f"You whisper to {shown_name(use.npc, hearer)}{told}"

    def recorded(self, arguments: Arguments, *, npc: Any, event: Event) -> ToolArguments:
        """Without the words, except in the private conversation with whoever hears them."""
        try:
            hearer = person(npc, arguments.to, answered=event.speaker_ref)
        except Refused:
            hearer = None
        if hearer is not None and _is_with(event, hearer):
            return arguments
        return arguments.model_copy(update={"text": WHISPERED})


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
        noted_aside(use, room_talk(use.npc), f"*{action}*")
        pose(use.npc, behind_name(action, own_names=own_names(use)), told=action, hops=use.hops)
        return f"You did it: {plain_name(use.npc.key)} {action}"


def cleaned(use: Use, text: str) -> str:
    """What of a model's words is said, by the rules of its replies; `Refused`: nothing is."""
    said = Voice(use.npc, use.event, own_names=own_names(use)).speech(text)
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
    return use.view.char_name, plain_name(use.npc.key)


def _is_with(event: Event, partner: Any) -> bool:
    """Whether the event belongs to the private conversation with `partner`."""
    return event.private and event.speaker_ref == str(partner.id)
