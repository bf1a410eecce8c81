"""Evennia's default command sets. Characters also get the commands of evennia_ai."""

from evennia.commands.default.cmdset_account import AccountCmdSet as DefaultAccountCmdSet
from evennia.commands.default.cmdset_character import CharacterCmdSet as DefaultCharacterCmdSet
from evennia.commands.default.cmdset_session import SessionCmdSet as DefaultSessionCmdSet
from evennia.commands.default.cmdset_unloggedin import UnloggedinCmdSet as DefaultUnloggedinCmdSet

from commands.evening import CmdEvening, CmdKnock
from commands.pose import CmdPose
from evennia_ai import AICmdSet


class CharacterCmdSet(DefaultCharacterCmdSet):
    """The commands of a character that is being played."""

    def at_cmdset_creation(self) -> None:
        """Add the commands of evennia_ai, a safe `pose`, and those of the demo's evening.

        Your own game needs only the line with the commands of evennia_ai.
        """
        super().at_cmdset_creation()
        self.add(AICmdSet)
        self.add(CmdPose)
        self.add(CmdEvening)
        self.add(CmdKnock)


class AccountCmdSet(DefaultAccountCmdSet):
    """The commands of a logged-in account."""


class UnloggedinCmdSet(DefaultUnloggedinCmdSet):
    """The commands that work before somebody logs in."""


class SessionCmdSet(DefaultSessionCmdSet):
    """The commands of a connection, whether logged in or not."""
