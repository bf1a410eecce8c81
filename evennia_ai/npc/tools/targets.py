"""Find the person or thing that a model means by a name, among those that the NPC perceives.

A model's text is only compared with names. Evennia's search syntax (`me`, `#1`, `*account`,
`2-sword`, nicks) has no effect, and nobody receives a message. What the game hides from the NPC by
locks or `filter_visible` cannot be found.

If a name was only guessed from its start, the model must learn that. Tools of a game also look up
names, at any depth of their code. So the guesses of a running tool are collected here, and the
toolbox adds them to its result.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

from evennia.objects.models import ObjectDB

from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.engine.prompt.names import remove_mark, wearer_of
from evennia_ai.npc.senses.choices import has_opted_out
from evennia_ai.npc.senses.labels import label_of
from evennia_ai.npc.senses.presence import NPC, is_character, known_ref, object_of
from evennia_ai.npc.senses.text import plain_name
from evennia_ai.store import memories
from evennia_ai.store.history import conversations


class Refused(EvenniaAIError):  # noqa: N818 - it is an answer to the model, not a failure
    """Raised by a tool that has done nothing. The model reads the text."""


MOST_RECORDS: Final = 2_000
"""The number of newest records, over all conversations, in which an NPC looks for people it met."""


def remembered_people(npc_ref: str) -> list[Any]:
    """Return the people whom the NPC has memories of."""
    return _people(npc_ref, (memory.about for memory in memories.held_by(npc_ref).memories))


def acquaintances(npc_ref: str) -> list[Any]:
    """Return the people whom the NPC remembers or recently met.

    People who had themselves erased are left out.
    """
    met = conversations.speakers(npc_ref, most_records=MOST_RECORDS)
    return list(dict.fromkeys([*remembered_people(npc_ref), *_people(npc_ref, met)]))


def _people(npc_ref: str, refs: Iterable[str]) -> list[Any]:
    """Return the people with these references whom the NPC would recognise now."""
    npc = object_of(npc_ref)
    found = {ref: object_of(wearer_of(ref)) for ref in refs if ref}
    return [
        one
        for ref, one in found.items()
        if one is not None and (npc is None or known_ref(npc, one) == ref)
    ]


_now: Final[ContextVar[list[str] | None]] = ContextVar("evennia_ai_guesses", default=None)


@contextmanager
def guesses_of_tool() -> Iterator[list[str]]:
    """Yield a list that collects the guesses made inside this context, one sentence each."""
    gathered: list[str] = []
    token = _now.set(gathered)
    try:
        yield gathered
    finally:
        _now.reset(token)


def note_guess(name: str, *, meant: str) -> None:
    """Record the guess that `name` means the object that the NPC calls `meant`."""
    sentence = f"'{name}' was understood as {meant}."
    gathered = _now.get()
    if gathered is not None and sentence not in gathered:
        gathered.append(sentence)


MOST_LISTED: Final = 8
SHORTEST_START: Final = 3
"""The fewest characters that count as the start of a name."""

_ARTICLE: Final = re.compile(r"^(?:the|an?|my|your) (?=\S)")


class _Named(NamedTuple):
    """The objects with exactly this name. Without any, `began` has those that begin with it."""

    exact: Sequence[Any] = ()
    began: Sequence[Any] = ()


def visible_people(npc: NPC) -> list[Any]:
    """Return the other characters in the room that the NPC can see."""
    return _visible_in(npc, npc.location, content_type="character")


def things(npc: NPC) -> list[Any]:
    """Return the things in the NPC's room that it can see, without people and exits."""
    return _visible_in(npc, npc.location, content_type="object")


def carried_things(npc: NPC) -> list[Any]:
    """Return the things that the NPC carries and can see."""
    return _visible_in(npc, npc, content_type=None)


def visible_exits(npc: NPC) -> list[Any]:
    """Return the exits of the NPC's room that it can see."""
    return _visible_in(npc, npc.location, content_type="exit")


def person(npc: NPC, name: str, *, answered: str = "", also: Iterable[Any] = ()) -> Any:
    """Return the person whom the NPC means by `name`.

    The NPC cannot mean itself or somebody whom it does not see. The start of a name is enough, with
    one exception: if the NPC knows a person with exactly this name, who may have left, nobody else
    is meant. A whisper for that person must not reach another one.

    Args:
        name: A name as the NPC knows it.
        answered: The reference of the person whom the turn answers, who is meant if several people
            have the name. If the label of that person has a mark, the name must have it too.
        also: Other people who may be meant.

    Raises:
        Refused: No person or several people are meant.
    """
    among, none = (
        list(dict.fromkeys([*visible_people(npc), *also])),
        f"There is no '{plain_name(name)}'",
    )
    found = _match_names(npc, name, among)
    if found.exact:
        meant = [one for one in found.exact if str(one.id) == answered] or found.exact
        return _the_only_one(
            npc, name, [*meant, *_namesakes(npc, name, among, answered)], none=none
        )
    began = _the_only_one(npc, name, found.began, none=f"{none} here.")
    if _match_names(npc, name, [npc, *acquaintances(npc.ai.ref)]).exact:
        raise Refused(f"{none} here; {_shown_label(npc, began)} is somebody else.")
    return _accept_guess(npc, name, began)


