"""Labels: what an NPC calls the characters that it sees, in every line of every prompt.

A label depends on who a character is and not only on its name. The first character that the NPC
knows by a name has the name plainly. Later characters with the same or nearly the same name have a
number after it. The number is stored when they are first perceived and never changes, so a newcomer
cannot change a line that was sent. Nobody gets plainly the NPC's own names, or words that mean
somebody else in a prompt.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from django.db import DatabaseError
from evennia.objects.models import ObjectDB
from evennia.utils import logger
from twisted.python.failure import Failure

from evennia_ai.engine.errors import StoreError
from evennia_ai.engine.prompt.names import (
    fold_name,
    is_word_of_the_game,
    mark_name,
    quote_name,
    spell_name,
)
from evennia_ai.npc.senses.presence import (
    NPC,
    bystanders,
    can_see,
    is_character,
    is_npc,
    object_of,
    seen_here,
)
from evennia_ai.npc.senses.text import person_name, plain_name
from evennia_ai.store import memories
from evennia_ai.store.memories import NewlyNamed

MOST_FOLDED: Final = 200
"""The most characters of a folded name that are stored."""
MOST_FORESEEN: Final = 256
"""The most names with unstored numbers for one NPC, before those of the next room."""
MOST_OLDER: Final = 20
"""The most older characters of one name that are looked up."""


class Bearer(NamedTuple):
    """A character and its name, as shown and as compared."""

    ref: str
    name: str
    folded: str


OlderCalled = Mapping[Bearer, Sequence[Any]]
"""Older characters of the same name, by the newer bearer of it."""
OlderIds = Mapping[Bearer, Sequence[int]]
"""Database ids of older characters of the same name, by the newer bearer of it."""


def label_of(npc: NPC, person: Any) -> str:
    """Return what `npc` calls a person it sees. Write nothing; no query once cached."""
    bearer = _bearer(npc, person)
    known = _stored_numbers(npc, bearer.folded)
    if not _is_numbered(npc, bearer, known):
        _foresee(npc, [person, *seen_here(npc)])
    return _label(npc, bearer, _numbers(npc, person, bearer, known)[bearer.ref])


def settled_label(npc: NPC, person: Any) -> str:
    """Return what `npc` calls a person it perceives, and store that label for good.

    All NPCs that see the newcomer store it together, so twenty listeners cost as much as one. It is
    stored before the words that they heard. If the database refuses, the label is the same and is
    stored the next time.
    """
    bearer = _bearer(npc, person)
    known = _stored_numbers(npc, bearer.folded)
    if person.id is not None and bearer.ref not in known and not _is_being_settled(npc, bearer):
        _settle_for_all(npc, person)
        known = _stored_numbers(npc, bearer.folded)
    return _label(npc, bearer, _numbers(npc, person, bearer, known)[bearer.ref])


def strangers_to(npc: NPC) -> tuple[Bearer, ...]:
    """Return the people `npc` sees whose place among the bearers of their name is unknown."""
    seen = (_bearer(npc, person) for person in seen_here(npc))
    return tuple(
        one for one in seen if not _is_numbered(npc, one, _stored_numbers(npc, one.folded))
    )


def foresee_names(npc: NPC, ids: OlderIds) -> None:
    """Let `npc` number these strangers. Skip anyone whose name has changed since."""
    people = (object_of(bearer.ref) for bearer in ids)
    same = [one for one in people if one is not None and _bearer(npc, one) in ids]
    _foresee(npc, same, _objects_of(ids))


def _settle_for_all(npc: NPC, person: Any) -> None:
    """Store what `npc` and the NPCs near it call a newcomer."""
    others = (one for one in bystanders(npc) if one != person and is_npc(one))
    company = [npc, *(one for one in others if can_see(one, person))]
    older = _older_called({_bearer(one, person): person for one in company})
    try:
        memories.names_known_by.load_missing(str(one.id) for one in company)
    except StoreError as error:
        logger.log_err(f"evennia_ai: NPC {npc.id}: a name is not settled: {error}")
        _foresee(npc, [person], older)
        return
    named = [(one.ai, new) for one in company if (new := _newly_named(one, person, older))]
    _mark(named, is_being_settled=True)
    written = npc.ai.settle_names([new for _, new in named])
    written.addCallbacks(lambda _: _forget_provisional(named), _not_settled, errbackArgs=(named,))


Named = Sequence[tuple[Any, NewlyNamed]]
"""Minds of NPCs, each with the bearers of a name that it is to store."""


def _mark(named: Named, *, is_being_settled: bool) -> None:
    for mind, new in named:
        mind.foreseen_names[new.folded].update(dict.fromkeys(new.people, is_being_settled))


def _forget_provisional(named: Named) -> None:
    """Forget the provisional numbers: they are stored now."""
    for mind, new in named:
        foreseen = mind.foreseen_names.get(new.folded, {})
        for ref in new.people:
            foreseen.pop(ref, None)
        if not foreseen:
            mind.foreseen_names.pop(new.folded, None)


def _not_settled(failure: Failure, named: Named) -> None:
    """Keep the provisional numbers until the person is perceived again."""
    failure.trap(StoreError, DatabaseError)
    refs = ", ".join(new.npc_ref for _, new in named)
    logger.log_err(f"evennia_ai: NPCs {refs}: a name is not settled: {failure.getErrorMessage()}")
    _mark(named, is_being_settled=False)


def _newly_named(npc: NPC, person: Any, older: OlderCalled) -> NewlyNamed | None:
    """Return the bearers of the name up to `person`; None if `npc` knows them already."""
    bearer = _bearer(npc, person)
    known = _stored_numbers(npc, bearer.folded)
    if bearer.ref in known or _is_being_settled(npc, bearer):
        return None
    _foresee(npc, [person], older)
    numbers = _numbers(npc, person, bearer, known)
    people = tuple(numbers)[: numbers[bearer.ref]]
    return NewlyNamed(npc_ref=str(npc.id), folded=bearer.folded, people=people)


def with_labels(npc: NPC, text: str, people: Iterable[Any]) -> str:
    """Replace these people's names in a text of the game by what `npc` calls them."""
    for person in people:
        shown = str(person.get_display_name(npc))
        label = quote_name(label_of(npc, person))
        if shown.strip() and label != shown:
            told = label.replace("\\", r"\\")
            text = re.sub(rf"(?<!\w){re.escape(shown)}(?!\w)", told, text)
    return text


