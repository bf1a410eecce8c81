"""The command `card`: character cards, where they come from, what they may do, who plays them.

The command only translates: what a card is and what becomes of it is for `evennia_ai.cards`, what
is kept for the store. The bare command reads; every change needs its own switch. An import changes
nothing until a builder approves it, and an approved card may only what was granted to it by name.
"""

from evennia_ai.cards.report.import_report import report_lines
from evennia_ai.commands.background_work import Steps, waits
from evennia_ai.commands.setup.card import shown
from evennia_ai.commands.setup.card.assigning import CardAssign
from evennia_ai.commands.setup.card.grants import CardGrants, saw_card
from evennia_ai.commands.setup.card.importing import CardImports
from evennia_ai.commands.setup.card.reading import reader
from evennia_ai.commands.setup.card.revisions import CardExport, CardRevisions
from evennia_ai.commands.setup.card.shown import card_named, plain_name
from evennia_ai.commands.strict import BUILDER_LOCK, CommandError
from evennia_ai.settings.conf import conf
from evennia_ai.store.authored import card_revisions as log


class CmdCard(CardImports, CardGrants, CardAssign, CardExport, CardRevisions):
    """
    Import character cards, say what they may do, and give them to NPCs

    Usage:
      card
      card <name>
      card/import [<file> [= <name>]]
      card/report <name>[/<number>]
      card/approve <name>[/<number>] [= <grant>, <grant>...]
      card/reject <name>
      card/grant <name> [= <grant>, <grant>...]
      card/revoke <name> = <grant>, <grant>...
      card/assign <npc> = <card>
      card/unassign <npc>
      card/greeting <npc> [= <number> | off]
      card/export <name>[/<number>] [= json | png | charx [with v2]]
      card/revisions <name>
      card/revert <name> = <number>
      card/remove <name>

    Switches:
      import    - read a card from a file of the game's card folder and report
                  on it: JSON, PNG, APNG or CHARX, also behind a JPEG picture;
                  it waits for approval. Without a file: list the files there.
                  The card keeps its own name unless you give another
      report    - show the report of an import, or of any revision, again
      approve   - put an import in force, with these grants and no others. The
                  number is needed where several wait, or where the report
                  you were shown last was of another one
      reject    - let no import of this name wait any longer
      grant     - let the card in force do more; without a value: tell of all
                  grants, which it has, from whom, and which it could use
      revoke    - take grants from it
      assign    - let an NPC play a card in force, from its next turn on
      unassign  - let it play none
      greeting  - let an NPC open new conversations with a greeting of its
                  card; without a value: list them, 0 is the first message
      export    - write a card into the card folder, as a new file; 'png with
                  v2' adds the copy for programs that know V2 only
      revisions - who imported, approved, granted and changed what, and when
      revert    - put an earlier revision in force again, with its grants
      remove    - let it be in force no longer, where nobody plays it

    Examples:
      card/import
      card/import oren.json = Ferryman
      card/report Ferryman
      card/approve Ferryman = fields, positions
      card/grant Ferryman = lore_budget
      card/assign oren = Ferryman
      card/greeting oren = 1
      card/export Ferryman = png with v2

    A card says who an NPC is. Without a grant all its texts stay inside the
    conversation, as if a user had said them; its system prompt is left out. It
    never replaces the game's own rules. To grant is to vouch: read the report
    first. Another file of the same name waits beside the card in force, and
    what that was granted is not carried over.

    Grants: fields, system_prompt, after_history, positions, roles, lore_budget
    and regex; card/grant <name> tells what each allows.
    """

    key = "card"
    locks = BUILDER_LOCK.format(key="card")
    help_category = "Building"
    auto_help = True
    verbs = {
        "": "look",
        "import": "import_file",
        "report": "report",
        "approve": "approve",
        "reject": "reject",
        "grant": "grant",
        "revoke": "revoke",
        "assign": "assign",
        "unassign": "unassign",
        "greeting": "greeting",
        "export": "export",
        "revisions": "revisions",
        "revert": "revert",
        "remove": "remove",
    }

    @waits
    def look(self) -> Steps:
        """List the cards, or show one: who answers for it, and what stands where in the prompt."""
        if self.rhs is not None:
            raise CommandError(
                f"To give a card to an NPC: card/assign {self.lhs} = {self.rhs}."
                " Nothing was changed."
            )
        if not self.lhs:
            self.show("\n".join(shown.listed()))
            return
        card = card_named(plain_name(self.lhs, "card <name>"))
        _, file = log.revision(card.name, card.revision)
        cards = reader(conf())
        self.show("\n".join(shown.card_state(card)))
        read = yield self.worked(
            f"Reading card {card.name}",
            lambda progress: cards.stored(file, card.grants, progress),
        )
        self.show("\n".join(report_lines(read.report)))
        saw_card(self.caller, card)
