"""The commands of a character, combined once instead of for each character.

When a command is added to a set of Evennia, it is compared with all commands in the set. For a
character's hundred commands that takes longer than most tests, and each test makes several
characters.
"""

from functools import cache

from commands import default_cmdsets


class CharacterCmdSet(default_cmdsets.CharacterCmdSet):
    """The commands of a character: new copies of the combined commands, in the same order."""

    def at_cmdset_creation(self) -> None:
        """Add copies of the combined commands. A hook of Evennia."""
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
