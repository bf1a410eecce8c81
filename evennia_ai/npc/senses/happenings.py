"""Happenings: what NPCs see happen. A game reports its own happenings with `happened`.

A happening becomes a record of each NPC that could see it, even if no NPC answers. Its text is data
for the NPC: one line, without markup, cut at a limit.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import DatabaseError
from evennia.utils import logger

from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.engine.history.records import canonical_json
from evennia_ai.engine.history.role_markup import neutralize_markup
from evennia_ai.engine.prompt.names import SOMEONE, quote_name
from evennia_ai.npc.senses.events import ERRAND, HEARD, TICK, Event, Kind
from evennia_ai.npc.senses.labels import store_label
from evennia_ai.npc.senses.perception import heard_text
from evennia_ai.npc.senses.presence import (
    NPC,
    HasMind,
    can_see,
    is_alone_with,
    is_unplayed,
    known_ref,
    rank_of,
    room_ref_of,
)
from evennia_ai.npc.senses.text import one_line, plain_name, strip_markup
from evennia_ai.npc.senses.utterance import hops_of, line_of

MAX_DATA: Final = 4000
"""The most characters of a happening's data as JSON."""

MAX_ITEM: Final = 300
"""The most characters of an item that is given by its name."""

UNSEEN: Final = "something"
"""The name of a thing that the NPC cannot see."""

_KIND: Final = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_NAMED: Final = re.compile(r"\{(actor|item|to)\}")
_TAKEN: Final = HEARD | {TICK, ERRAND}