def _bearer(npc: NPC, person: Any) -> Bearer:
    name = person_name(str(person.get_display_name(npc)))
    return Bearer(str(person.id), name, fold_name(name)[:MOST_FOLDED])


def _label(npc: NPC, bearer: Bearer, number: int) -> str:
    return _mark_label(bearer.name, number + (bearer.folded in _folds(npc.ai.own_names)))


@lru_cache(maxsize=1024)
def _folds(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(fold_name(name)[:MOST_FOLDED] for name in names)


@lru_cache(maxsize=4096)
def _mark_label(name: str, number: int) -> str:
    return mark_name(name, number, is_word=is_word_of_the_game(name))


def _stored_numbers(npc: NPC, fold: str) -> Mapping[str, int]:
    """Return the stored numbers of the bearers of a name, by reference."""
    try:
        return memories.names_known_by(str(npc.id)).get(fold, {})
    except StoreError as error:
        logger.log_err(f"evennia_ai: NPC {npc.id}: names cannot be read: {error}")
        return {}


def _numbers(npc: NPC, person: Any, bearer: Bearer, known: Mapping[str, int]) -> Mapping[str, int]:
    """Return `known` with the provisional bearers added, `bearer` among them."""
    if bearer.ref in known:
        return known
    foreseen = npc.ai.foreseen_names.get(bearer.folded, {})
    if person.id is None:
        older = _older_called({bearer: person})
        foreseen = dict.fromkeys([*foreseen, *_first_bearers(npc, person, bearer, older)])
    numbers = dict(known)
    for ref in foreseen:
        numbers.setdefault(ref, len(numbers) + 1)
    return numbers


def _is_numbered(npc: NPC, bearer: Bearer, known: Mapping[str, int]) -> bool:
    return bearer.ref in known or bearer.ref in npc.ai.foreseen_names.get(bearer.folded, ())


def _is_being_settled(npc: NPC, bearer: Bearer) -> bool:
    return bool(npc.ai.foreseen_names.get(bearer.folded, {}).get(bearer.ref))


def _foresee(npc: NPC, people: Iterable[Any], older: OlderCalled | None = None) -> None:
    """Give provisional numbers to those of these people who have none.

    One look-up serves all of them, unless `older` has the answer already.
    """
    while len(npc.ai.foreseen_names) > MOST_FORESEEN:
        npc.ai.foreseen_names.popitem(last=False)
    bearers = {_bearer(npc, person): person for person in people if person.id is not None}
    new = {
        bearer: person
        for bearer, person in bearers.items()
        if not _is_numbered(npc, bearer, _stored_numbers(npc, bearer.folded))
    }
    if older is None:
        older = _older_called(new)
    for bearer, person in new.items():
        foreseen = npc.ai.foreseen_names.setdefault(bearer.folded, {})
        for ref in _first_bearers(npc, person, bearer, older):
            foreseen.setdefault(ref, False)


def _first_bearers(npc: NPC, person: Any, bearer: Bearer, older: OlderCalled) -> list[str]:
    """Return the references of those who bore the name before `bearer`, and `bearer` last.

    These are older characters with the same key in any case. Among those present they are also
    NPCs, and older characters with an equal folded name. The age of a deleted person is unknown, so
    everybody of the name came first.
    """
    gone = person.id is None  # deleted since, so its age is unknown
    here = [
        other
        for other in bystanders(npc)
        if fold_name(plain_name(other.key))[:MOST_FOLDED] == bearer.folded
        and (gone or is_npc(other) or other.id < person.id)
    ]
    found = [*here, *older.get(bearer, ())]
    first = sorted({one.id for one in found if is_character(one) and one not in (npc, person)})
    return [*map(str, first), bearer.ref]


def _older_called(people: Mapping[Bearer, Any]) -> OlderCalled:
    """Return up to `MOST_OLDER` older characters of each bearer's name, oldest first."""
    try:
        return _objects_of(older_ids(people))
    except DatabaseError as error:
        logger.log_err(f"evennia_ai: older names cannot be read: {error}")
        return {}


def _objects_of(ids: OlderIds) -> OlderCalled:
    return {
        bearer: list(ObjectDB.objects.filter(id__in=older)) if older else []
        for bearer, older in ids.items()
    }


def older_ids(bearers: Collection[Bearer]) -> OlderIds:
    """Return the ids of older characters of the same names. One query; any thread may call it.

    Raises:
        DatabaseError: The database cannot be read.
    """
    if not bearers:
        return {}
    ways = {bearer: _ways_to_write(bearer) for bearer in bearers}
    called = ObjectDB.objects.filter(db_key__in=set().union(*ways.values())).order_by("id")
    most = MOST_OLDER * len(bearers)
    rows = called.values_list("id", "db_key")[:most]
    if (
        len(rows) == most and len(bearers) > 1
    ):  # one frequent name used up the limit; ask for each name
        return {bearer: ids for one in bearers for bearer, ids in older_ids([one]).items()}
    return {
        bearer: [known for known, key in rows if key in ways[bearer] and _is_before(known, bearer)]
        for bearer in bearers
    }


def _is_before(known: int, bearer: Bearer) -> bool:
    """True if the character with this id is older. A deleted bearer is newer than all."""
    return not bearer.ref.isdecimal() or known < int(bearer.ref)


def _ways_to_write(bearer: Bearer) -> set[str]:
    """Return the spellings of a name that keys of objects may have."""
    ways = {spell_name(bearer.name), bearer.folded}
    return {way for one in ways for way in (one, one.title(), one.capitalize(), one.upper())}
