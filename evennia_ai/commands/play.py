"""The commands of players: `talk` to, `ask` and `tell` an NPC, `show` it a thing, `read` a text."""

import re
from collections.abc import Mapping
from copy import copy
from typing import Any, ClassVar, Final

from evennia.commands.cmdhandler import cmdhandler

from evennia_ai.commands.base import CommandError, PlayersCommand, Run
from evennia_ai.commands.naming import SeveralCalledSoError, npc_here
from evennia_ai.engine.text.phrases import Phrase
from evennia_ai.npc.senses.choices import has_opted_out
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


class CmdRead(PlayersCommand):
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
    verbs = {"": "read"}

    def read(self) -> None:
        """Show what the thing says."""
        name = self.args.strip()
        if not name:
            raise CommandError(Phrase("Usage: {usage}", usage="read <thing>"))
        thing = self._thing(name)
        if not thing.access(self.caller, "read", default=True):
            raise CommandError(Phrase("You cannot read {thing}.", thing=self._name(thing)))
        if not isinstance(thing, Writing):
            self.msg(text=(self.caller.at_look(thing), {"type": "look"}))
            return
        title: str | Phrase = self._name(thing)
        if thing.writer_name:
            title = Phrase("{thing}, by {writer}", thing=title, writer=thing.writer_name)
        self.show([title, "", thing.written_text])
        thing.at_read(self.caller)

    def _thing(self, name: str) -> Any:
        """Return the thing of this name. Among things that look alike, any will do."""
        found = self._seen(self.caller.search(name, quiet=True))
        if not found:
            raise CommandError(Phrase("There is no '{name}' here to read.", name=name))
        names = sorted({self._name(thing) for thing in found})
        if len(names) > 1:
            raise _could_be(name, names)
        return found[0]

    def _seen(self, found: list[Any] | None) -> list[Any]:
        """Return the things that the caller may see."""
        return [thing for thing in found or () if thing.access(self.caller, "view", default=True)]

    def _name(self, thing: Any) -> str:
        return plain_name(thing.get_display_name(self.caller))


class CmdShow(PlayersCommand):
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
    rhs_split = ("=", " to ")
    verbs = {"": "show_thing"}

    def show_thing(self) -> None:
        """Show the thing to the NPC that was named."""
        name, whom = self.both("show <thing> to <name>")
        if self.caller.location is None:
            raise CommandError(Phrase("You are in no room, so nobody can see it."))
        item = self._carried(name)
        npc = npc_here(self.caller, whom)
        seen = show_item(self.caller, item, npc)
        their_name = plain_name(npc.get_display_name(self.caller))
        thing = item_name(self.caller, item)
        self.say(Phrase("You show {item} to {npc}.", item=thing, npc=their_name))
        if not seen:
            self.say(Phrase("{npc} does not notice.", npc=their_name))

    def _carried(self, name: str) -> Any:
        """Return the carried thing of this name. Among things that look alike, any will do."""
        found = self.caller.search(name, location=self.caller, quiet=True)
        if not found:
            raise CommandError(Phrase("You do not carry '{name}'.", name=name))
        names = sorted({plain_name(item.get_display_name(self.caller)) for item in found})
        if len(names) > 1:
            raise _could_be(name, names)
        return found[0]


def _could_be(name: str, names: list[str]) -> CommandError:
    """Return the error for a name that several things have."""
    several = ", ".join(names)
    return CommandError(
        Phrase("'{name}' could be {names}; name one of them.", name=name, names=several)
    )


class CmdTalk(PlayersCommand):
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
    verbs = {"": "talk"}
    usage: ClassVar[str] = "talk <name> = <text>"

    def talk(self) -> None:
        """Say the text aloud to the NPC that was named."""
        self._say_to(*self._to_whom())

    def _say_to(self, npc: Any, text: str) -> None:
        if not isinstance(npc, HasMind) and has_opted_out(self.caller):
            raise CommandError(
                Phrase(
                    "You typed ai off, so {npc} does not hear you. To be heard again: ai on",
                    npc=plain_name(npc.get_display_name(self.caller)),
                )
            )
        if not talk_to(self.caller, npc, text):
            raise CommandError(Phrase("You cannot say that."))
        if not isinstance(npc, HasMind):
            getattr(npc, OF_CONTRIB)(text, self.caller)

    def _hearer(self, name: str) -> Any:
        """Return the NPC of this name here: one of ours, or one of Evennia's contrib."""
        return npc_here(self.caller, name, hook=OF_CONTRIB)

    def _to_whom(self) -> tuple[Any, str]:
        """Return the NPC and what is said to it: the text after "=", else after its name."""
        words = self.args.removeprefix("to ").split()
        if "=" in self.args or len(words) < 2:
            name, text = self.both(self.usage)
        else:
            name, text = "", ""
        if self.caller.location is None:
            raise CommandError(Phrase("You are in no room, so nobody can hear you."))
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
        return self._hearer(words[0].rstrip(",:")), " ".join(words[1:])


