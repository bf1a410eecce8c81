"""The command `read`: open a letter or a book, or look at what is written on a thing."""

from typing import Any

from evennia_ai.commands.strict import CommandError, StrictCommand
from evennia_ai.game.text import plain_name
from evennia_ai.game.writings import Writing


class CmdRead(StrictCommand):
    """
    Read a letter, a book or something else with words on it

    Usage:
      read <thing>

    Examples:
      read letter
      read low water at dawn
      read sign

    You can read what you carry and what lies here. Of a thing that nobody
    wrote you see what it looks like.
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
        self.show(f"{self._name(thing)}{by}\n\n{thing.written_text}")

    def _thing(self, name: str) -> Any:
        """The thing that is meant; of several of one name any is as good."""
        found = self._seen(self.caller.search(name, quiet=True))
        if not found:
            raise CommandError(f"There is no '{name}' here to read.")
        names = sorted({self._name(thing) for thing in found})
        if len(names) > 1:
            raise CommandError(f"'{name}' could be {', '.join(names)}; name one of them.")
        return found[0]

    def _seen(self, found: list[Any] | None) -> list[Any]:
        """Those of the things that the caller may see."""
        return [thing for thing in found or () if thing.access(self.caller, "view", default=True)]

    def _name(self, thing: Any) -> str:
        return plain_name(thing.get_display_name(self.caller))
