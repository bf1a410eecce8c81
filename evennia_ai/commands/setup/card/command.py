"""The command `card`: character cards, where they come from, what they may do, who plays them.

The command only translates. `evennia_ai.formats.cards` reads and writes cards, and the store keeps
them. Without a switch the command only reads. An import changes nothing until a builder approves
it, and an approved card may do only what was granted to it by name.
"""

import re
import time
from collections.abc import Iterator
from typing import Any, Final

from evennia_ai.commands.background_work import Steps, waits
from evennia_ai.commands.base import BUILDER_LOCK, CommandError, alike, and_more
from evennia_ai.commands.folder import shown_path
from evennia_ai.commands.naming import is_npc_name, npc_named, whole_number
from evennia_ai.commands.setup.card.files import written
from evennia_ai.commands.setup.card.writing import CardWriting
from evennia_ai.commands.setup.imported import may_in_words, size_in_words
from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.engine.prompt.components import of_npc
from evennia_ai.engine.text.columns import WIDTH, clip_text, first_line, wrap_text
from evennia_ai.formats.cards.card import Card, greetings
from evennia_ai.formats.cards.exporting import FORM_OF, FORMS, Form
from evennia_ai.formats.cards.loading import load_card
from evennia_ai.formats.cards.writing import text_of
from evennia_ai.npc.senses.presence import NPC
from evennia_ai.npc.views.parse_cache import parsed_card
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.authored import cards as store
from evennia_ai.store.authored.cards import (
    CardAssignment,
    StoredCard,
    card_or_none,
    get_card,
)

_WITH_NUMBER: Final = re.compile(r"[^/]*/\s*-?[0-9]+")
_MOST_GREETINGS: Final = 60
_MOST_LEFT_OUT: Final = 12
_EXPORT: Final = "card/export <card>[/<number>] [= json | png | charx [with v2]]"


