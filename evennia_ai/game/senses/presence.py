"""Presence: an NPC, who is around it, whom of them it can see, and what it calls them.

A label, which stands in every line of every prompt, is made from who somebody is, not from the name
alone. Who bore a name first, as far as the NPC knows, has it plain; whoever else is called so, or
nearly so, has a mark behind it that stays theirs. That is settled when they are perceived and
stored with what they said, so nobody who comes later changes a line that was sent. The NPC's own
names, and words that stand for somebody else in a prompt, are nobody's to bear plainly.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, Final, Protocol

from django.conf import settings
from django.db import DatabaseError
from evennia.locks.lockhandler import LockHandler
from evennia.objects.models import ObjectDB
from evennia.utils import logger

from evennia_ai.errors import StoreError
from evennia_ai.game.senses.events import Event
from evennia_ai.game.senses.namesakes import Bearer, OlderCalled, older_called
from evennia_ai.game.senses.text import person_name, plain_name
from evennia_ai.minds.view import char_name_of
from evennia_ai.prompt.components import GAME, Scope
from evennia_ai.prompt.names import bounded, folded, is_word_of_the_game, marked
from evennia_ai.store import memories
from evennia_ai.store.memories import KnownNames, NewlyNamed


class HasMind:
    """Marks the typeclasses of characters with a mind: `AIMixin` is one, and what is made of it."""


class NPC(Protocol):
    """A character of ours, as all who deal with it see it; `AINPC` is one.

    Evennia has no types of its own: what it gives is of any. `ai` is its mind
    (`game.inputs.mind.Mind`).
    """

    id: Any
    pk: Any
    key: Any
    location: Any
    home: Any
    db: Any
    aliases: Any
    attributes: Any
    contents: Any
    locks: Any
    permissions: Any
    tags: Any

    ai: Any
    ai_enabled: Any
    ai_partner: Any
    fallback_line: Any
    has_account: Any
    is_superuser: Any
    witness: Any

    def access(self, accessing_obj: Any, access_type: str = ..., **kwargs: Any) -> bool: ...

    def at_look(self, target: Any, **kwargs: Any) -> Any: ...

    def at_pre_say(self, message: str, **kwargs: Any) -> Any: ...

    def get_display_name(self, looker: Any = None, **kwargs: Any) -> Any: ...

    def msg(self, text: Any = None, from_obj: Any = None, **kwargs: Any) -> None: ...

    def understands(self, language: str) -> bool: ...

    def why_unable(self) -> str: ...


ZONE: Final = "zone"
"""Category of the tags that say to which zones a room belongs."""
FACTION: Final = "faction"
"""Category of the tags that say to which factions an NPC belongs."""


def object_of(ref: str) -> Any:
    """The object of a reference, from memory where it is there; None: there is none any more."""
    return ObjectDB.objects.get_id(int(ref)) if ref.isdecimal() else None


def scopes_of(npc: NPC) -> tuple[Scope, ...]:
    """The scopes that apply to `npc` where it is: game, zones, factions, room, NPC."""
    room = npc.location
    factions = sorted(npc.tags.get(category=FACTION, return_list=True))
    own = (
        *(Scope(kind="faction", ref=faction) for faction in factions),
        Scope(kind="npc", ref=str(npc.id)),
    )
    if room is None:
        return (GAME, *own)
    zones = sorted(room.tags.get(category=ZONE, return_list=True))
    named = (Scope(kind="zone", ref=zone) for zone in zones)
    return (GAME, *named, Scope(kind="room", ref=str(room.id)), *own)


def can_see(npc: NPC, other: Any) -> bool:
    """Whether `npc` can see `other`, by the game's own rules.

    The room's `filter_visible` decides, which asks the locks `view` and `search`; somebody without
    a name for this looker is hidden as well.
    """
    if other == npc:
        return True
    if npc.location is not None:
        seen = bool(npc.location.filter_visible([other], npc))
    else:
        seen = bool(other.access(npc, "view"))
    return seen and bool(str(other.get_display_name(npc)).strip())


def room_ref_of(npc: NPC) -> str:
    """The reference of the room where `npc` is, "" for nowhere."""
    return str(npc.location.id) if npc.location else ""


def bystanders(npc: NPC) -> list[Any]:
    """The other characters where `npc` is, in the order in which they came."""
    if npc.location is None:
        return []
    there = npc.location.contents_get(content_type="character")
    return [other for other in there if other != npc]


def seen_here(npc: NPC) -> list[Any]:
    """The other characters where `npc` is that it can see, in the order in which they came."""
    return [other for other in bystanders(npc) if can_see(npc, other)]


def is_npc(character: Any) -> bool:
    """Whether this is one of ours, and not a player whose character has a mind as well."""
    return issubclass(type(character), HasMind) and not character.has_account


def is_character(thing: Any) -> bool:
    """Whether this is somebody, and not a thing, a room or an exit."""
    return "character" in getattr(thing, "_content_types", ())


def is_on(npc: NPC) -> bool:
    """Whether the NPC answers; never while a player plays it."""
    return bool(npc.ai_enabled) and not npc.has_account


def is_alone_with(npc: NPC, speaker: Any) -> bool:
    """Whether nobody but `speaker` is where `npc` is."""
    return all(other == speaker for other in bystanders(npc))


def rank_of(speaker: Any) -> str:
    """A speaker's permission in words: the highest it has; "NPC" for one of ours."""
    if is_npc(speaker):
        return "NPC"
    ranks = reversed(settings.PERMISSION_HIERARCHY)
    return next((rank for rank in ranks if _locks_of_ranks().check(speaker, rank)), "Player")