_ENDS: Final = " .?!"


class CmdAsk(CmdTalk):
    """
    Ask or tell a character who is here something

    Usage:
      ask <name> about <thing>
      ask <name> for <thing>
      ask <name> to <do something>
      ask <name> <question>
      tell <name> <text>

    Examples:
      ask oren about the ferry
      ask oren when does the ferry leave?
      tell oren good evening

    You say it aloud, like talk: "ask oren about the ferry" says "Tell me about
    the ferry." If nobody here has this name, ask and tell do what they
    otherwise do in this game.
    """

    # The blank makes these names differ from commands of the game with the same word. Evennia keeps
    # both, and prefers the longer name when the line is typed.
    key = "ask "
    aliases = ["tell "]
    auto_help_display_key = "ask"
    arg_regex = None
    locks = "cmd:all()"
    verbs = {"": "ask"}
    usage = "ask <name> about <thing>, or: tell <name> <text>"

    _SAID: ClassVar[Mapping[str, tuple[tuple[re.Pattern[str], str], ...]]] = {
        "ask": (
            (re.compile(r"about (.+)", re.IGNORECASE | re.DOTALL), "Tell me about {}."),
            (re.compile(r"for (.+)", re.IGNORECASE | re.DOTALL), "May I have {}?"),
            (re.compile(r"to (.+)", re.IGNORECASE | re.DOTALL), "Please {}."),
        ),
        "tell": (
            (re.compile(r"about (.+)", re.IGNORECASE | re.DOTALL), "Let me tell you about {}."),
            (re.compile(r"that (.+)", re.IGNORECASE | re.DOTALL), "{}."),
            (re.compile(r"to (.+)", re.IGNORECASE | re.DOTALL), "Please {}."),
        ),
    }
    """By command: what may follow the name, and what is then said."""

    def func(self) -> Run:
        """Say it to the NPC that is meant. If none is, run the game's own command of this name."""
        own = None if self._means_npc() else self._own_command()
        if own is None:
            return super().func()
        cmdhandler(
            self.caller,
            f" {self.raw}",
            callertype="object",
            session=self.session,
            cmdobj=copy(own),
            cmdobj_key=self._typed,
            cmdset=self.cmdset,
            account=self.account,
        )
        return None

    def ask(self) -> None:
        """Say what was asked or told aloud to the NPC that was named."""
        npc, text = self._to_whom()
        self._say_to(npc, self._in_words(text))

    @property
    def _typed(self) -> str:
        """Return the word that was typed: "ask" or "tell"."""
        return str(self.cmdstring).strip()

    def _means_npc(self) -> bool:
        """True if the line names an NPC here, or several."""
        try:
            if len(self.args.split()) == 1:
                self._hearer(self.args.strip())
            else:
                self._to_whom()
        except SeveralCalledSoError:
            return True
        except CommandError:
            return False
        return True

    def _hearer(self, name: str) -> Any:
        """Return the NPC of this name here.

        If the game has its own command, such as `tell` for private messages, only a whole name
        counts: such a message must not be said aloud because an NPC's name begins like a player's.
        """
        is_exact = self._own_command() is not None
        return npc_here(self.caller, name, hook=OF_CONTRIB, exact=is_exact)

    def _own_command(self) -> Any:
        """Return the game's own command of this name, None if the caller has none."""
        commands = (one for one in self.cmdset or () if one == self._typed)
        return next((one for one in commands if one.access(self.caller, "cmd")), None)

    def _in_words(self, text: str) -> str:
        """Return what is said aloud if this follows the name."""
        text = text.strip()
        if len(text) > 1 and text[0] == text[-1] == '"':
            return text[1:-1]
        for pattern, said in self._SAID[self._typed]:
            if found := pattern.fullmatch(text):
                words = said.format(found[1].rstrip(_ENDS))
                return words[0].upper() + words[1:]
        is_open = self._typed == "ask" and text[-1:].isalnum()
        return f"{text[0].upper()}{text[1:]}{'?' if is_open else ''}"
