"""What builders write for a card, and what the command `card` shows.

`<name>` and `<name>/<number>` are read; the list, one card's state, imports and answers are told.
"""

from collections.abc import Sequence
from typing import Final

from evennia.objects.models import ObjectDB

from evennia_ai.commands.base import StrictCommand, and_more
from evennia_ai.commands.setup.imported import (
    MOST_WAITING,
    Imported,
    changed_in_words,
    given_in_words,
    grants_in_words,
    import_in_words,
    may_in_words,
)
from evennia_ai.engine.prompt.components import ALL_GRANTS
from evennia_ai.engine.text.columns import WIDTH, clip_text, escape_controls, pad_text, wrap_text
from evennia_ai.store.authored import card_revisions as log
from evennia_ai.store.authored import cards as store
from evennia_ai.store.authored.card_revisions import CardChange
from evennia_ai.store.authored.cards import StoredCard, greeters_of, known_name, players_of

CARDS: Final[Imported[CardChange]] = Imported(
    what="card",
    known_name=known_name,
    names=log.names,
    waiting=log.waiting,
    newest_number=log.newest_number,
    change=lambda name, number: log.revision(name, number)[0],
)


def card_named(wanted: str) -> StoredCard:
    """The card in force of this name; CommandError says where one only waits."""
    name = known_name(wanted)
    if store.card_or_none(name) is None:
        CARDS.refuse_absent(name)
    return store.get_card(name)


def card_typed(command: StrictCommand, usage: str) -> StoredCard:
    """The card in force that stands left of "="."""
    return card_named(CARDS.plain_name(command.wanted(usage), usage))


def revision_named(text: str) -> tuple[str, int]:
    """The card and the revision that `<name>[/<number>]` means: without one, that in force."""
    named = CARDS.numbered(text)
    if named.number is not None:
        return named.name, named.number
    return named.name, card_named(named.name).revision


_MOST_CARDS: Final = 100
_MOST_PLAYERS: Final = 10
_NAME_COLUMNS: Final = 28


def listed() -> list[str]:
    """All cards: the revision in force, its grants, who plays it, and the imports that wait."""
    in_force, waiting = store.card_names(), log.waiting_names()
    names = sorted({*in_force, *waiting})
    if not names:
        return ["There are no cards yet; card/import reads one from a file."]
    lines = [
        f"{'revision':>8}  {pad_text('card', _NAME_COLUMNS)}  {pad_text('grants', 20)}  played by"
    ]
    for name in names[:_MOST_CARDS]:
        lines.append(clip_text(_row(name), WIDTH))
        lines += [f"{'':10}{line}" for line in CARDS.waiting_lines(name)] if name in waiting else []
    return [*lines, *and_more(names, most=_MOST_CARDS, more=f"{'':10}and {{}} more")[_MOST_CARDS:]]


def card_state(card: StoredCard) -> list[str]:
    """One card in force: who approved it, who gave each grant, who plays it, what waits."""
    changes = log.changes(card.name)
    given = log.who_gave(changes)
    lines = [
        f"Card {escape_controls(card.name)}, revision {card.revision}, from a {card.carrier} file"
    ]
    lines += [f"  {changed_in_words(change)}" for change in changes if _is_now(change, card)]
    lines.append(f"  sha256 of the file  {card.sha256}")
    lines.append(f"  played by           {players_in_words(card.name)}")
    lines += [f"  may: {grant}, {given_in_words(change)}" for grant, change in given.items()]
    if not given:
        lines.append("  may nothing more than stand inside the history, as a user's")
    return [
        *(clip_text(line, WIDTH) for line in lines),
        *(clip_text(f"  {line}", WIDTH) for line in CARDS.waiting_lines(card.name)),
    ]


def to_approve(change: CardChange) -> list[str]:
    """How an import is put in force, and what the card in force may do that it would not."""
    lines = ["", f"To put it in force: card/approve {change.name}/{change.number} [= <grants>]"]
    card = store.card_or_none(change.name)
    if card is not None and card.grants:
        had = f"Revision {card.revision} has grants that are not carried over by themselves:"
        lines += wrap_text(f"{had} {grants_in_words(card.grants)}.", WIDTH)
    return lines


def approved(
    card: StoredCard, old: StoredCard | None, change: CardChange, others: Sequence[CardChange]
) -> list[str]:
    """What an approval did."""
    whose = f"import {change.number} of {escape_controls(change.changed_by)}"
    may = may_in_words(card.grants)
    told = [f"Card {card.name} is in force, revision {card.revision}: {whose}, {may}."]
    lost = old.grants - card.grants if old is not None else frozenset()
    if old is not None and lost:
        told.append(
            f"Not carried over from revision {old.revision}: {grants_in_words(lost)};"
            f" card/grant {card.name} = {grants_in_words(lost)} gives that again."
        )
    if others:
        named = "; ".join(import_in_words(one) for one in others[-MOST_WAITING:])
        told.append(f"What else waited was answered by this: {named}.")
    players = players_of(card.name)
    if players:
        told.append(f"Played from the next turn on by {players_in_words(card.name)}.")
    else:
        told.append(f"Nobody plays it yet: card/assign <npc> = {card.name}.")
    return [line for one in told for line in wrap_text(one, WIDTH)]


def players_in_words(card_name: str) -> str:
    """The NPCs that play a card, by name and number."""
    return _npcs_in_words(players_of(card_name))


def silenced(card_name: str, greeters: Sequence[str]) -> list[str]:
    """Who of those that opened with a greeting of the card does so no longer, in lines."""
    still = greeters_of(card_name)
    gone = [ref for ref in greeters if ref not in still]
    if not gone:
        return []
    told = (
        f"No greeting is said any more by {_npcs_in_words(gone)}: it was chosen from another file;"
        " card/greeting <npc> = <number> chooses one of this."
    )
    return wrap_text(told, WIDTH)


def _npcs_in_words(refs: Sequence[str]) -> str:
    found = ObjectDB.objects.filter(id__in=[int(ref) for ref in refs[:_MOST_PLAYERS]])
    names = {str(npc.id): escape_controls(npc.key) for npc in found}
    told = [f"{names.get(ref, 'somebody gone')} (#{ref})" for ref in refs[:_MOST_PLAYERS]]
    more = f" and {len(refs) - _MOST_PLAYERS} more" if len(refs) > _MOST_PLAYERS else ""
    return ", ".join(told) + more if told else "nobody"


def _row(name: str) -> str:
    card = store.card_or_none(name)
    if card is None:
        return f"{'-':>8}  {pad_text(escape_controls(name), _NAME_COLUMNS)}  not in force"
    grants = "all" if card.grants == ALL_GRANTS else grants_in_words(card.grants)
    named = f"{pad_text(escape_controls(name), _NAME_COLUMNS)}  {pad_text(grants, 20)}"
    return f"{card.revision:8}  {named}  {players_in_words(name)}"


def _is_now(change: CardChange, card: StoredCard) -> bool:
    """True if the change is what made the card what it is: the last that put its file in force."""
    return change.number == card.revision or (
        change.action in ("created", "edited", "approved") and change.sha256 == card.sha256
    )