@lru_cache(maxsize=1)
def _locks_of_ranks() -> LockHandler:
    """A lock for each rank, read once: reading them anew would cost more than all the rest."""
    ranks = [f"{rank}:perm({rank})" for rank in settings.PERMISSION_HIERARCHY]
    return LockHandler(SimpleNamespace(lock_storage=";".join(ranks)))


def why_gone(npc: NPC, event: Event) -> str:
    """Why nobody can be answered any more to `event`, "" while somebody can.

    The NPC is gone, cannot act or is elsewhere; or whoever it would answer is not there any more,
    and nobody else who could want to hear it.
    """
    if npc.pk is None:
        return "the NPC is gone"
    absent = ""
    if room_ref_of(npc) != event.room_ref:
        absent = "the NPC is somewhere else now"
    elif not _is_somebody_waiting(npc, event):
        absent = f"{event.speaker_name} is not here any more"
    return str(npc.why_unable()) or absent


def _is_somebody_waiting(npc: NPC, event: Event) -> bool:
    """Whether the one who did it is still there, or others who could hear an answer."""
    if not event.speaker_ref or event.kind == "leave" or npc.location is None:
        return True
    if any(str(other.id) == event.speaker_ref for other in npc.location.contents_get()):
        return True
    there = npc.location.contents_get(content_type="character")
    return not event.private and any(not is_npc(other) for other in there)


MOST_FOLDED: Final = 200
"""Characters of a folded name that are stored."""


def label_of(npc: NPC, person: Any) -> str:
    """What `npc` calls somebody it sees; nothing is written. Warm, this makes no query."""
    bearer = _bearer(npc, person)
    known = _known(npc, bearer.folded)
    if not _is_numbered(npc, bearer, known):
        _foresee(npc, [person, *seen_here(npc)])
    return _label(npc, bearer, _numbers(npc, person, bearer, known)[bearer.ref])


def settled_label(npc: NPC, person: Any) -> str:
    """The same where `npc` perceives them: from now on this label is theirs alone.

    All NPCs that see somebody new settle it at once: a line that twenty hear costs what one does.
    Where the database is away the label is what it would be, and is settled another time.
    """
    bearer = _bearer(npc, person)
    known = _known(npc, bearer.folded)
    if person.id is not None and bearer.ref not in known:
        known = _settled_by_all(npc, person).get(bearer.folded, known)
    return _label(npc, bearer, _numbers(npc, person, bearer, known)[bearer.ref])


def _settled_by_all(npc: NPC, person: Any) -> KnownNames:
    """Write down for `npc` and those beside it what they call somebody new; what `npc` knows."""
    others = (one for one in bystanders(npc) if one != person and is_npc(one))
    company = [npc, *(one for one in others if can_see(one, person))]
    older = older_called({_bearer(one, person): person for one in company})
    try:
        memories.names_known_by.take_in(str(one.id) for one in company)
        new = [_newly_named(one, person, older) for one in company]
        return memories.settle_names([one for one in new if one])[str(npc.id)]
    except StoreError as error:
        logger.log_err(f"evennia_ai: NPC {npc.id}: a name is not settled: {error}")
        _foresee(npc, [person], older)
        return {}


