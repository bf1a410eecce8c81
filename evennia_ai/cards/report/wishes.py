"""The grants a card has a use for: what each would give it, in numbers."""

from collections.abc import Callable, Mapping
from typing import Final

from evennia_ai.cards.card import Card
from evennia_ai.cards.components import FIELDS
from evennia_ai.cards.report.lore import is_usable, pattern_keys
from evennia_ai.cards.report.texts import note_role
from evennia_ai.cards.report.values import GrantUse
from evennia_ai.lorebook.books import Lorebook
from evennia_ai.lorebook.containment import missing
from evennia_ai.lorebook.entries import IN_HISTORY, LoreEntry
from evennia_ai.prompt.components import ALLOWS, NO_GRANTS, Grant, Grants

# The entries that can be active, and the card: what a grant would give, "" where nothing.
_Entries = list[LoreEntry]


def grant_uses(card: Card, book: Lorebook | None, *, grants: Grants) -> tuple[GrantUse, ...]:
    """The grants that would change something, in the order in which they are told."""
    entries = [entry for entry in book.entries if is_usable(entry)] if book else []
    asked = book.token_budget if book else None
    made = []
    for grant in ALLOWS:
        gives = (
            _lore_budget(entries, asked) if grant == "lore_budget" else _GIVES[grant](card, entries)
        )
        if gives:
            made.append(GrantUse(grant=grant, gives=gives, given=grant in grants))
    return tuple(made)


def _fields(card: Card, entries: _Entries) -> str:
    texts = [field for field in FIELDS.values() if getattr(card, field).strip()]
    stand = "stands" if len(texts) == 1 else "stand"
    return f"{_listed(texts)} {stand} before the history" if texts else ""


def _system_prompt(card: Card, entries: _Entries) -> str:
    return ALLOWS["system_prompt"] if card.system_prompt.strip() else ""


def _after_history(card: Card, entries: _Entries) -> str:
    return ALLOWS["after_history"] if card.post_history_instructions.strip() else ""


def _positions(card: Card, entries: _Entries) -> str:
    moved = sum(entry.position not in IN_HISTORY for entry in entries)
    return f"{_entries_stand(moved)} where they ask to, outside the history" if moved else ""


def _roles(card: Card, entries: _Entries) -> str:
    others = sum("roles" in missing(entry, NO_GRANTS) for entry in entries)
    told = [f"{_entries_stand(others)} as system or assistant"] if others else []
    if note_role(card) not in ("", "user"):
        told.append("its note by depth in the role it asks for")
    return "; ".join(told)


def _lore_budget(entries: _Entries, asked: int | None) -> str:
    told = [] if asked is None else [f"its lore has a budget of {asked} tokens of its own"]
    if ignoring := sum(entry.ignore_budget for entry in entries):
        told.append(f"{_entries_stand(ignoring)} outside any budget")
    return "; ".join(told)


def _regex(card: Card, entries: _Entries) -> str:
    keys = sum(len(pattern_keys(entry)) for entry in entries)
    return f"{ALLOWS['regex']} ({keys} of them)" if keys else ""


_GIVES: Final[Mapping[Grant, Callable[[Card, _Entries], str]]] = {
    "fields": _fields,
    "system_prompt": _system_prompt,
    "after_history": _after_history,
    "positions": _positions,
    "roles": _roles,
    "regex": _regex,
}


def _entries_stand(number: int) -> str:
    return "1 lore entry stands" if number == 1 else f"{number} lore entries stand"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
