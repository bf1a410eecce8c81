"""Presence: the characters near an NPC, which of them it sees, and as whom it knows them.

A character may wear a guise, which hides who they are. The NPC then uses nothing that it knows of
the person. A guise has its own reference (`12~0f3a9c21`), under which personas, relations,
memories, lore and whispers are looked up. Without the guise, the NPC knows the person as before.
What it learnt of the guise belongs to the guise.

The functions here support the masks of Evennia's `rpsystem`. A game with another recognition system
overrides `guise_of` and `called_by` in its NPC typeclass.
"""

import re
from collections.abc import Hashable, Iterable
from functools import lru_cache
from hashlib import sha256
from types import SimpleNamespace
from typing import Any, Final, Protocol

from django.conf import settings
from django.db import connection
from evennia.locks.lockfuncs import perm
from evennia.locks.lockhandler import LockHandler, get_all_lockfuncs
from evennia.objects.models import ObjectDB
from evennia.utils.utils import class_from_module

from evennia_ai.engine.prompt.components import GAME, Scope
from evennia_ai.engine.prompt.names import in_guise
from evennia_ai.npc.senses.choices import has_opted_out
from evennia_ai.npc.senses.events import Event
from evennia_ai.npc.senses.text import plain_name


class HasMind:
    """The marker class of typeclasses with a mind: `AIMixin` and its subclasses."""


class NPC(Protocol):
    """A character with a mind, such as `AINPC`, as the rest of the package uses it.

    Evennia has no type annotations, so most attributes are `Any`. `ai` is a `npc.inputs.mind.Mind`.
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
    ndb: Any
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

    def guise_of(self, person: Any) -> str: ...

    def called_by(self, speaker: Any) -> tuple[str, ...]: ...

    def why_unable(self) -> str: ...


MIND: Final = "ai"
"""The name of the attribute in which an NPC has its mind."""
ZONE: Final = "zone"
"""The tag category for the zones of a room."""
FACTION: Final = "faction"
"""The tag category for the factions of an NPC."""


def object_of(ref: str) -> Any:
    """Return the object with this reference, None if it no longer exists.

    It comes from Evennia's cache if possible.
    """
    return ObjectDB.objects.get_id(int(ref)) if ref.isdecimal() else None


def scopes_of(npc: NPC) -> tuple[Scope, ...]:
    """Return the scopes that apply to `npc` now: game, zones, room, factions, NPC."""
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
    """True if `npc` can see `other` by the rules of the game.

    The room's `filter_visible` decides, which checks the locks `view` and `search`. A character
    whose name for this looker is empty counts as hidden. So does one whose player opted out.
    """
    if other == npc:
        return True
    if has_opted_out(other):
        return False
    if npc.location is not None:
        seen = bool(npc.location.filter_visible([other], npc))
    else:
        seen = bool(other.access(npc, "view"))
    return seen and bool(str(other.get_display_name(npc)).strip())


def room_ref_of(npc: NPC) -> str:
    """Return the reference of the room of `npc`, "" if it has no location."""
    return str(npc.location.id) if npc.location else ""


def bystanders(npc: NPC) -> list[Any]:
    """Return the other characters in the room of `npc`, in order of arrival."""
    if npc.location is None:
        return []
    own_id = npc.id  # comparing objects is three times slower, which matters in full rooms
    return [other for other in _characters_in(npc.location) if other.id != own_id]


def _characters_in(room: Any) -> list[Any]:
    there: list[Any] = room.contents_get(content_type="character")
    return there


def seen_here(npc: NPC) -> list[Any]:
    """Return the other characters that `npc` sees in its room, in order of arrival."""
    return [other for other in bystanders(npc) if can_see(npc, other)]


def is_npc(character: Any) -> bool:
    """True if the character has a mind and no player plays it now."""
    return issubclass(type(character), HasMind) and not character.has_account


_DEFAULT_SDESC: Final = "a normal person"
"""The default short description of `rpsystem`, which is not used as a name."""
_ARTICLE: Final = re.compile(r"\A(?:an?|the|some)\s+", re.IGNORECASE)


def known_ref(npc: NPC, person: Any) -> str:
    """Return the reference by which `npc` knows a person: the person's own or their guise's."""
    guise = npc.guise_of(person)
    if not guise:
        return str(person.id)
    return in_guise(str(person.id), sha256(guise.encode()).hexdigest()[:8])


def mask_of(npc: Any, person: Any) -> str:
    """Return the description of a person's mask in `rpsystem`; "" if they wear none."""
    sdesc = getattr(person, "sdesc", None)
    if sdesc is None or person.access(npc, "enable_recog", default=True):
        return ""
    return plain_name(str(sdesc.get()))


def sdesc_names(character: Any) -> tuple[str, ...]:
    """Return the names in a short description: "a one-eyed smith", "one-eyed smith", "smith"."""
    sdesc = getattr(character, "sdesc", None)
    described = plain_name(str(sdesc.get() or "")) if sdesc is not None else ""
    if not described or described.casefold() in (_DEFAULT_SDESC, "someone"):
        return ()
    bare = _ARTICLE.sub("", described)
    return tuple(dict.fromkeys((described, bare, bare.split()[-1])))


def recog_names(character: Any, speaker: Any) -> tuple[str, ...]:
    """Return the name that `speaker` gave to a character with the command `recog`, if any."""
    recog = getattr(speaker, "recog", None)
    name = recog.get(character) if recog is not None else None
    return (plain_name(str(name)),) if name else ()


def names_of(character: Any) -> tuple[str, ...]:
    """Return the names of a character: key, aliases, and those of its short description."""
    aliases = sorted(map(str, character.aliases.all()))
    return (plain_name(character.key), *aliases, *sdesc_names(character))


