"""Cards of a game, for the command line: taking one in, and giving one out.

Imported after `evennia_ai.cli.game_folder.opened_game` alone, because the store needs Django.
"""

from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from evennia_ai.prompt.errors import FormatError
from evennia_ai.prompt.grants import NO_GRANTS, Grants, in_order
from evennia_ai.store import card_revisions as log
from evennia_ai.store import cards as store
from evennia_ai.store.card_files import CardFile
from evennia_ai.store.cards import StoredCard


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What became of an import; `number` is its revision, `text` says what to do next."""

    name: str
    number: int
    state: Literal["waiting", "in force"]
    grants: Grants
    text: str


def take_in(
    name: str, *, content: bytes, carrier: str, source: str, grants: Grants | None, by: str
) -> Taken:
    """Store a card's file: waiting, or in force with `grants` where they are not None."""
    name = known_name(typeable(name))
    file = CardFile(content=content, carrier=carrier, source=source)
    if grants is not None:
        return _approved(_put_in_force(name, file, grants=grants, by=by))
    number = _waits_already(name, file) or store.import_card(name, file, by=by)
    if number is not None:
        return _waiting(name, number)
    return _unchanged(store.get_card(name))


def file_of(name: str, number: int | None) -> tuple[str, bytes]:
    """The name as it is stored, and the file of a revision, by default the one in force.

    NotStoredError: there is no such card or revision.
    """
    name = known_name(name)
    wanted = store.get_card(name).revision if number is None else number
    return name, log.revision(name, wanted)[1].content


def known_name(wanted: str) -> str:
    """`wanted` in the case in which a card of that name is known; else as it is."""
    names = {*store.card_names(), *log.waiting_names()}
    same = [name for name in names if name.casefold() == wanted.casefold()]
    return same[0] if wanted not in names and len(same) == 1 else wanted


def typeable(name: str) -> str:
    """A name that the game's command can be told; FormatError where it cannot be."""
    plain = " ".join(name.split())
    if not plain or not plain.isprintable() or "=" in plain or plain.startswith("/"):
        raise FormatError(
            "card",
            f"'{name}' cannot name a card: a name has 1 to 200 printable characters, no = and no /"
            " at its start; give it another with --name",
        )
    return plain


def _put_in_force(name: str, file: CardFile, *, grants: Grants, by: str) -> StoredCard:
    """Approve the file with exactly these grants, whether it waits already or not."""
    number = _waits_already(name, file)
    if number is not None:
        return store.approve(name, number, grants=grants, by=by)
    return store.save_card(name, file, grants=grants, by=by)


def _waits_already(name: str, file: CardFile) -> int | None:
    """The number under which this very file waits."""
    digest = sha256(file.content).hexdigest()
    same = [one.number for one in log.waiting(name) if one.sha256 == digest]
    return same[-1] if same else None


def _waiting(name: str, number: int) -> Taken:
    return Taken(
        name=name,
        number=number,
        state="waiting",
        grants=NO_GRANTS,
        text=(
            f"Stored as card {name}, revision {number}, and it waits: nothing plays it. To put it"
            f" in force: card/approve {name}/{number} in the game, or this command with --approve;"
            " name the grants it shall have."
        ),
    )


def _approved(card: StoredCard) -> Taken:
    return Taken(
        name=card.name,
        number=card.revision,
        state="in force",
        grants=card.grants,
        text=(
            f"Card {card.name}, revision {card.revision}, is in force {_with(card.grants)}. To let"
            f" an NPC play it, in the game: card/assign <npc> = {card.name}"
        ),
    )


def _unchanged(card: StoredCard) -> Taken:
    return Taken(
        name=card.name,
        number=card.revision,
        state="in force",
        grants=card.grants,
        text=(
            f"This very file is card {card.name}, revision {card.revision}, in force"
            f" {_with(card.grants)}; nothing was changed."
        ),
    )


def _with(grants: Grants) -> str:
    return f"with the grants {', '.join(in_order(grants))}" if grants else "without grants"
