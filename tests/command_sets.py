"""The commands of a character in play, put together once and not anew for each character.

A command set of Evennia compares each command that is added with all that are there. For a
character's hundred that takes longer than most tests, and each test makes a few characters.
"""

from functools import cache

from commands import default_cmdsets


class CharacterCmdSet(default_cmdsets.CharacterCmdSet):
    """What a character in play can do: the same commands, each of them new, in the same order."""

    def at_cmdset_creation(self) -> None:
        """Evennia's hook: have the commands that the game's own set comes to have."""
        once = _once()
        self.commands = [self._new(command) for command in once.commands]
        named = {command.key: command for command in self.commands}
        self.system_commands = [named[command.key] for command in once.system_commands]

    def _new(self, command):
        made = type(command)()
        made.cmdset_source = self
        made.obj = self.cmdsetobj
        return made


@cache
def _once() -> default_cmdsets.CharacterCmdSet:
    return default_cmdsets.CharacterCmdSet()
