"""What `<name>` and `<name>/<number>` of the command `card` mean."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from evennia_ai.commands.shown import day_and_time
from evennia_ai.commands.strict import CommandError
from evennia_ai.store import card_revisions as log
from evennia_ai.store import cards as store
from evennia_ai.store.card_names import known_name
from evennia_ai.store.card_revisions import CardChange
from evennia_ai.store.cards import StoredCard
from evennia_ai.text.columns import visible

_NUMBERED: Final = re.compile(r"(.+)/([0-9]{1,9})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A card as it was named; `number` is that of a revision, None where none was written."""

    name: str
    number: int | None = None


def plain_name(text: str, usage: str) -> str:
    """The name in `text`, which stands without a number."""
    named = numbered(text)
    if named.number is not None:
        raise CommandError(f"Usage: {usage}, without a number. Nothing was changed.")
    return named.name


def card_named(wanted: str) -> StoredCard:
    """The card in force of this name; CommandError says where one only waits."""
    name = known_name(wanted)
    if store.card_or_none(name) is None:
        if imports := log.waiting(name):
            raise CommandError(
                f"Card {name} is not in force, its import only waits:"
                f" card/approve {name}/{imports[-1].number} puts it in force."
                " Nothing was changed."
            )
        if log.newest_number(name):
            raise CommandError(
                f"Card {name} is not in force any more; card/revisions {name} tells what it was,"
                " and card/revert brings it back. Nothing was changed."
            )
    return store.get_card(name)


def numbered(text: str) -> Named:
    """The card, and the revision, that `text` names.

    What stands behind the last "/" is a number where it is one, and no card has the whole name.
    """
    name = known_name(text)
    found = _NUMBERED.fullmatch(text)
    if found is None or _is_known(name):
        return Named(name=name)
    return Named(name=known_name(found[1].strip()), number=int(found[2]))


def revision_named(text: str) -> tuple[str, int]:
    """The card and the revision that `<name>[/<number>]` means: without one, that in force."""
    named = numbered(text)
    if named.number is not None:
        return named.name, named.number
    return named.name, card_named(named.name).revision


def import_named(text: str, *, read: Mapping[str, int]) -> CardChange:
    """The import that waits and that `<name>[/<number>]` means, to be approved.

    Without a number it is the only one, and the one whose report the builder was shown last, as
    `read` has it: what was imported meanwhile, under whatever builder's name, nobody has read.
    """
    found = _import_named(text, switch="approve")
    if numbered(text).number is None and read.get(found.name) != found.number:
        raise CommandError(
            f"The import of card {found.name} that waits is {import_in_words(found)}: read it with"
            f" card/report {found.name}, then card/approve {found.name}/{found.number}."
            " Nothing was changed."
        )
    return found


def reported(text: str) -> CardChange:
    """The revision that `<name>/<number>` means, or the one import of that name that waits."""
    named = numbered(text)
    if named.number is not None:
        return log.revision(named.name, named.number)[0]
    return _import_named(text, switch="report")


def _import_named(text: str, *, switch: str) -> CardChange:
    named = numbered(text)
    imports = log.waiting(named.name)
    if not imports:
        shown = f"; card {named.name} shows what is in force" if _is_known(named.name) else ""
        raise CommandError(f"No import of a card '{named.name}' waits{shown}.")
    chosen = [one for one in imports if named.number in (None, one.number)]
    if len(chosen) == 1:
        return chosen[0]
    waiting = "; ".join(import_in_words(one) for one in imports[-6:])
    raise CommandError(
        f"Name the import by its number, as in card/{switch} {named.name}/{imports[-1].number}."
        f" Of card {named.name} wait: {waiting}. Nothing was changed."
    )


def import_in_words(change: CardChange) -> str:
    """An import, for a line: its number, whose it is, and when it was made."""
    return (
        f"number {change.number} of {visible(change.changed_by)}, {day_and_time(change.changed_at)}"
    )


def _is_known(name: str) -> bool:
    return name in log.names()
