"""Tools for what others hear and see of the NPC: say, whisper, pose, and end a conversation.

What a model writes is cleaned as its replies are, and goes out by `game.speech.output`, where
nothing of it is markup. The game's own `at_pre_say` may change what is said, or forbid it.

A turn is recorded in one conversation. Words that are heard in another - whispered to somebody
while the room is answered, said aloud while a whisper is - are recorded there as well, before
anybody hears them: they are part of that conversation, and go with it when it is erased.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from pydantic import Field

from evennia_ai.engine.errors import HistoryConflictError
from evennia_ai.engine.history.corrections import SpeakingTool
from evennia_ai.engine.history.records import NewRecord, RecordKind
from evennia_ai.engine.prompt.names import quote_name
from evennia_ai.npc.recording.heard import ConversationKey, opened
from evennia_ai.npc.senses.events import Event
from evennia_ai.npc.senses.presence import NPC, known_ref, sdesc_names
from evennia_ai.npc.senses.text import plain_name
from evennia_ai.npc.senses.utterance import spoken_words
from evennia_ai.npc.speech.output import deliver, pose
from evennia_ai.npc.speech.reply_acts import behind_name
from evennia_ai.npc.speech.voice import Voice
from evennia_ai.npc.tools.targets import person, shown_name
from evennia_ai.npc.tools.tool import Name, Refused, Tool, ToolArguments, Use, Words
from evennia_ai.store.history import conversations


def room_talk(npc: NPC) -> ConversationKey:
    """The conversation of the room where the NPC is."""
    return ConversationKey(
        kind="room", place_ref=str(npc.location.id) if npc.location else "nowhere"
    )


def noted_aside(use: Use, talk: ConversationKey, text: str) -> None:
    """Record that the NPC says `text` in `talk`, unless it is the conversation of the turn.

    StoreError: it was not recorded, so it must not be said.
    """
    where = opened(use.mind.ref, talk)
    if where.id == use.conversation.id:
        return
    said = NewRecord(
        kind=RecordKind.ASSISTANT,
        role="assistant",
        body=text,
        meta={"aside": True, "turn": use.turn},
    )
    try:
        conversations.append_records(where, [said])
    except HistoryConflictError:  # another process wrote since we read; now we know what
        conversations.append_records(where, [said])


UNSAID: Final = "Not done: nothing of it can be said aloud."
SILENCED: Final = "Not done: you cannot speak now."
WHISPERED: Final = "(whispered)"
"""What stands for words that were whispered outside of the turn's own conversation."""


def spoken_by(npc: NPC) -> Mapping[str, SpeakingTool]:
    """Where the words of the tools below stand that others heard, so that they can be corrected."""
    name = rf"(?:{re.escape(plain_name(npc.key))}|\S+)"
    results = {
        "say": ("text", r'(You say: ").*(")'),
        "whisper": ("text", r'(You whisper to [^"]*: ").*(")'),
        "pose": ("action", rf"(You did it: {name} ).*()"),
    }
    return {
        tool: SpeakingTool(argument=argument, result=re.compile(told, re.DOTALL))
        for tool, (argument, told) in results.items()
    }


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
        noted_aside(
            use, ConversationKey(kind="private", partner_ref=known_ref(use.npc, hearer)), text
        )
        deliver(use.npc, text, own_names=own_names(use), hops=use.hops, to=hearer)
        told = (
            f': "{text}"' if _is_with(use.npc, use.event, hearer) else ", and nobody else hears it."
        )
        return f"You whisper to {shown_name(use.npc, hearer)}{told}"

    def recorded(self, arguments: Arguments, *, npc: NPC, event: Event) -> ToolArguments:
        """Without the words, except in the private conversation with whoever hears them."""
        try:
            hearer = person(npc, arguments.to, answered=event.speaker_ref)
        except Refused:
            hearer = None
        if hearer is not None and _is_with(npc, event, hearer):
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
    return spoken_words(str(said))


def own_names(use: Use) -> tuple[str, ...]:
    """By what a model may call the one it speaks for."""
    return use.view.char_name, plain_name(use.npc.key), *sdesc_names(use.npc)


def _is_with(npc: NPC, event: Event, partner: Any) -> bool:
    """True if the event belongs to the private conversation with `partner`."""
    return event.private and event.known_ref == known_ref(npc, partner)


class EndConversation(Tool):
    """Ends being in conversation with whoever is answered: they have to call the NPC again."""

    name = "end_conversation"
    description = (
        "End the conversation with whoever you answer; say your last words in your reply."
        " You still hear them, and answer when they call you by your name."
    )
    ends_turn = True

    def run(self, use: Use, arguments: ToolArguments) -> str:
        """Wait for nothing more from the speaker."""
        if not use.event.speaker_ref:
            raise Refused("You are in conversation with nobody.")
        use.mind.disengage(use.event.speaker_ref)
        return f"You ended the conversation with {quote_name(use.event.speaker_name)}."
