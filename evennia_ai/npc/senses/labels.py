"""Labels: what an NPC calls the characters that it sees, in every line of every prompt.

A label depends on who a character is, not only on the name. The first character whom the NPC knows
by a name has the plain name as label. Later characters with the same or nearly the same name get a
number after it. The number is stored when the NPC first perceives them and never changes, so a
newcomer cannot change a line that was sent. The NPC's own names, and words with a special meaning
in prompts, are never plain labels of others.
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
"""The most characters of a folded name (without case and accents) that are stored."""
MOST_FORESEEN: Final = 256
"""The most names with unstored numbers that are kept for one NPC."""
MOST_OLDER: Final = 20
"""The most older characters of one name that are looked up."""


class Bearer(NamedTuple):
    """A character with its name, as it is shown and in the form in which names are compared."""

    ref: str
    name: str
    folded: str


OlderCalled = Mapping[Bearer, Sequence[Any]]
"""By character: the older characters of the same name."""
OlderIds = Mapping[Bearer, Sequence[int]]
"""By character: the database ids of the older characters of the same name."""


def label_of(npc: NPC, person: Any) -> str:
    """Return what `npc` calls a character that it sees. Store nothing.

    Makes no query once cached.
    """
    bearer = _bearer(npc, person)
    known = _stored_numbers(npc, bearer.folded)
    if not _is_numbered(npc, bearer, known):
        _foresee(npc, [person, *seen_here(npc)])
    return _label(npc, bearer, _numbers(npc, person, bearer, known)[bearer.ref])


def store_label(npc: NPC, person: Any) -> str:
    """Return what `npc` calls a character that it perceives, and store the label for good.

    All NPCs that see a newcomer store their labels together, so that twenty listeners cost as much
    as one. The labels are stored before the newcomer's words. If the database refuses, the label is
    the same and is stored the next time.
    """
    bearer = _bearer(npc, person)
    known = _stored_numbers(npc, bearer.folded)
    if person.id is not None and bearer.ref not in known and not _is_being_settled(npc, bearer):
        _settle_for_all(npc, person)
        known = _stored_numbers(npc, bearer.folded)
    return _label(npc, bearer, _numbers(npc, person, bearer, known)[bearer.ref])


def strangers_to(npc: NPC) -> tuple[Bearer, ...]:
    """Return the characters that `npc` sees and for whose labels it has no number yet."""
    seen = (_bearer(npc, person) for person in seen_here(npc))
    return tuple(
        one for one in seen if not _is_numbered(npc, one, _stored_numbers(npc, one.folded))
    )


def foresee_names(npc: NPC, ids: OlderIds) -> None:
    """Give these strangers provisional numbers, except those whose name has changed meanwhile."""
    people = (object_of(bearer.ref) for bearer in ids)
    same = [one for one in people if one is not None and _bearer(npc, one) in ids]
    _foresee(npc, same, _objects_of(ids))


def _settle_for_all(npc: NPC, person: Any) -> None:
    """Store what `npc` and all other NPCs that see a newcomer call them."""
    others = (one for one in bystanders(npc) if one != person and is_npc(one))
    company = [npc, *(one for one in others if can_see(one, person))]
    older = _older_called({_bearer(one, person): person for one in company})
    try:
        memories.names_known_by.load_missing(str(one.id) for one in company)
    except StoreError as error:
        logger.log_err(f"evennia_ai: NPC {npc.id}: a label is not stored yet: {error}")
        _foresee(npc, [person], older)
        return
    named = [(one.ai, new) for one in company if (new := _newly_named(one, person, older))]
    _mark(named, is_being_settled=True)
    written = npc.ai.settle_names([new for _, new in named])
    written.addCallbacks(lambda _: _forget_provisional(named), _not_settled, errbackArgs=(named,))


Named = Sequence[tuple[Any, NewlyNamed]]
"""Minds of NPCs, each with the bearers of a name to store for it."""


def _mark(named: Named, *, is_being_settled: bool) -> None:
    for mind, new in named:
        mind.foreseen_names[new.folded].update(dict.fromkeys(new.people, is_being_settled))


def _forget_provisional(named: Named) -> None:
    """Forget the provisional numbers, because they are stored now."""
    for mind, new in named:
        foreseen = mind.foreseen_names.get(new.folded, {})
        for ref in new.people:
            foreseen.pop(ref, None)
        if not foreseen:
            mind.foreseen_names.pop(new.folded, None)


def _not_settled(failure: Failure, named: Named) -> None:
    """Keep the provisional numbers. They are stored when the NPC perceives the person again."""
    failure.trap(StoreError, DatabaseError)
    refs = ", ".join(new.npc_ref for _, new in named)
    logger.log_err(
        f"evennia_ai: NPCs {refs}: labels are not stored yet: {failure.getErrorMessage()}"
    )
    _mark(named, is_being_settled=False)


def _newly_named(npc: NPC, person: Any, older: OlderCalled) -> NewlyNamed | None:
    """Return all bearers of the name up to `person`, to store them. None if they are stored."""
    bearer = _bearer(npc, person)
    known = _stored_numbers(npc, bearer.folded)
    if bearer.ref in known or _is_being_settled(npc, bearer):
        return None
    _foresee(npc, [person], older)
    numbers = _numbers(npc, person, bearer, known)
    people = tuple(numbers)[: numbers[bearer.ref]]
    return NewlyNamed(npc_ref=str(npc.id), folded=bearer.folded, people=people)


def with_labels(npc: NPC, text: str, people: Iterable[Any]) -> str:
    """Replace the names of these characters in a text of the game by their labels for `npc`."""
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
    """Return the stored numbers of the bearers of a name, by their references."""
    try:
        return memories.names_known_by(str(npc.id)).get(fold, {})
    except StoreError as error:
        logger.log_err(f"evennia_ai: NPC {npc.id}: stored labels cannot be read: {error}")
        return {}


def _numbers(npc: NPC, person: Any, bearer: Bearer, known: Mapping[str, int]) -> Mapping[str, int]:
    """Return the numbers of all bearers of a name: the stored ones, then provisional ones.

    `known` has the stored ones.
    """
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
    """Give provisional numbers to those of these characters who have no number yet.

    One query finds the older characters for all of them, unless the caller passes them as `older`.
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
    """Return the references of those who had the name before `bearer`, and that of `bearer` last.

    They are older characters with the same key in any case. Of the characters present, NPCs and
    older characters with an equal folded name count too. The age of a deleted person is unknown, so
    all others of the name count as older.
    """
    gone = person.id is None  # the character was deleted
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
    """Return up to `MOST_OLDER` older characters with each bearer's name, oldest first."""
    try:
        return _objects_of(older_ids(people))
    except DatabaseError as error:
        logger.log_err(f"evennia_ai: older characters of a name cannot be read: {error}")
        return {}


