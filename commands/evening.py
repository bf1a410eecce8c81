"""Commands of the demo's evening: what the tide does, what one has found out, and knocking."""

import re
from typing import Final

from evennia.commands.default.muxcommand import MuxCommand

from evennia_ai.npc.speech.output import escape_block
from world.evening import FOUND, begin, content, found_by, learn, minutes_left, part_after, part_now
from world.evening import TAG as DEMO_TAG

_NUMBERS: Final = {"one": 1, "once": 1, "1": 1, "two": 2, "twice": 2, "2": 2}
_KNOCKS: Final = [2, 1]
_WORDS: Final = re.compile(r"\w+")


class CmdEvening(MuxCommand):
    """
    See what the tide does, and what you have found out

    Usage:
      evening
      evening/again     forget all that you have found out, and begin anew
      evening/on        let the next part of the evening begin (builders)

    The village has one evening, and then another one. It waits for nobody, but
    only passes while somebody is here.
    """

    key = "evening"
    aliases = ("tide", "found")
    switch_options = ("again", "on")
    locks = "cmd:all()"
    help_category = "General"

    def func(self) -> None:
        """Show the evening, move it on, or let the character forget."""
        if "on" in self.switches:
            if not self.caller.check_permstring("Builder"):
                self.caller.msg("Only builders can hurry the tide. It will turn by itself.")
                return
            begin(part_after(part_now()))
        elif "again" in self.switches:
            self.caller.tags.clear(category=FOUND)
            self.caller.msg("You have just come ashore, and nobody has told you anything.")
        self.caller.msg(escape_block("\n".join(self._lines())))

    def _lines(self) -> list[str]:
        now, then = part_now(), part_after(part_now())
        minutes = minutes_left()
        about = "about a minute" if minutes == 1 else f"about {minutes} minutes"
        lines = [f"It is {now.name}. In {about}: {then.name}.", ""]
        known = [content().findings[one] for one in found_by(self.caller)]
        if not known:
            return [*lines, "You have found out nothing yet. Look at things, and ask about them."]
        return [*lines, "You have found out:", *(f"  - {text}" for text in known)]


class CmdKnock(MuxCommand):
    """
    Knock on a door

    Usage:
      knock
      knock <how often>, then <how often>

    Example:
      knock once, then once
    """

    key = "knock"
    locks = "cmd:all()"
    help_category = "General"

    def func(self) -> None:
        """Knock on the oak door at the fourteenth step, or on nothing."""
        place = self.caller.location
        if place is None or not place.tags.has("room:fourteenth", category=DEMO_TAG):
            self.caller.msg("There is nothing here to knock on that would mind.")
            return
        words = _WORDS.findall(self.args.casefold())
        knocks = [_NUMBERS[word] for word in words if word in _NUMBERS]
        if not knocks:
            self.caller.msg("You knock. Nothing. It seems to be a matter of how often, and when.")
        elif knocks != _KNOCKS:
            self.caller.msg("You knock. Behind the oak somebody stops counting, and waits.")
        elif "spoilt" in found_by(self.caller):
            self.caller.msg("You knock. Behind the oak somebody goes away, quietly.")
        else:
            self.caller.msg("You knock: twice, a pause, and once. (oak door)")
            learn(self.caller, "knock")