def _newly_named(npc: NPC, person: Any, older: OlderCalled) -> NewlyNamed | None:
    """Who bears the name of `person`, up to them; None where `npc` knows them already."""
    bearer = _bearer(npc, person)
    known = _known(npc, bearer.folded)
    if bearer.ref in known:
        return None
    _foresee(npc, [person], older)
    numbers = _numbers(npc, person, bearer, known)
    people = tuple(numbers)[: numbers[bearer.ref]]
    return NewlyNamed(npc_ref=str(npc.id), folded=bearer.folded, people=people)


def with_labels(npc: NPC, text: str, people: Iterable[Any]) -> str:
    """The game's own text with what `npc` calls these people, where their names stand in it."""
    for person in people:
        shown = str(person.get_display_name(npc))
        label = bounded(label_of(npc, person))
        if shown.strip() and label != shown:
            told = label.replace("\\", r"\\")
            text = re.sub(rf"(?<!\w){re.escape(shown)}(?!\w)", told, text)
    return text


def _bearer(npc: NPC, person: Any) -> Bearer:
    name = person_name(str(person.get_display_name(npc)))
    return Bearer(str(person.id), name, folded(name)[:MOST_FOLDED])


def own_names(npc: NPC) -> tuple[str, ...]:
    """What `npc` is called: by its card where that can be read, and by the game."""
    key, view = plain_name(npc.key), npc.ai.known_view
    try:
        return (char_name_of(key, str(npc.id)) if view is None else view.char_name), key
    except (StoreError, DatabaseError):  # told by the turn, which needs the view and is put off
        return (key,)


def _label(npc: NPC, bearer: Bearer, number: int) -> str:
    return _marked(bearer.name, number + (bearer.folded in _folds(own_names(npc))))


@lru_cache(maxsize=1024)
def _folds(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(folded(name)[:MOST_FOLDED] for name in names)


@lru_cache(maxsize=4096)
def _marked(name: str, number: int) -> str:
    return marked(name, number, is_word=is_word_of_the_game(name))


def _known(npc: NPC, fold: str) -> Mapping[str, int]:
    """The numbers of those who are settled to bear a name, by reference."""
    try:
        return memories.names_known_by(str(npc.id)).get(fold, {})
    except StoreError as error:
        logger.log_err(f"evennia_ai: NPC {npc.id}: names cannot be read: {error}")
        return {}


def _numbers(npc: NPC, person: Any, bearer: Bearer, known: Mapping[str, int]) -> Mapping[str, int]:
    """The `known` with those who are foreseen and not settled yet, the given one among them."""
    if bearer.ref in known:
        return known
    foreseen = npc.ai.foreseen_names.get(bearer.folded, {})
    if person.id is None:
        older = older_called({bearer: person})
        foreseen = dict.fromkeys([*foreseen, *_first_bearers(npc, person, bearer, older)])
    numbers = dict(known)
    for ref in foreseen:
        numbers.setdefault(ref, len(numbers) + 1)
    return numbers


def _is_numbered(npc: NPC, bearer: Bearer, known: Mapping[str, int]) -> bool:
    return bearer.ref in known or bearer.ref in npc.ai.foreseen_names.get(bearer.folded, ())


def _foresee(npc: NPC, people: Iterable[Any], older: OlderCalled | None = None) -> None:
    """Have `npc` know who of these bears which name, while nothing of it is settled.

    It is looked up for all of them at once, where `older` does not tell it already.
    """
    bearers = {_bearer(npc, person): person for person in people if person.id is not None}
    new = {
        bearer: person
        for bearer, person in bearers.items()
        if not _is_numbered(npc, bearer, _known(npc, bearer.folded))
    }
    if older is None:
        older = older_called(new)
    for bearer, person in new.items():
        foreseen = npc.ai.foreseen_names.setdefault(bearer.folded, {})
        foreseen.update(dict.fromkeys(_first_bearers(npc, person, bearer, older)))


def _first_bearers(npc: NPC, person: Any, bearer: Bearer, older: OlderCalled) -> list[str]:
    """Those who bore the name before somebody, as far as can be found, and then they themselves.

    Older characters that are called so, whatever case it is written in, and of those who are here
    every NPC and every older character whose name is taken for this one. Before somebody who was
    deleted since, whose age nobody knows any more, that is everybody called so.
    """
    gone = person.id is None  # deleted since: who it was cannot be found any more
    here = [
        other
        for other in bystanders(npc)
        if folded(plain_name(other.key))[:MOST_FOLDED] == bearer.folded
        and (gone or is_npc(other) or other.id < person.id)
    ]
    found = [*here, *older.get(bearer, ())]
    first = sorted({one.id for one in found if is_character(one) and one not in (npc, person)})
    return [*map(str, first), bearer.ref]