def find_thing(npc: NPC, name: str, among: Sequence[Any], *, none: str) -> Any:
    """Return the thing that `name` means, or the first of several things that look alike.

    Args:
        among: The things that may be meant.
        none: The refusal if no thing has the name. "{}" is replaced by the name.

    Raises:
        Refused: No thing or several different things are meant.
    """
    none = none.replace("{}", f"'{plain_name(name)}'")
    found = _match_names(npc, name, among)
    if found.exact:
        return _the_only_one(npc, name, _distinct(npc, found.exact), none=none)
    began = _the_only_one(npc, name, _distinct(npc, found.began), none=none)
    return _accept_guess(npc, name, began)


def shown_name(npc: NPC, seen: Any) -> str:
    """Return the name by which the NPC knows an object that it sees."""
    return _shown_label(npc, seen)


def _visible_in(npc: NPC, place: Any, *, content_type: str | None) -> list[Any]:
    if place is None:
        return []
    found = place.contents_get(content_type=content_type)
    visible = place.filter_visible(found, npc)
    return [one for one in visible if one != npc and not has_opted_out(one)]


def _match_names(npc: NPC, name: str, among: Sequence[Any]) -> _Named:
    """Find objects by their whole name, else by alias, else by the start of name or alias."""
    wanted = _plain(name)
    names = {one: _names(npc, one) for one in among}
    exact = [one for one in among if wanted in names[one]]
    if exact:
        return _Named(exact=exact)
    for one, aliases in _aliases(names).items():
        names[one] |= aliases
    exact = [one for one in among if wanted in names[one]]
    if exact or len(wanted) < SHORTEST_START:
        return _Named(exact=exact)
    began = [one for one in among if any(known.startswith(wanted) for known in names[one])]
    return _Named(began=began)


def _namesakes(npc: NPC, name: str, among: Sequence[Any], answered: str) -> list[Any]:
    """Return the person whom the turn answers, if `name` is their label without its mark."""
    speaker = [one for one in among if str(one.id) == answered]
    labels = ((one, _plain(_shown_label(npc, one))) for one in speaker)
    return [
        one for one, label in labels if _plain(name) != label and _plain(name) == remove_mark(label)
    ]


def _distinct(npc: NPC, found: Sequence[Any]) -> list[Any]:
    """Return one thing of each group of things that look alike."""
    first: dict[str, Any] = {}
    for one in found:
        first.setdefault(_shown_label(npc, one), one)
    return list(first.values())


def _accept_guess(npc: NPC, name: str, meant: Any) -> Any:
    """Return `meant`, and record that only the start of its name was given."""
    note_guess(plain_name(name), meant=_shown_label(npc, meant))
    return meant


def _names(npc: NPC, seen: Any) -> set[str]:
    """Return the names by which the NPC may call an object.

    The object's key is one of them only if the game does not disguise the object.
    """
    name, label = _plain(str(seen.get_display_name(npc))), _plain(_shown_label(npc, seen))
    key = _plain(str(seen.key))
    if remove_mark(label) != label:  # the name without the mark belongs to another person
        return {label}
    is_disguised = re.search(rf"(?<!\w){re.escape(key)}(?!\w)", name) is None
    return {label, name} if is_disguised else {label, name, key}


def _aliases(names: Mapping[Any, set[str]]) -> dict[Any, set[str]]:
    """Return the aliases of all objects that are not disguised, with one query."""
    known = {one.id: one for one, own in names.items() if _plain(str(one.key)) in own}
    of_type = {"db_tags__db_tagtype": "alias", "pk__in": list(known)}
    found: dict[Any, set[str]] = {}
    for pk, alias in ObjectDB.objects.filter(**of_type).values_list("pk", "db_tags__db_key"):
        found.setdefault(known[pk], set()).add(_plain(str(alias)))
    return found


def _the_only_one(npc: NPC, name: str, found: Sequence[Any], *, none: str) -> Any:
    if not found:
        raise Refused(none)
    if len(found) > 1:
        which = ", ".join(_shown_label(npc, one) for one in found[:MOST_LISTED])
        raise Refused(f"'{plain_name(name)}' could be: {which}. Say which.")
    return found[0]


def _shown_label(npc: NPC, seen: Any) -> str:
    if is_character(seen) and seen != npc:
        return label_of(npc, seen)
    return plain_name(str(seen.get_display_name(npc)))


def _plain(name: str) -> str:
    """Return a name in the form that is compared: without markup, case, article and quotes."""
    return _ARTICLE.sub("", plain_name(name).casefold().strip('"'), count=1)
