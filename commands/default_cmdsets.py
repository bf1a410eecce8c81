"""Evennia's default command sets; characters also get those of evennia_ai."""

from evennia.commands.default.cmdset_account import AccountCmdSet as DefaultAccountCmdSet
from evennia.commands.default.cmdset_character import CharacterCmdSet as DefaultCharacterCmdSet
from evennia.commands.default.cmdset_session import SessionCmdSet as DefaultSessionCmdSet
from evennia.commands.default.cmdset_unloggedin import UnloggedinCmdSet as DefaultUnloggedinCmdSet

from commands.pose import CmdPose
from evennia_ai import AICmdSet


class CharacterCmdSet(DefaultCharacterCmdSet):
    """What a character in play can do."""

    def at_cmdset_creation(self) -> None:
        """Add the commands of evennia_ai, the one line a game of your own needs; a safe pose."""
        super().at_cmdset_creation()
        self.add(AICmdSet)
        self.add(CmdPose)


class AccountCmdSet(DefaultAccountCmdSet):
    """What a logged-in account can do."""


class UnloggedinCmdSet(DefaultUnloggedinCmdSet):
    """What somebody can do before logging in."""


class SessionCmdSet(DefaultSessionCmdSet):
    """What a bare connection can do."""