class HappeningError(EvenniaAIError):
    """A game reported a happening that cannot be recorded. The message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """Something that happens, before it is known which NPCs see it.

    `text` may contain `{actor}`, `{item}` and `{to}`. For each NPC they are replaced by the names
    that it knows. `detail` is added after the text, unchanged. `item` is an object or a name.
    """

    kind: str
    text: str
    actor: Any = None
    item: Any = None
    to: Any = None
    data: Mapping[str, Any] = field(default_factory=dict)
    wants_answer: bool = False
    detail: str = ""


def happened(
    place_or_npc: Any,
    kind: str,
    text: str,
    *,
    actor: Any = None,
    item: Any = None,
    to: Any = None,
    data: Mapping[str, Any] | None = None,
    wants_answer: bool = False,
) -> int:
    """Report an event to NPCs and return how many of them perceived it.

    Example, in a game's combat code::

        from evennia_ai import happened

        happened(
            attacker.location, "combat", "{actor} hits {to} with {item}.",
            actor=attacker, to=target, item=sword, data={"damage": 7},
        )

    Args:
        place_or_npc: A room, for all its NPCs, or one NPC.
        kind: A word of the game, such as "combat". Builders use it to choose what an NPC reacts to.
        text: One line in the third person. For each NPC, `{actor}`, `{item}` and `{to}` become the
            names that it knows, and "you" for the NPC itself. Nothing else is replaced.
        actor: The character who did it. NPCs that cannot see the actor perceive nothing. The actor
            does not perceive its own act.
        item: The object that was used, shown or given, or its name.
        to: The character to whom it was done.
        data: More facts as JSON values, stored with the record.
        wants_answer: True if the NPCs should answer. With `to`, only that NPC should.

    Raises:
        HappeningError: The kind is not a word or is reserved, the text is empty, or the data cannot
            be stored. No NPC perceived anything.
    """
    happening = Happening(
        kind=kind,
        text=text,
        actor=actor,
        item=item,
        to=to,
        data=dict(data or {}),
        wants_answer=wants_answer,
    )
    _check(happening)
    return sum(let_perceive(npc, happening) for npc in npcs_in(place_or_npc))


def npcs_in(place_or_npc: Any) -> list[Any]:
    """Return the NPCs with a mind in a room. For an NPC return the NPC itself, for None nothing."""
    if place_or_npc is None:
        return []
    if isinstance(place_or_npc, HasMind):
        return [place_or_npc]
    there = place_or_npc.contents_get(content_type="character")
    return [npc for npc in there if isinstance(npc, HasMind)]


def let_perceive(npc: NPC, happening: Happening) -> bool:
    """Let one NPC perceive a happening. Return False if it cannot perceive it."""
    try:
        event = event_for(npc, happening)
    except DatabaseError as error:
        logger.log_err(
            f"evennia_ai: NPC {npc.id} missed a happening, the database is unreadable: {error}"
        )
        return False
    if event is None:
        return False
    npc.ai.hear(event)
    return True


def event_for(npc: NPC, happening: Happening) -> Event | None:
    """Return the happening as `npc` perceives it, None if it does not perceive it."""
    actor, to = happening.actor, happening.to
    if npc.has_account or actor == npc or (actor is not None and not can_see(npc, actor)):
        return None
    names = {"actor": _name(npc, actor), "item": item_name(npc, happening.item)}
    names["to"] = "you" if to == npc else _name(npc, to)
    told = {key: quote_name(name) for key, name in names.items()}
    # A name of a thing is quoted. If the game wrote the item as a text ("two coins and a map"), it
    # stays without quotes.
    if isinstance(happening.item, str):
        told["item"] = names["item"]
    line = _NAMED.sub(lambda marker: told[marker[1]] or marker[0], happening.text)
    text = mark_kind(happening.kind, line, by=names["actor"])
    return Event(
        kind=happening.kind,
        speaker_ref=str(actor.id) if actor is not None else "",
        speaker_name=names["actor"],
        speaker_rank=rank_of(actor) if actor is not None else "",
        known_ref=known_ref(npc, actor) if actor is not None else "",
        text=heard_text(f"{text} {happening.detail}"),
        room_ref=room_ref_of(npc),
        to_ref=str(to.id) if to is not None else "",
        alone=actor is not None and is_alone_with(npc, actor),
        hops=(hops := hops_of(actor)),
        unplayed=actor is not None and is_unplayed(actor),
        line=line_of(hops),
        item=names["item"],
        data=happening.data,
        wants_answer=happening.wants_answer and (to is None or to == npc),
    )


def mark_kind(kind: Kind, line: str, *, by: str) -> str:
    """Return the line. If the name `by` could be read as part of a sentence, put the kind in front.

    Without the kind, a player could choose a name that reads like something that happened.
    """
    return line if quote_name(by) == by or not line else f"(event, {kind}) {line}"


def item_name(npc: NPC, item: Any, *, count: int = 1) -> str:
    """Return what `npc` calls a number of equal things: "a rope", "two ropes"; "" for None.

    Return "something" if the NPC cannot see the thing or the thing has no name.
    """
    if item is None:
        return ""
    if isinstance(item, str):
        return neutralize_markup(heard_text(item)[:MAX_ITEM])
    shown = str(item.get_display_name(npc)).strip()
    if not one_line(strip_markup(shown)) or not item.access(npc, "view"):
        return UNSEEN
    numbered = str(item.get_numbered_name(count, npc)[0 if count == 1 else 1])
    return neutralize_markup(plain_name(numbered.strip() or shown))


def describe_to(npc: NPC, thing: Any, *, most: int) -> str:
    """Return the description of a thing or place as `npc` sees it, on one line.

    Anybody may write descriptions, so text that imitates chat markup or facts is changed.
    """
    return neutralize_markup(heard_text(str(thing.get_display_desc(npc)))[:most])


def _name(npc: NPC, other: Any) -> str:
    """Return what `npc` calls a character, "" for None."""
    if other is None:
        return ""
    return store_label(npc, other) if can_see(npc, other) else SOMEONE


def _check(happening: Happening) -> None:
    kind = happening.kind
    if not _KIND.fullmatch(kind) or kind in _TAKEN:
        raise HappeningError(
            f"{kind!r} cannot be the kind of a happening: use one word of small letters, digits, _"
            f" and -, beginning with a letter, and none of {', '.join(sorted(_TAKEN))}"
        )
    if not heard_text(happening.text):
        raise HappeningError(f"a happening of kind {kind!r} has no text; describe it in one line")
    try:
        length = len(canonical_json(happening.data))
    except (TypeError, ValueError) as error:
        raise HappeningError(
            f"the data of a happening of kind {kind!r} cannot be stored as JSON: {error};"
            " give ids and names instead of objects"
        ) from error
    if length > MAX_DATA:
        raise HappeningError(
            f"the data of a happening of kind {kind!r} has {length} characters as JSON;"
            f" {MAX_DATA} are allowed"
        )
