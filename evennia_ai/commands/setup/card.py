"""The command `card`: character cards, where they come from and who plays them.

Files come from one folder that the settings name. A card that was imported changes nothing until a
builder assigns it to an NPC: that is the approval.
"""

from collections.abc import Iterator
from typing import Final

from evennia_ai.cards.card import Card, greetings
from evennia_ai.cards.components import card_components, character_book
from evennia_ai.cards.reading import card_from_bytes, card_from_text
from evennia_ai.commands.naming import npc_named
from evennia_ai.commands.setup.folder import file_in, offered
from evennia_ai.commands.strict import BUILDER_LOCK, CommandError, StrictCommand
from evennia_ai.conf import conf
from evennia_ai.prompt.columns import WIDTH, clipped, first_line, visible
from evennia_ai.prompt.errors import FormatError
from evennia_ai.prompt.tokens import ESTIMATE
from evennia_ai.store import card_assignments
from evennia_ai.store import cards as store
from evennia_ai.store.cards import StoredCard

_MOST_ENTRIES: Final = 12


class CmdCard(StrictCommand):
    """
    List and show character cards, and give one to an NPC

    Usage:
      card
      card <name>
      card/import [<file> [= <name>]]
      card/assign <npc> = <card>

    Switches:
      import - read a card from a JSON file in the game's card folder; without
               a file: list the files there. The card keeps its own name unless
               you give another; a card of that name is replaced
      assign - let an NPC play a card, from its next turn on

    Examples:
      card
      card Oren
      card/import
      card/import oren.json
      card/assign oren = Oren

    A card says who an NPC is: Character Card V1, V2 or V3, as JSON. What it
    wants to put into the conversation by depth stays inside the conversation,
    and it cannot replace the game's own rules. To assign a card is to vouch
    for it: read it first.
    """

    key = "card"
    locks = BUILDER_LOCK.format(key="card")
    help_category = "Building"
    auto_help = True
    verbs = {"": "look", "import": "import_file", "assign": "assign"}

    def look(self) -> None:
        """List the cards, or show one."""
        if self.rhs is not None:
            raise CommandError(
                f"To give a card to an NPC: card/assign {self.lhs} = {self.rhs}."
                " Nothing was changed."
            )
        if self.lhs:
            stored = card_named(self.lhs)
            self.show("\n".join(described(stored, card_from_text(stored.source))))
            return
        names = store.card_names()
        if not names:
            self.say("There are no cards yet; card/import reads one from a file.")
            return
        lines = [f"{'revision':>8}  card"]
        lines += [f"{store.get_card(name).revision:8}  {name}" for name in names]
        self.show("\n".join(lines))

    def import_file(self) -> None:
        """Store the card of a file; it is checked whole before anything is written."""
        folder = conf().card_folder
        if not self.lhs:
            self.show("\n".join(offered(folder)))
            return
        if self.rhs is not None and not self.rhs:
            raise CommandError("Usage: card/import <file> [= <name>]")
        content = file_in(folder, self.lhs, command="card/import")
        card = card_from_bytes(content)
        text = content.decode("utf-8-sig")
        stored = store.save_card(as_stored(self.rhs or card.name), text, by=self.typed_by)
        self.show("\n".join(described(stored, card)))

    def assign(self) -> None:
        """Let an NPC play a card."""
        named, wanted = self.both("card/assign <npc> = <card>")
        npc = npc_named(self.caller, named)
        card = card_named(wanted)
        card_from_text(card.source)
        card_assignments.assign(npc.ai.ref, card.name, by=self.typed_by)
        self.say(f"{npc.key} plays the card {card.name} (revision {card.revision}) from now on.")


def card_named(wanted: str) -> StoredCard:
    """The card of this name, written in whatever case; NotStoredError names those there are."""
    return store.get_card(as_stored(wanted))


def as_stored(wanted: str) -> str:
    """`wanted` in the case in which a card of that name is stored; without one, as it is."""
    names = store.card_names()
    same = [name for name in names if name.casefold() == wanted.casefold()]
    return same[0] if wanted not in names and len(same) == 1 else wanted


def described(stored: StoredCard, card: Card) -> list[str]:
    """What a card holds, where it wants to stand, and what was noticed when it was read."""
    written = [text for text in greetings(card, group=True) if text]
    return [
        f"Card {stored.name}, revision {stored.revision}, spec {card.spec}",
        f"  sha256           {stored.sha256}",
        *(clipped(line, WIDTH) for line in _texts(card)),
        f"  greetings        {len(written)}",
        *_injections(card),
        *_lore(card),
        *(f"  note: {notice}" for notice in card.notices),
    ]


def _texts(card: Card) -> Iterator[str]:
    named = {
        "name": card.name,
        "nickname": card.nickname,
        "description": card.description,
        "personality": card.personality,
        "scenario": card.scenario,
        "examples": card.mes_example,
        "system prompt": card.system_prompt,
        "after history": card.post_history_instructions,
    }
    for title, text in named.items():
        if text:
            yield f"  {title:16} {ESTIMATE.count(text):5} tokens  {first_line(text)}"


def _injections(card: Card) -> Iterator[str]:
    """What of the card's own texts goes into the conversation by depth."""
    for component in card_components(card):
        if component.placement == "history":
            yield f"  {component.key}: depth {component.injection_depth}, role {component.role}"


def _lore(card: Card) -> Iterator[str]:
    """The card's book: how many entries, which go in by depth, which cannot be used."""
    try:
        book = character_book(card)
    except FormatError as error:
        yield f"  note: its lorebook will be left out: {error}"
        return
    if book is None:
        return
    yield f"  lore entries     {len(book.entries)}"
    deep = [entry for entry in book.entries if entry.depth is not None]
    refused = [entry for entry in book.entries if entry.refused]
    for entry in deep[:_MOST_ENTRIES]:
        end = " from the oldest" if entry.from_oldest else ""
        named = clipped(visible(f"{entry.uid} {entry.name}"), 44)
        yield f"    {named}: depth {entry.depth}{end}, role {entry.role}"
    for entry in refused[:_MOST_ENTRIES]:
        yield f"    {clipped(visible(entry.uid), 44)} is never used: {entry.refused}"
    more = max(len(deep) - _MOST_ENTRIES, 0) + max(len(refused) - _MOST_ENTRIES, 0)
    if more:
        yield f"    and {more} more like these"
    yield from (f"  note: {notice}" for notice in book.notices)