class CmdCard(CardWriting):
    """
    Write or import character cards, and let NPCs play them

    Usage:
      card
      card <name>[/<field>]
      card/<switch> <name> [= <value>]

    A card says who an NPC is.

    Switches:
      create    - [= <description>]: create a card of your own; NPCs can play it
                  at once
      edit      - <name>/<field> = <text>: write one field of a card; without a
                  text the editor opens; without a field: list all fields
      spawn     - [= <name of the NPC>]: create an NPC in your room that plays a
                  card
      assign    - <card> = <npc>: let an NPC play the card, from its next turn on
      unassign  - <card> = <npc>: let the NPC play no card
      greeting  - <npc> [= <number> | off]: let an NPC open new conversations
                  with a greeting of its card; 0 is the first message; without a
                  value: list them
      revisions - [= <number>]: show who changed it, and when; with a number:
                  show what that revision changed
      revert    - <number>: go back to an earlier revision and its grants; you
                  see what would change and are asked first
      remove    - remove the card, if no NPC plays it; revert brings it back

    Examples:
      card/create Mira = Mira sells herbs and knows every cure but her own.
      card/edit Mira/greeting/1 = Careful, that one bites.
      card/edit Mira/depth_prompt = Mira is in a hurry today.
      card Mira/depth_prompt
      card/spawn Mira

    # subtopics

    ## fields

    The fields of a card: name, nickname, description, personality, scenario,
    first_message, greeting/<number>, group_greeting/<number>, examples,
    system_prompt, post_history, depth_prompt, depth_prompt/depth,
    depth_prompt/role, creator_notes, creator, version and tags.

    To add a greeting, use the next free number; an empty text removes one. An
    edit keeps the grants of the card. A card that was created here has all
    grants.

    Examples:
      card/edit Mira
      card/edit Mira/tags = herbs, quay
      card/edit Mira/greeting/2 = You again.
      card/edit Mira/greeting/2 =

    ## importing

    Read cards from files, and write them into files.

    Switches:
      import    - [<file> [= <name>]]: read a card from a file of the game's card
                  folder and show a report on it. The file may be JSON, PNG, APNG
                  or CHARX, also CHARX after a JPEG picture. The card waits for
                  approval and keeps its own name unless you give another.
                  Without a file: list the files
      report    - <name>[/<number>]: show the report of an import or of any
                  revision again
      approve   - <name>[/<number>] [= <grant>, <grant>...]: approve an import,
                  with the grants that you name and no others. Give its number if
                  several imports wait, or if you saw the report of another one
                  last
      reject    - reject all waiting imports of this name
      export    - <name>[/<number>] [= json | png | charx [with v2]]: write a
                  card into a new file of the card folder; 'png with v2' adds a
                  copy for programs that know only V2 cards
      despawn   - <npc>: delete an NPC that plays a card, after a question; the
                  card stays

    Examples:
      card/import
      card/import oren.json = Ferryman
      card/report Ferryman
      card/approve Ferryman = fields, positions
      card/assign Ferryman = oren
      card/greeting oren = 1
      card/export Ferryman = png with v2

    If you import another file of the same name, it waits, and the grants of the
    approved card are not given to it.

    ## grants

    An imported card may do little at first: all its texts stay inside the
    conversation, as if a user had said them, and its system prompt is left out.
    Grants allow it more. You answer for what you grant, so read the report
    first. No card can replace the game's own rules.

    Grants: fields, system_prompt, after_history, positions, roles, lore_budget
    and regex; card/grant <name> says what each allows.

    Switches:
      grant     - [= <grant>, <grant>...]: grant the card more; without a value:
                  list all grants, who gave them, and which the card could use
      revoke    - <grant>, <grant>...: take grants from the card

    Examples:
      card/grant Ferryman
      card/grant Ferryman = lore_budget
      card/revoke Ferryman = lore_budget
    """

    key = "card"
    locks = BUILDER_LOCK.format(key="card")
    help_category = "Building"
    auto_help = True
    verbs = {
        "": "look",
        "create": "create",
        **alike("edit spawn despawn"),
        "import": "import_file",
        **alike(
            "report approve reject grant revoke assign unassign greeting export "
            "revisions revert remove"
        ),
    }
    without_value = frozenset({"", "report", "reject", "despawn", "remove"})
    thing = "card"

    def names_something(self, text: str) -> bool:
        try:
            self.card_and_field(text)
        except EvenniaAIError:
            return is_npc_name(self.caller, text)
        return True

    def line_for_value(self) -> str:
        if is_npc_name(self.caller, self.rhs):
            return f"card/assign {self.lhs} = {self.rhs}"
        if store.CARDS.known_name(self.rhs) in store.CARDS.list_keys():
            return f"card/assign {self.rhs} = {self.lhs}"
        return f"card/edit {self.lhs} = {self.rhs}"

    @waits
    def look(self) -> Steps:
        """List the cards, or show one: who approved it, its grants and its texts."""
        if not self.lhs:
            self.show(self.listed())
            return
        if "/" in self.lhs and not _WITH_NUMBER.fullmatch(self.lhs):
            card, field = self.card_and_field(self.lhs)
            if field is not None:
                said = text_of(parsed_card(card), field)
                self.show([f"{field} of card {card.name}:", said or "(nothing)"])
                return
        card = self.thing_named(self.plain_name(self.lhs, "card <name>"))
        facts = [
            f"  sha256 of the file  {card.sha256}",
            f"  played by           {self.counts_in(card.name)}",
        ]
        self.show(self.state(card, facts=facts, source=f", from a {card.carrier} file"))
        read = yield self.read(card)
        self.show(read.lines)
        self.saw_file(card.name, card.sha256)

    @waits
    def assign(self) -> Steps:
        """Let an NPC play an approved card.

        The card is read first, so an unreadable one is refused.
        """
        name, npc = self._card_and_npc("assign")
        yield self._read(get_card(name))
        _check_there(npc)
        before = store.assignment_of(npc.ai.ref)
        card = store.CARDS.assign(name, of_npc(npc.ai.ref), by=self.actor)
        self.read_ahead(card)
        instead = f", no longer {before.card}" if before and before.card != name else ""
        self.say(
            f"{npc.key} plays the card {card.name} (revision {card.revision},"
            f" {may_in_words(card.grants)}) from now on{instead}. It opens with no greeting;"
            f" card/greeting {npc.key} lists the greetings."
        )

    def unassign(self) -> None:
        name, npc = self._card_and_npc("unassign")
        before = _played(npc)
        if before.card != name:
            raise CommandError(
                f"{npc.key} plays the card {before.card}, not {name}. Nothing was changed.",
                instead=f"card/unassign {before.card} = {self.rhs}",
            )
        store.CARDS.unassign(of_npc(npc.ai.ref), by=self.actor)
        self.say(f"{npc.key} no longer plays the card {name}. It plays no card now.")

    def _card_and_npc(self, switch: str) -> tuple[str, NPC]:
        """Return the name of the typed card and the NPC after "=".

        Raises:
            CommandError: One of them does not exist. If they are in the wrong order, the error
                has the line turned round.
        """
        usage = f"card/{switch} <card> = <npc>"
        if self.lhs and self.rhs is None and is_npc_name(self.caller, self.lhs):
            played = store.assignment_of(npc_named(self.caller, self.lhs).ai.ref)
            card = played.card if played and switch == "unassign" else "<card>"
            raise CommandError(f"Usage: {usage}", instead=f"card/{switch} {card} = {self.lhs}")
        wanted, who = self.both(usage)
        cards = set(store.CARDS.list_keys())
        if (
            store.CARDS.known_name(wanted) not in cards
            and store.CARDS.known_name(who) in cards
            and is_npc_name(self.caller, wanted)
        ):
            raise self.turned_round(switch)
        name = self.thing_named(self.plain_name(wanted, usage)).name
        who = who.removeprefix("npc:").strip()
        return name, npc_named(self.caller, who)

    @waits
    def greeting(self) -> Steps:
        """Set the greeting with which an NPC opens conversations.

        Without a value, list the greetings.
        """
        usage = "card/greeting <npc> [= <number> | off]"
        npc = npc_named(self.caller, self.wanted(usage))
        played = _played(npc)
        if self.rhs == "":
            raise CommandError(f"Usage: {usage}")
        if self.rhs is not None and self.rhs.lower() == "off":
            store.set_greeting(npc.ai.ref, None, by=self.actor)
            self.say(f"{npc.key} opens with no greeting from now on.")
            return
        index = None if self.rhs is None else whole_number(self.rhs, what="greeting", words="off")
        stored = get_card(played.card)
        card = yield self._read(stored)
        _check_there(npc)
        if index is None:
            self.show(_listed(npc, played, card))
            return
        text = _greeting(card, index, npc)
        now = card_or_none(played.card)
        is_same_file = now is not None and now.sha256 == stored.sha256
        if store.assignment_of(npc.ai.ref) != played or not is_same_file:
            raise CommandError(
                f"Another builder has changed the card of {npc.key} meanwhile. Look again:"
                f" card/greeting {npc.key}"
            )
        store.set_greeting(npc.ai.ref, index, by=self.actor)
        only = " where several may speak" if index >= len(greetings(card)) else ""
        self.say(f"{npc.key} opens each new conversation{only} with greeting {index}: {text}")

    @waits
    def export(self) -> Steps:
        name, number = self.numbered(self.wanted(_EXPORT))
        if number is None:
            number = self.thing_named(name).revision
        file = store.CARDS.revision_file(name, number)
        form, with_v2 = self._form(file.carrier)
        folder, limits, now = conf().card_folder, conf().card_limits, int(time.time())
        path, size_bytes, left_out = yield self.worked(
            f"Writing card {name}",
            lambda progress: written(
                file,
                folder,
                name,
                form=form,
                with_v2=with_v2,
                modified_at=now,
                limits=limits,
                progress=progress,
            ),
        )
        told = (
            f"Wrote card {name}, revision {number}, to {path.name} in {shown_path(folder)}"
            f" ({size_in_words(size_bytes)})."
        )
        lines = (told, *and_more(left_out, most=_MOST_LEFT_OUT, more="and {} more like these"))
        self.show(line for one in lines for line in wrap_text(one, WIDTH))

    def _form(self, carrier: str) -> tuple[Form, bool]:
        """Return the typed kind of file, or the card's own, and whether to add a V2 copy."""
        words = [FORM_OF[carrier]] if self.rhs is None else self.rhs.lower().split()
        form, rest = (words[0] if words else ""), words[1:]
        if form not in FORMS or rest not in ([], ["with", "v2"]):
            raise CommandError(
                f"'{self.rhs}' is no kind of card file; there are json, png and charx, and png with"
                " v2. Nothing was written."
            )
        return form, bool(rest)

    def _read(self, card: StoredCard) -> Any:
        """Read a card in another thread. Fires with the card."""
        file = store.CARDS.revision_file(card.name, card.revision)
        limits = conf().card_limits
        return self.worked(
            f"Reading card {card.name}",
            lambda progress: load_card(file.content, limits=limits, progress=progress).card,
        )