def names_for(npc: NPC, speaker_ref: str) -> tuple[str, ...]:
    """Return the names of an NPC, and those that this speaker uses for it."""
    speaker = object_of(speaker_ref)
    return names_of(npc) if speaker is None else (*names_of(npc), *npc.called_by(speaker))


def objects_with_mind() -> Iterable[tuple[int, str, str | None, str]]:
    """Return id, name, room name and typeclass path of every object with a mind.

    No object is loaded.
    """
    rows: Iterable[tuple[int, str, str | None, str]] = ObjectDB.objects.filter(
        db_typeclass_path__in=paths_with_mind()
    ).values_list("id", "db_key", "db_location__db_key", "db_typeclass_path")
    return rows


def find_again(name: str, ref: str, has_mind: bool) -> str:
    """Return the reference of the object with this name, "" if there is none, or several.

    Args:
        name: The name of the object.
        ref: The reference that the object had. It decides if several have the name.
        has_mind: True to find only NPCs.
    """
    rows = ObjectDB.objects.filter(db_key__iexact=name)
    if has_mind:
        rows = rows.filter(db_typeclass_path__in=paths_with_mind())
    found = [str(number) for number in rows.values_list("id", flat=True)]
    if ref in found:
        return ref
    return found[0] if len(found) == 1 else ""


_PATHS: Final = """
    WITH RECURSIVE found (path) AS (
        SELECT min(db_typeclass_path) FROM objects_objectdb
        UNION ALL
        SELECT (SELECT min(db_typeclass_path) FROM objects_objectdb WHERE db_typeclass_path > path)
        FROM found WHERE path IS NOT NULL
    )
    SELECT path FROM found WHERE path IS NOT NULL
"""
"""Selects the distinct typeclass paths with one index step per path, not per object."""


def paths_with_mind() -> list[str]:
    """Return the paths of typeclasses with a mind that some object has. Makes one query."""
    with connection.cursor() as cursor:
        cursor.execute(_PATHS)
        paths = [path for (path,) in cursor.fetchall()]
    return [path for path in paths if class_with_mind(path) is not None]


@lru_cache(maxsize=512)
def class_with_mind(path: str) -> type[HasMind] | None:
    """Return the typeclass at this path. None if it has no mind or no longer exists."""
    try:
        found = class_from_module(path)
    except ImportError:
        return None
    return found if isinstance(found, type) and issubclass(found, HasMind) else None


def is_character(thing: Any) -> bool:
    """True for a character. False for a thing, a room or an exit."""
    return "character" in getattr(thing, "_content_types", ())


def is_unplayed(speaker: Any) -> bool:
    """True for a thing or a scripted character, which has no session and no mind."""
    return not speaker.sessions.all() and not is_npc(speaker)


def is_playable_by(character: Any, account: Any) -> bool:
    """True if the character is one of the account's own. NPCs are never."""
    return account is not None and character in account.characters.all()


def is_on(npc: NPC) -> bool:
    """True if the NPC is switched on and no player plays it."""
    return bool(npc.ai_enabled) and not npc.has_account


def is_alone_with(npc: NPC, speaker: Any) -> bool:
    """True if `speaker` and `npc` are the only characters in the room."""
    if npc.location is None:
        return True
    both = (npc.id, speaker.id)
    return all(one.id in both for one in _characters_in(npc.location))


MOST_RIGHTS: Final = 256
_ranks: Final[dict[Hashable, str]] = {}


def rank_of(speaker: Any) -> str:
    """Return a speaker's highest permission as a word; "NPC" for an NPC with a mind.

    It is cached by the speaker's rights, because every listener of a line asks for it. A game may
    replace the lock function `perm`. Then nothing is cached.
    """
    if is_npc(speaker):
        return "NPC"
    if get_all_lockfuncs()["perm"] is not perm:
        return _highest_rank(speaker)
    rights = _rights_of(speaker)
    if rights not in _ranks:
        if len(_ranks) >= MOST_RIGHTS:
            _ranks.clear()
        _ranks[rights] = _highest_rank(speaker)
    return _ranks[rights]


def _rights_of(speaker: Any) -> Hashable:
    """Return everything about a speaker that Evennia's lock function `perm` depends on."""
    account = speaker.account
    return (
        type(speaker),
        speaker.locks.lock_bypass,
        tuple(speaker.permissions.all()),
        account and tuple(account.permissions.all()),
        bool(account and account.attributes.get("_quell")),
    )


def _highest_rank(speaker: Any) -> str:
    ranks = reversed(settings.PERMISSION_HIERARCHY)
    return next((rank for rank in ranks if _locks_of_ranks().check(speaker, rank)), "Player")


@lru_cache(maxsize=1)
def _locks_of_ranks() -> LockHandler:
    """Return a lock handler with one lock per rank. Cached, because parsing locks is slow."""
    ranks = [f"{rank}:perm({rank})" for rank in settings.PERMISSION_HIERARCHY]
    return LockHandler(SimpleNamespace(lock_storage=";".join(ranks)))


def why_gone(npc: NPC, event: Event) -> str:
    """Return why nobody can be answered any longer, "" if somebody can.

    The reasons are: the NPC is gone, cannot act or is elsewhere; or the speaker has left, and no
    player is present who could hear the answer.
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
    """True if the speaker or a player who could hear an answer is still present."""
    if not event.speaker_ref or event.kind == "leave" or npc.location is None:
        return True
    if any(str(other.id) == event.speaker_ref for other in npc.location.contents_get()):
        return True
    there = npc.location.contents_get(content_type="character")
    return not event.private and any(not is_npc(other) for other in there)
