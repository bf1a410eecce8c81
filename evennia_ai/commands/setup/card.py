"""The command `card`: character cards, where they come from and who plays them.

Files come from one folder that the settings name. A card that was imported changes nothing until a
builder assigns it to an NPC: that is the approval.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from evennia_ai.cards.card import Card
from evennia_ai.cards.reading import card_from_bytes, card_from_text
from evennia_ai.commands.naming import npc_named
from evennia_ai.commands.strict import BUILDER_LOCK, CommandError, StrictCommand
from evennia_ai.conf import conf
from evennia_ai.prompt.columns import clipped, first_line
from evennia_ai.prompt.tokens import ESTIMATE
from evennia_ai.store import cards as store
from evennia_ai.store.cards import StoredCard

WIDTH: Final = 78
_MOST_FILES: Final = 40
_BYTES_PER_CHARACTER: Final = 4


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
        content = file_in(folder, self.lhs)
        card = card_from_bytes(content)
        text = content.decode("utf-8-sig")
        stored = store.save_card(self.rhs or card.name, text, by=str(self.caller.key))
        self.show("\n".join(described(stored, card)))

    def assign(self) -> None:
        """Let an NPC play a card."""
        named, wanted = self.both("card/assign <npc> = <card>")
        npc = npc_named(self.caller, named)
        card = card_named(wanted)
        card_from_text(card.source)
        store.assign(npc.ai.ref, card.name, by=str(self.caller.key))
        self.say(f"{npc.key} plays the card {card.name} (revision {card.revision}) from now on.")


def card_named(wanted: str) -> StoredCard:
    """The card of this name, written in whatever case; NotStoredError names those there are."""
    names = store.card_names()
    same = [name for name in names if name.casefold() == wanted.casefold()]
    return store.get_card(same[0] if wanted not in names and len(same) == 1 else wanted)


def file_in(folder: Path, name: str) -> bytes:
    """The bytes of the file `name` in `folder`, and of no other file whatever its name says."""
    path = _path_in(folder, name)
    limit = conf().max_source_characters * _BYTES_PER_CHARACTER
    if path.stat().st_size > limit:
        raise CommandError(
            f"{name} has {path.stat().st_size} bytes and the limit is {limit}"
            " (EVENNIA_AI_MAX_SOURCE_CHARACTERS); nothing was imported."
        )
    try:
        return path.read_bytes()
    except OSError as error:
        raise CommandError(
            f"{name} cannot be read: {error.strerror}; nothing was imported."
        ) from error


def offered(folder: Path) -> list[str]:
    """The card files of the folder."""
    found = sorted(p.name for p in folder.glob("*.json")) if folder.is_dir() else []
    if not found:
        return [f"There are no card files (.json) in {folder} (EVENNIA_AI_CARD_FOLDER)."]
    more = [f"  and {len(found) - _MOST_FILES} more"] if len(found) > _MOST_FILES else []
    return [f"Card files in {folder}:", *(f"  {name}" for name in found[:_MOST_FILES]), *more]


def described(stored: StoredCard, card: Card) -> list[str]:
    """What a card holds, one line each, and what was noticed when it was read."""
    greetings = [text for text in (card.first_mes, *card.alternate_greetings) if text]
    lines = [
        f"Card {stored.name}, revision {stored.revision}, spec {card.spec}",
        f"  sha256           {stored.sha256}",
        *(clipped(line, WIDTH) for line in _texts(card)),
        f"  greetings        {len(greetings)}",
    ]
    book = card.character_book or {}
    entries = book.get("entries")
    if entries:
        lines.append(f"  lore entries     {len(entries)}")
    return lines + [f"  note: {notice}" for notice in card.notices]


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


def _path_in(folder: Path, name: str) -> Path:
    file_name = name if Path(name).suffix else f"{name}.json"
    plain = Path(file_name).name == file_name and file_name.isprintable()
    path = folder / file_name
    if not plain or "\\" in file_name or not path.is_file():
        raise CommandError(
            f"There is no card file '{name}' in the card folder; card/import lists those there are."
        )
    if path.resolve().parent != folder.resolve():
        raise CommandError(f"'{name}' leads out of the card folder; nothing was imported.")
    return path