def _check_there(npc: NPC) -> None:
    """Raise CommandError if the NPC was deleted while its card was read."""
    if npc.pk is None:
        raise CommandError("The NPC was deleted meanwhile; nothing was changed.")


def _played(npc: NPC) -> CardAssignment:
    played = store.assignment_of(npc.ai.ref)
    if played is None:
        raise CommandError(f"{npc.key} plays no card; card/assign <card> = {npc.key} gives it one.")
    return played


def _greeting(card: Card, index: int, npc: NPC) -> str:
    """Return the beginning of a greeting. CommandError if the card has no such greeting."""
    known = greetings(card, group=True)
    if index >= len(known) or not known[index].strip():
        there = ", ".join(str(at) for at, text in enumerate(known[:40]) if text.strip())
        raise CommandError(
            f"Card {card.name} has no greeting {index}; it has {there or 'none'}."
            f" card/greeting {npc.key} lists them. Nothing was changed."
        )
    return clip_text(first_line(known[index]), 200)


def _listed(npc: NPC, played: CardAssignment, card: Card) -> Iterator[str]:
    """Yield the greetings by number: first the first message as 0, last those for groups."""
    yield f"Greetings of the card {played.card}, which {npc.key} plays:"
    own, known = len(greetings(card)), greetings(card, group=True)
    rows = [
        f"{'*' if index == played.greeting else ' '}{index:4}  {'(groups) ' * (index >= own)}"
        f"{first_line(text)}"
        for index, text in enumerate(known)
        if text.strip()
    ]
    lines = [clip_text(row, WIDTH) for row in rows] or ["      none"]
    yield from and_more(lines, most=_MOST_GREETINGS, more="      and {} more")
    on = "no greeting" if played.greeting is None else f"greeting {played.greeting}"
    yield f"{npc.key} opens with {on}; card/greeting {npc.key} = <number> or off changes that."
