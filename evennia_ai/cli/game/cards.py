"""Cards of a game, for the command line: taking one in, and giving one out.

Imported after `evennia_ai.cli.game.folder.opened_game` alone, because the store needs Django.
"""

from dataclasses import dataclass
from typing import Literal

from evennia_ai.cards.components import refuse_unsettled
from evennia_ai.cards.loading import CardImport
from evennia_ai.errors import ComponentValueError, FormatError
from evennia_ai.prompt.components import NO_GRANTS, Grants, in_order
from evennia_ai.store.authored import card_revisions
from evennia_ai.store.authored import card_revisions as log
from evennia_ai.store.authored import cards as store
from evennia_ai.store.authored.cards import StoredCard, known_name, typeable_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What became of an import; `number` is its revision, `text` says what to do next."""

    name: str
    number: int
    state: Literal["waiting", "in force"]
    grants: Grants
    text: str


def take_in(
    name: str, *, content: bytes, found: CardImport, grants: Grants | None, by: str
) -> Taken:
    """Store a card's file: waiting, or in force with `grants` where they are not None.

    FormatError: its text may not stand where it would.
    """
    refuse_unsettled(found.card)
    name = _name_for(name)
    file = card_revisions.file_of(content, found)
    if grants is not None:
        return _approved(store.save_card(name, file, grants=grants, by=by))
    number = store.import_card(name, file, by=by)
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


def _name_for(wanted: str) -> str:
    """The name the card gets; FormatError where the game's command could not be told it."""
    try:
        return known_name(typeable_name(wanted))
    except ComponentValueError as error:
        raise FormatError("card", f"{error}; give it another with --name") from error


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
    return _in_force(
        card,
        f"Card {card.name}, revision {card.revision}, is in force {_with(card.grants)}. To let an"
        f" NPC play it, in the game: card/assign <npc> = {card.name}",
    )


def _unchanged(card: StoredCard) -> Taken:
    return _in_force(
        card,
        f"This very file is card {card.name}, revision {card.revision}, in force"
        f" {_with(card.grants)}; nothing was changed.",
    )


def _in_force(card: StoredCard, text: str) -> Taken:
    return Taken(
        name=card.name, number=card.revision, state="in force", grants=card.grants, text=text
    )


def _with(grants: Grants) -> str:
    return f"with the grants {', '.join(in_order(grants))}" if grants else "without grants"
