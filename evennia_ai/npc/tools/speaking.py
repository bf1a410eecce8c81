"""Tools with which an NPC speaks or gestures: say, whisper, pose, and end a conversation.

The model's words are cleaned like its replies. `npc.speech.output` sends them without any markup.
The game's hook `at_pre_say` may change or forbid them.

A turn is recorded in one conversation. An NPC may also say something that belongs to another one,
such as a whisper while it answers the room. Such words are recorded in that conversation before
anybody hears them, and they are erased with it.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from pydantic import Field

from evennia_ai.engine.errors import HistoryConflictError
from evennia_ai.engine.history.corrections import SpeakingTool
from evennia_ai.engine.history.records import NewRecord, RecordKind
from evennia_ai.engine.prompt.names import quote_name
from evennia_ai.npc.recording.heard import ConversationKey, open_conversation
from evennia_ai.npc.senses.events import Event
from evennia_ai.npc.senses.presence import NPC, known_ref, sdesc_names
from evennia_ai.npc.senses.text import plain_name
from evennia_ai.npc.senses.utterance import spoken_words
from evennia_ai.npc.speech.output import deliver_reply, show_pose
from evennia_ai.npc.speech.reply_acts import action_after_name
from evennia_ai.npc.speech.voice import Voice
from evennia_ai.npc.tools.targets import person, shown_name
from evennia_ai.npc.tools.tool import Name, Refused, Tool, ToolArguments, Use, Words
from evennia_ai.store.history import conversations


def room_conversation_key(npc: NPC) -> ConversationKey:
    """Return the key of the conversation with the room in which the NPC is."""
    return ConversationKey(
        kind="room", place_ref=str(npc.location.id) if npc.location else "nowhere"
    )


def record_aside(use: Use, talk: ConversationKey, text: str) -> None:
    """Record that the NPC says `text` in the conversation `talk`, unless the turn records it there.

    Raises:
        StoreError: It was not recorded, so it must not be said.
    """
    where = open_conversation(use.mind.ref, talk)
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
    # another process wrote meanwhile; the failed attempt has read its records
    except HistoryConflictError:
        conversations.append_records(where, [said])


UNSAID: Final = "Not done: nothing of it can be said aloud."
SILENCED: Final = "Not done: you cannot speak now."
WHISPERED: Final = "(whispered)"
"""Replaces whispered words in the records of every conversation but the one with the hearer."""


def speaking_tools(npc: NPC) -> Mapping[str, SpeakingTool]:
    """Return which arguments and results of the tools here contain spoken words.

    A builder who corrects what an NPC said also corrects these calls.
    """
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
    """The tool that says something aloud."""

    name = "say"
    description = "Say something aloud to everybody here, apart from your reply."
    speaks = True

    class Arguments(ToolArguments):
        text: Words = Field(description="your words, without quotes")

    def run(self, use: Use, arguments: Arguments) -> str:
        """Say the words to everybody in the NPC's room."""
        text = allow_speech(use, clean_words(use, arguments.text))
        record_aside(use, room_conversation_key(use.npc), text)
        deliver_reply(use.npc, text, own_names=own_names(use), hops=use.hops)
        return f'You say: "{text}"'


class Whisper(Tool):
    """The tool that says something to one person only.

    The words are recorded only in the conversation with that person. If the turn answers somebody
    else, its record of the call does not contain them.
    """

    name = "whisper"
    description = "Say something to one person here that nobody else hears."
    speaks = True

    class Arguments(ToolArguments):
        to: Name = Field(description="who is to hear it")
        text: Words = Field(description="your words, without quotes")

    def run(self, use: Use, arguments: Arguments) -> str:
        """Whisper the words to the person."""
        hearer = person(use.npc, arguments.to, answered=use.event.speaker_ref)
        words = clean_words(use, arguments.text)
        text = allow_speech(use, words, whisper=True, receivers=[hearer])
        record_aside(
            use, ConversationKey(kind="private", partner_ref=known_ref(use.npc, hearer)), text
        )
        deliver_reply(use.npc, text, own_names=own_names(use), hops=use.hops, to=hearer)
        told = (
            f': "{text}"'
            if _is_in_private_with(use.npc, use.event, hearer)
            else ", and nobody else hears it."
        )
        return f"You whisper to {shown_name(use.npc, hearer)}{told}"

    def recorded(self, arguments: Arguments, *, npc: NPC, event: Event) -> ToolArguments:
        """Return the arguments, without the words unless the turn is in private with the hearer."""
        try:
            hearer = person(npc, arguments.to, answered=event.speaker_ref)
        except Refused:
            hearer = None
        if hearer is not None and _is_in_private_with(npc, event, hearer):
            return arguments
        return arguments.model_copy(update={"text": WHISPERED})


class Pose(Tool):
    """The tool that does something that people see and that changes nothing, such as a gesture."""

    name = "pose"
    description = (
        "Do something that everybody here sees and that changes nothing, such as a gesture."
    )
    speaks = True

    class Arguments(ToolArguments):
        action: Words = Field(description="what you do, such as: looks out over the water.")

    def run(self, use: Use, arguments: Arguments) -> str:
        """Show the gesture to everybody in the NPC's room."""
        action = clean_words(use, arguments.action).strip("* ")
        for name in own_names(use):
            action = action.removeprefix(f"{name} ").strip()
        if not action:
            raise Refused("Not done: nothing of it can be seen.")
        record_aside(use, room_conversation_key(use.npc), f"*{action}*")
        show_pose(
            use.npc, action_after_name(action, own_names=own_names(use)), told=action, hops=use.hops
        )
        return f"You did it: {plain_name(use.npc.key)} {action}"


def clean_words(use: Use, text: str) -> str:
    """Clean words of a model by the same rules as a reply.

    Raises:
        Refused: Nothing is left to say.
    """
    said = Voice(use.npc, use.event, own_names=own_names(use)).speech(text)
    if not said:
        raise Refused(UNSAID)
    return said


def allow_speech(use: Use, text: str, **options: Any) -> str:
    """Return `text` as the game's hook `at_pre_say` changes it.

    Raises:
        Refused: The hook forbids it.
    """
    said = use.npc.at_pre_say(text, **options)
    if not said:
        raise Refused(SILENCED)
    return spoken_words(str(said))


def own_names(use: Use) -> tuple[str, ...]:
    """Return the names by which a model may call its own NPC."""
    return use.view.char_name, plain_name(use.npc.key), *sdesc_names(use.npc)


def _is_in_private_with(npc: NPC, event: Event, partner: Any) -> bool:
    """True if the event belongs to the private conversation with `partner`."""
    return event.private and event.known_ref == known_ref(npc, partner)


class EndConversation(Tool):
    """The tool that ends the conversation with the speaker.

    After that, the NPC answers the speaker only if it is called by name again.
    """

    name = "end_conversation"
    description = (
        "End the conversation with whoever you answer; say your last words in your reply."
        " You still hear them, and answer when they call you by your name."
    )
    ends_turn = True

    def run(self, use: Use, arguments: ToolArguments) -> str:
        """End the conversation with the speaker."""
        if not use.event.speaker_ref:
            raise Refused("You are in conversation with nobody.")
        use.mind.disengage(use.event.speaker_ref)
        return f"You ended the conversation with {quote_name(use.event.speaker_name)}."
