"""The commands of players: `talk` to an NPC, `show` it something, `read` a text."""

from typing import Any, Final

from evennia_ai.commands.base import CommandError, StrictCommand
from evennia_ai.commands.naming import npc_here
from evennia_ai.npc.senses.happenings import item_name
from evennia_ai.npc.senses.presence import HasMind
from evennia_ai.npc.senses.text import plain_name
from evennia_ai.npc.speech.output import show_item, talk_to
from evennia_ai.npc.writings import Writing

OF_CONTRIB: Final = "at_talked_to"
"""The method by which Evennia's contrib `llm` tells its NPCs what is said. Our command replaces its
command `talk`, which has the same key."""
MOST_OF_NAME: Final = 4
"""The most words of a name in `talk <name> <text>`, where nothing marks its end."""


class CmdRead(StrictCommand):
    """
    Read a letter, a book or something else with words on it

    Usage:
      read <thing>

    Examples:
      read letter
      read low water at dawn
      read sign

    You can read what you carry and what lies here. If a thing has no written
    text, you see what it looks like.
    """

    key = "read"
    locks = "cmd:all()"
    help_category = "General"
    auto_help = True
    verbs = {"": "read"}

    def read(self) -> None:
        """Show what the thing says."""
        name = self.args.strip()
        if not name:
            raise CommandError("Usage: read <thing>")
        thing = self._thing(name)
        if not thing.access(self.caller, "read", default=True):
            raise CommandError(f"You cannot read {self._name(thing)}.")
        if not isinstance(thing, Writing):
            self.msg(text=(self.caller.at_look(thing), {"type": "look"}))
            return
        by = f", by {thing.writer_name}" if thing.writer_name else ""
        self.show([f"{self._name(thing)}{by}", "", thing.written_text])

    def _thing(self, name: str) -> Any:
        """Return the thing of this name. Among things that look alike, any will do."""
        found = self._seen(self.caller.search(name, quiet=True))
        if not found:
            raise CommandError(f"There is no '{name}' here to read.")
        names = sorted({self._name(thing) for thing in found})
        if len(names) > 1:
            raise CommandError(f"'{name}' could be {', '.join(names)}; name one of them.")
        return found[0]

    def _seen(self, found: list[Any] | None) -> list[Any]:
        """Return the things that the caller may see."""
        return [thing for thing in found or () if thing.access(self.caller, "view", default=True)]

    def _name(self, thing: Any) -> str:
        return plain_name(thing.get_display_name(self.caller))


class CmdShow(StrictCommand):
    """
    Show something you carry to a character who is here

    Usage:
      show <thing> to <name>
      show <thing> = <name>

    Examples:
      show map to oren
      show old coin = oren

    The character sees what the thing looks like. Everybody here sees that you
    show it. You keep it; to give it away, use give.
    """

    key = "show"
    locks = "cmd:all()"
    help_category = "General"
    auto_help = True
    rhs_split = ("=", " to ")
    verbs = {"": "show_thing"}

    def show_thing(self) -> None:
        """Show the thing to the NPC that was named."""
        name, whom = self.both("show <thing> to <name>")
        if self.caller.location is None:
            raise CommandError("You are in no room, so nobody can see it.")
        item = self._carried(name)
        npc = npc_here(self.caller, whom)
        seen = show_item(self.caller, item, npc)
        their_name = plain_name(npc.get_display_name(self.caller))
        self.say(f"You show {item_name(self.caller, item)} to {their_name}.")
        if not seen:
            self.say(f"{their_name} does not notice.")

    def _carried(self, name: str) -> Any:
        """Return the carried thing of this name. Among things that look alike, any will do."""
        found = self.caller.search(name, location=self.caller, quiet=True)
        if not found:
            raise CommandError(f"You do not carry '{name}'.")
        names = sorted({plain_name(item.get_display_name(self.caller)) for item in found})
        if len(names) > 1:
            raise CommandError(f"'{name}' could be {', '.join(names)}; name one of them.")
        return found[0]


class CmdTalk(StrictCommand):
    """
    Say something to a character who is here

    Usage:
      talk <name> = <text>
      talk <name> <text>

    Examples:
      talk oren = Have you seen the ferry?
      talk ferryman = Good evening.
      talk oren hello

    You say it aloud, so everybody here can hear it. The character you name knows
    that you mean them. To be heard by nobody else, use whisper.
    """

    key = "talk"
    locks = "cmd:all()"
    help_category = "General"
    auto_help = True
    verbs = {"": "talk"}

    def talk(self) -> None:
        """Say the text aloud to the NPC that was named."""
        npc, text = self._to_whom()
        if not talk_to(self.caller, npc, text):
            raise CommandError("You cannot say that.")
        if not isinstance(npc, HasMind):
            getattr(npc, OF_CONTRIB)(text, self.caller)

    def _hearer(self, name: str) -> Any:
        """Return the NPC of this name here: one of ours, or one of Evennia's contrib."""
        return npc_here(self.caller, name, hook=OF_CONTRIB)

    def _to_whom(self) -> tuple[Any, str]:
        """Return the NPC and what is said to it: the text after "=", else after its name."""
        words = self.args.removeprefix("to ").split()
        if "=" in self.args or len(words) < 2:
            name, text = self.both("talk <name> = <text>")
        else:
            name, text = "", ""
        if self.caller.location is None:
            raise CommandError("You are in no room, so nobody can hear you.")
        try:
            return (self._hearer(name), text) if name else self._behind_name(words)
        except CommandError:
            if len(name.split()) < 2:
                raise
            return self._behind_name(words)

    def _behind_name(self, words: list[str]) -> tuple[Any, str]:
        """Split words without a "=" into the longest name of an NPC here and the text after it."""
        for many in range(min(MOST_OF_NAME, len(words) - 1), 1, -1):
            try:
                found = self._hearer(" ".join(words[:many]))
            except CommandError:
                continue
            return found, " ".join(words[many:])
        return self._hearer(words[0]), " ".join(words[1:])
