"""AICmdSet: every command of evennia_ai, added to a game by one line."""

from evennia.commands.cmdset import CmdSet

from evennia_ai.commands.ai.command import CmdAI
from evennia_ai.commands.lorekeeper import CmdLorekeeper
from evennia_ai.commands.persona import CmdPersona
from evennia_ai.commands.play import CmdAsk, CmdRead, CmdShow, CmdTalk
from evennia_ai.commands.privacy import CmdIgnore, CmdLanguage, CmdOwnData, CmdPrivacy, CmdReport
from evennia_ai.commands.setup.card.command import CmdCard
from evennia_ai.commands.setup.component import CmdComponent
from evennia_ai.commands.setup.knowledge.command import CmdKnowledge
from evennia_ai.commands.setup.lore.command import CmdLore
from evennia_ai.commands.setup.note import CmdNote
from evennia_ai.commands.setup.preset.command import CmdPreset
from evennia_ai.commands.setup.regex import CmdRegex


class AICmdSet(CmdSet):
    """All commands of evennia_ai. None of them replaces a command of Evennia."""

    key = "evennia_ai"

    def at_cmdset_creation(self) -> None:
        """Add the commands. A hook of Evennia."""
        for command in (
            CmdComponent,
            CmdCard,
            CmdLore,
            CmdLorekeeper,
            CmdKnowledge,
            CmdNote,
            CmdPreset,
            CmdRegex,
            CmdAI,
            CmdTalk,
            CmdAsk,
            CmdShow,
            CmdRead,
            CmdPersona,
            CmdPrivacy,
            CmdLanguage,
            CmdOwnData,
            CmdReport,
            CmdIgnore,
        ):
            self.add(command())