def _objects_of(ids: OlderIds) -> OlderCalled:
    return {
        bearer: list(ObjectDB.objects.filter(id__in=older)) if older else []
        for bearer, older in ids.items()
    }


def older_ids(bearers: Collection[Bearer]) -> OlderIds:
    """Return the ids of older characters with the same names. Any thread may call this.

    Makes one query, or one per name if a frequent name uses up the limit.

    Raises:
        DatabaseError: The database cannot be read.
    """
    if not bearers:
        return {}
    ways = {bearer: _ways_to_write(bearer) for bearer in bearers}
    called = ObjectDB.objects.filter(db_key__in=set().union(*ways.values())).order_by("id")
    most = MOST_OLDER * len(bearers)
    rows = called.values_list("id", "db_key")[:most]
    # If a frequent name used up the limit, ask for each name separately.
    if len(rows) == most and len(bearers) > 1:
        return {bearer: ids for one in bearers for bearer, ids in older_ids([one]).items()}
    return {
        bearer: [known for known, key in rows if key in ways[bearer] and _is_before(known, bearer)]
        for bearer in bearers
    }


def _is_before(known: int, bearer: Bearer) -> bool:
    """True if the character with this id is older than the character that bears a name.

    A deleted character counts as the newest.
    """
    return not bearer.ref.isdecimal() or known < int(bearer.ref)


def _ways_to_write(bearer: Bearer) -> set[str]:
    """Return the ways to write a name in which keys of objects may have it."""
    ways = {spell_name(bearer.name), bearer.folded}
    return {way for one in ways for way in (one, one.title(), one.capitalize(), one.upper())}
