"""Import and export of cards of a game, for the command line."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evennia_ai.cli.cards import read_reported, write_report, written_in_words
from evennia_ai.cli.game import machine_owner
from evennia_ai.cli.output import write_file, write_lines
from evennia_ai.engine.errors import ComponentValueError, FormatError
from evennia_ai.engine.prompt.components import NO_GRANTS, Grants, in_order
from evennia_ai.engine.text.columns import escape_controls
from evennia_ai.formats.cards.exporting import Form, dump_card, export_losses
from evennia_ai.formats.cards.loading import CardImport, load_card
from evennia_ai.services.settings.game import Conf
from evennia_ai.store.authored import cards as store
from evennia_ai.store.authored.card_files import card_file
from evennia_ai.store.authored.cards import CARDS, StoredCard


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The result of an import: `number` is its revision, `text` says what to do next."""

    name: str
    number: int
    state: Literal["waiting", "approved"]
    grants: Grants
    text: str


def import_card(
    path: Path,
    shown: Path,
    conf: Conf,
    *,
    name: str | None,
    grants: Grants | None,
    as_json: bool,
) -> int:
    """Store the card as a waiting import, or approve it if `grants` is not None.

    `shown` is the path as it was typed.
    """
    content, found, report = read_reported(
        path,
        shown=shown,
        grants=NO_GRANTS if grants is None else grants,
        limits=conf.card_limits,
        rules=conf.lore,
        post_history_depth=conf.post_history_depth,
        limit_tokens=conf.limit_tokens,
    )
    taken = _taken_in(name or found.card.name, content, found, grants)
    stored = {
        "card": taken.name,
        "number": taken.number,
        "state": taken.state,
        "grants": list(in_order(taken.grants)),
    }
    write_report(report, stored=stored, end=taken.text, as_json=as_json)
    return 0


def export_card(
    name: str,
    path: Path,
    shown: Path,
    conf: Conf,
    *,
    form: Form,
    with_v2: bool,
    force: bool,
    number: int | None,
) -> int:
    """Write a card, by default the current one. A file is overwritten only with `force`."""
    name = CARDS.known_name(name)
    wanted = store.get_card(name).revision if number is None else number
    file = CARDS.revision_file(name, wanted)
    found = load_card(file.content, limits=conf.card_limits)
    now, limits = int(time.time()), conf.card_limits
    made = dump_card(found, form, with_v2=with_v2, modified_at=now, limits=limits)
    write_file(path, made, kind="card", force=force)
    told = written_in_words(shown, name, form, with_v2=with_v2)
    lines = (*(f"{name}: {notice}" for notice in export_losses(found, form)), told)
    write_lines(escape_controls(line) for line in lines)
    return 0


def _taken_in(name: str, content: bytes, found: CardImport, grants: Grants | None) -> Taken:
    """Store a card's file: as a waiting import, or as approved if `grants` is not None."""
    name, file = _name_for(name), card_file(content, found)
    if grants is not None:
        return _approved(store.save_card(name, file, grants=grants, by=machine_owner()))
    number = store.import_card(name, file, by=machine_owner())
    return _unchanged(store.get_card(name)) if number is None else _waiting(name, number)


def _name_for(wanted: str) -> str:
    """Return the name for a card. FormatError if the game's commands could not take the name."""
    try:
        return CARDS.known_name(CARDS.typeable_name(wanted))
    except ComponentValueError as error:
        raise FormatError("card", f"{error}; give it another with --name") from error


def _waiting(name: str, number: int) -> Taken:
    return Taken(
        name=name,
        number=number,
        state="waiting",
        grants=NO_GRANTS,
        text=(
            f"Stored as card {name}, revision {number}. It waits for approval, so no NPC can play"
            f" it yet. To approve it: card/approve {name}/{number} in the game, or this command"
            " with --approve. Name the grants that it should have."
        ),
    )


def _approved(card: StoredCard) -> Taken:
    return _in_force(
        card,
        f"Card {card.name}, revision {card.revision}, is approved {_with(card.grants)}. To let an"
        f" NPC play it, in the game: card/assign {card.name} = <npc>",
    )


def _unchanged(card: StoredCard) -> Taken:
    return _in_force(
        card,
        f"The same file is card {card.name}, revision {card.revision}, approved"
        f" {_with(card.grants)}; nothing was changed.",
    )


def _in_force(card: StoredCard, text: str) -> Taken:
    return Taken(
        name=card.name, number=card.revision, state="approved", grants=card.grants, text=text
    )


def _with(grants: Grants) -> str:
    return f"with the grants {', '.join(in_order(grants))}" if grants else "without grants"
