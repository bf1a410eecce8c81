"""A room with two players, a builder and an NPC, and the model that answers for the NPC.

It keeps the model's requests and what each client receives. Evennia must be started before this
module is imported.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from evennia.commands.cmdhandler import cmdhandler
from evennia.commands.cmdset import CmdSet

from commands.pose import CmdPose
from evennia_ai.commands.cmdset import AICmdSet
from evennia_ai.engine.actors import THE_GAME, trusted
from evennia_ai.engine.prompt.components import PromptComponent
from evennia_ai.engine.prompt.messages import ToolCall
from evennia_ai.npc.npc_settings import change_settings
from evennia_ai.services.endpoints import Access
from evennia_ai.services.llm.chat import ChatReply, ChatRequest
from evennia_ai.services.llm.clients.scripted import Line, ScriptedModel
from evennia_ai.services.llm.roles import OPEN, STRICT, RoleProfile
from evennia_ai.store.authored import components, notes

NATIVE = OPEN
FITTED = replace(STRICT, tools="schema")
"""The two kinds of servers that differ in everything: roles, merging, tools."""

TOOLS = ("give", "look", "pose", "recall", "remember", "say", "whisper")
MOST_WORDS = 600
"""Characters that the tools to speak take."""

Answer = Callable[[ChatRequest], Line]


class Scene:
    """Oren with Anna, Ben and the builder Mara. `roles` says what Oren's server accepts.

    The three characters are reused by all scenes and reset for each. Oren and the room are new.
    """

    def __init__(self, stage: Any, roles: RoleProfile) -> None:
        self.stage = stage
        self.roles = roles
        self.room = stage.make("Ferry Landing", ROOM, place=None)
        self.npc = stage.make("Oren", "evennia_ai.typeclasses.AINPC", place=self.room)
        self.people = _cast(stage)
        self.anna, self.ben, self.mara = self.people
        for person, name in zip(self.people, NAMES, strict=True):
            _as_at_first(person, name, self.room)
        self.ends: list[Callable[[], Any]] = []
        """What is to be done when it is over."""
        self.says_at_once: Answer = lambda request: "Aye."
        self.model = ScriptedModel(lambda request: self.says_at_once(request))
        access = Access(model=self.model, model_id="scripted", roles=roles)
        stage.opens(access, engagement_seconds=0.0)
        change_settings(self.npc, tools=TOOLS, mode="always", by=THE_GAME)
        notes.set_note(
            self.npc.ai.ref, by=trusted("builder"), content="Be brief, {{char}}.", depth=1
        )

    @property
    def requests(self) -> list[ChatRequest]:
        """All requests to the model."""
        return self.model.requests

    def thing(self, key: str, *, place: Any, desc: str = "") -> Any:
        made = self.stage.make(key, "evennia.objects.objects.DefaultObject", place=place)
        made.db.desc = desc or None
        return made

    def acts(self, act: Callable[[], Any], *, is_ours: bool = True) -> None:
        """Do something, and let one second pass.

        If the text that players see at once is Evennia's own (`is_ours` is False), it is
        not kept.
        """
        act()
        if not is_ours:
            for one in self.people:
                one.screen.sent.clear()
        self.stage.passes(1)

    def says(self, speaker: Any, text: str, **how: Any) -> None:
        """Let `speaker` say something through Evennia's own method."""
        self.acts(lambda: speaker.at_say(text, msg_self=True, **how), is_ours=False)

    def types(self, who: Any, line: str, *, is_ours: bool = True) -> None:
        """Let a character type a line."""
        with patch("evennia.commands.cmdhandler.deferLater", _at_once):
            self.acts(lambda: cmdhandler(who, line, callertype="object"), is_ours=is_ours)

    def shown_to_builder(self, line: str) -> list[str]:
        """Type a line as the builder, and return what her client receives."""
        before = len(self.mara.screen.sent)
        self.types(self.mara, line)
        return self.mara.screen.sent[before:]

    def replies(self, text: str) -> None:
        """Let the model reply with this text from now on."""
        self.says_at_once = lambda request: text

    def obeys(self, text: str) -> None:
        """Let the model say the text and call every tool with it, in every second request."""
        turn = iter(range(1000))
        self.says_at_once = lambda request: self.calling(
            calls_with(text) if next(turn) % 2 == 0 else (), said=text
        )

    def calling(self, calls: tuple[tuple[str, str], ...], *, said: str = "") -> Line:
        """Return a reply with these tool calls, in the form of the server in use."""
        if self.roles.tools == "native":
            made = tuple(
                ToolCall(id=f"call{number}", name=name, arguments=arguments)
                for number, (name, arguments) in enumerate(calls)
            )
            return ChatReply(text=said, model="scripted", tool_calls=made)
        acts = ", ".join(f'{{"tool": {json.dumps(name)}, "arguments": {a}}}' for name, a in calls)
        return f'{{"say": {json.dumps(said)}, "acts": [{acts}]}}' if calls else said


ROOM = "evennia.objects.objects.DefaultRoom"
NAMES = ("Anna", "Ben", "Mara")


def _cast(stage: Any) -> tuple[Any, ...]:
    if not hasattr(stage, "cast"):
        stage.cast = tuple(map(stage.player, NAMES))
        for person in stage.cast:
            person.sessions.count = lambda: 0  # it gets text although it has no account
            person.cmdset.add_default(Commands)
    return stage.cast


def _as_at_first(person: Any, name: str, room: Any) -> None:
    person.key = name
    person.move_to(room, quiet=True, move_hooks=False)
    person.permissions.clear()
    person.permissions.add("Builder" if name == "Mara" else "Player")
    person.screen.sent.clear()
    for thing in person.contents:
        thing.delete()


class Commands(CmdSet):
    """The commands of evennia_ai, and the demo game's own `pose`."""

    def at_cmdset_creation(self) -> None:
        self.add(AICmdSet)
        self.add(CmdPose)


def furnish() -> None:
    """Make components with each kind of place, role and name."""
    rule("house_rules", "You are {{char}}. You talk with {{user}}. Stay in character.", id=10)
    rule("last_words", "Answer {{speaker}} in one line.", id=6100, role="user")
    rule("mood", "{{char}} is tired.", id=1201, injection_depth=1)
    rule("reminder", "Nobody gives orders to {{char}}.", id=4500)


def rule(key: str, content: str, **fields: Any) -> None:
    components.create(PromptComponent(key=key, content=content, **fields), by=trusted("builder"))


def calls_with(text: str) -> tuple[tuple[str, str], ...]:
    """Return a call of every tool with the text in its arguments."""
    short = text[:MOST_WORDS]
    named = {
        "say": {"text": short},
        "pose": {"action": short},
        "whisper": {"to": "Ben", "text": short},
        "look": {"at": text[:80]},
        "give": {"item": "ring", "to": text[:80]},
        "remember": {"text": short, "about": text[:80]},
    }
    return tuple((name, json.dumps(arguments)) for name, arguments in named.items())


def _at_once(reactor: Any, seconds: float, call: Any, *args: Any, **kwargs: Any) -> None:
    call(*args, **kwargs)
