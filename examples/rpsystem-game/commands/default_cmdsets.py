"""Evennia's command sets; a character also has the commands of rpsystem and evennia_ai."""

from evennia import default_cmds
from evennia.contrib.rpg.rpsystem import RPSystemCmdSet

from evennia_ai import AICmdSet


class CharacterCmdSet(default_cmds.CharacterCmdSet):
    """The commands of a character."""

    def at_cmdset_creation(self):
        """Add the commands of rpsystem, then those of evennia_ai."""
        super().at_cmdset_creation()
        self.add(RPSystemCmdSet)
        self.add(AICmdSet)


class AccountCmdSet(default_cmds.AccountCmdSet):
    """The commands of an account."""


class UnloggedinCmdSet(default_cmds.UnloggedinCmdSet):
    """The commands before a login."""


class SessionCmdSet(default_cmds.SessionCmdSet):
    """The commands of a connection."""
