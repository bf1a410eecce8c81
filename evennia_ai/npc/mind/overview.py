"""The states of NPCs for lists, with the same few queries for any number of NPCs.

What is stored about the NPCs on a page is read with one query for each table. Everything else is in
memory.

This module also records which NPCs guard restricted bases: when a base changes, when the server
starts, and before and after the tags or permissions of an NPC change. Otherwise a builder could end
a guard by removing a tag. Other conditions of a lock are checked in each turn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import getattr_static
from typing import Any, Final

import evennia
from django.db.models.signals import m2m_changed
from django.dispatch import receiver
from evennia.objects.models import ObjectDB
from evennia.typeclasses.attributes import Attribute, AttributeProperty

from evennia_ai.engine.knowledge.pages.page import BaseInfo
from evennia_ai.npc.knowledge.guarding import is_held, names_some, record_guards
from evennia_ai.npc.mind.npc_list import ListedNPC, NPCList
from evennia_ai.npc.npc_settings import ATTRIBUTE, settings_in
from evennia_ai.npc.runtime import Runtime
from evennia_ai.npc.senses.presence import NPC, HasMind, class_with_mind, objects_with_mind
from evennia_ai.npc.senses.witness import call_safely
from evennia_ai.services.llm.resilience import BreakerState
from evennia_ai.store import model_calls
from evennia_ai.store.history import past_turns
from evennia_ai.store.history.past_turns import TurnLine
from evennia_ai.store.knowledge.knowledge_bases import list_bases
from evennia_ai.store.model_calls import NewCall, halts

ENABLED: Final = "ai_enabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class NPCRow:
    """The state of an NPC in a list.

    `answering_seconds` is None if it is not answering. `calls` and `tokens` count from the start of
    the day.
    """

    found: ListedNPC
    is_on: bool
    is_played: bool
    is_paused: bool
    answering_seconds: float | None
    rest_seconds: float
    waiting: int
    waits_because: str
    last: TurnLine | None
    cut: NewCall | None
    """The model call of its last turn, if the server read only part of the prompt."""
    calls: int
    tokens: int
    refused: int
    model: str
    breaker: BreakerState

    @property
    def state(self) -> str:
        """Return the state in one word. Reasons why the NPC cannot answer come first."""
        if self.is_played:
            return "played"
        if not self.is_on:
            return "off"
        if self.is_paused:
            return "paused"
        if self.answering_seconds is not None:
            return "answers"
        if self.rest_seconds and self.waiting:
            return "rests"
        return "waits" if self.waiting else "idle"

    @property
    def silent_because(self) -> str:
        """Return the known reasons why the NPC may not answer, "" if there are none."""
        why = {
            "a player plays it": self.is_played,
            "it is switched off": not self.is_on,
            "it is paused": self.is_paused,
            f"its model {self.model} failed repeatedly and is not asked for a while": self.breaker
            == "open",
            f"what it heard waits: {self.waits_because}": bool(self.waits_because),
            f"{self.refused} answers were refused today by limits": bool(self.refused),
            "its last turn failed": self.last is not None and self.last.state == "failed",
        }
        return "; ".join(words for words, holds in why.items() if holds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """The state of the whole game. `calls` and `tokens` count from the start of the day."""

    npcs: int
    are_more: bool
    """True if there are more NPCs than the list counts."""
    answering: int
    waiting: int
    calls: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What the database holds about NPCs: Attributes by id and name, and the newest turns.

    `cut` has the calls of these turns whose prompt was read only in part, by NPC.
    """

    attributes: Mapping[int, Mapping[str, Any]]
    newest: Mapping[str, TurnLine]
    cut: Mapping[str, NewCall]


def stored_of(shown: Sequence[ListedNPC]) -> Stored:
    """Read what the database holds about these NPCs. This may be called in any thread."""
    newest = past_turns.newest_of_each([one.ref for one in shown])
    cut = model_calls.newest_cut_calls({ref: line.number for ref, line in newest.items()})
    return Stored(attributes=_attributes(shown), newest=newest, cut=cut)


def rows_of(live: Runtime, shown: Sequence[ListedNPC], *, now: float) -> tuple[NPCRow, ...]:
    """Return the states of these NPCs."""
    return rows_from(live, shown, stored_of(shown), now=now)


def rows_from(
    live: Runtime, shown: Sequence[ListedNPC], stored: Stored, *, now: float
) -> tuple[NPCRow, ...]:
    """Return the states of these NPCs from what was read before, without a query."""
    played = {session.puid for session in evennia.SESSION_HANDLER.values()}
    return tuple(
        _row(
            live,
            one,
            stored.attributes.get(one.id, {}),
            last=stored.newest.get(one.ref),
            cut=stored.cut.get(one.ref),
            is_played=one.id in played,
            now=now,
        )
        for one in shown
    )


def game_totals(live: Runtime, npcs: NPCList) -> Totals:
    """Return the state of the whole game. The only query counts the NPCs."""
    used = live.limits.reading("game")
    return Totals(
        npcs=npcs.count,
        are_more=npcs.are_more,
        answering=live.scheduler.running,
        waiting=live.scheduler.waiting_in_all,
        calls=used.calls_per_day,
        tokens=used.tokens_per_day,
    )


def _row(
    live: Runtime,
    found: ListedNPC,
    stored: Mapping[str, Any],
    *,
    last: TurnLine | None,
    cut: NewCall | None,
    is_played: bool,
    now: float,
) -> NPCRow:
    ref = found.ref
    used = live.limits.reading("npc", ref)
    settings = settings_in(stored.get(ATTRIBUTE))[0]
    access = live.models.of_role("speaker", settings=settings)[0]
    begun_at = last.created_at if last is not None and last.ended_at is None else now
    answers = live.scheduler.in_flight(ref)
    return NPCRow(
        found=found,
        is_on=bool(stored.get(ENABLED, _is_on_by_default(found.typeclass))),
        is_played=is_played,
        is_paused=ref in halts(),
        answering_seconds=max(0.0, now - begun_at) if answers else None,
        rest_seconds=live.scheduler.rest_seconds(ref),
        waiting=live.scheduler.waiting(ref),
        waits_because=live.scheduler.why_waits(ref),
        last=last,
        cut=cut,
        calls=used.calls_per_day,
        tokens=used.tokens_per_day,
        refused=live.limits.refused(ref),
        model=access.model_id or access.name,
        breaker=access.breaker.state if access.breaker is not None else "closed",
    )


def _is_on_by_default(path: str) -> bool:
    """True if NPCs of this typeclass are switched on unless an Attribute says otherwise."""
    found = class_with_mind(path)
    # Read the default from the class, because the property would look for an object's Attribute.
    enabled = getattr_static(found, ENABLED, False)
    return bool(enabled._default if isinstance(enabled, AttributeProperty) else enabled)


def _attributes(shown: Sequence[ListedNPC]) -> dict[int, dict[str, Any]]:
    """Return the stored Attributes of these NPCs, by the NPC's id and the name."""
    rows = Attribute.objects.filter(
        objectdb__id__in=[one.id for one in shown],
        db_key__in=(ENABLED, ATTRIBUTE),
        db_category=None,
    )
    found: dict[int, dict[str, Any]] = {}
    for key, name, value in rows.values_list("objectdb__id", "db_key", "db_value"):
        found.setdefault(key, {})[name] = value
    return found


def look_at_everybody() -> None:
    """Record for all restricted bases which NPCs guard them now."""
    for info in list_bases():
        look_at_all(info)


def look_at_all(info: BaseInfo) -> None:
    """Record which NPCs guard a base now, if it is restricted for some NPCs and not for all."""
    if not names_some(info):
        return
    for key, *_ in objects_with_mind():
        npc: NPC = ObjectDB.objects.get_id(key)
        if npc is not None:
            is_held(npc, info)


@receiver(m2m_changed, sender=ObjectDB.db_tags.through, dispatch_uid="evennia_ai.guards")
def _tags_change(instance: Any, action: str, **_: Any) -> None:
    """Record which bases an NPC guards, before and after its tags and permissions change."""
    if not isinstance(instance, HasMind):
        return
    npc: Any = instance
    if action == "post_add":  # Evennia's caches do not have the new tag yet
        npc.tags.reset_cache()
        npc.permissions.reset_cache()
    if action in ("pre_add", "post_add", "pre_remove", "pre_clear"):
        call_safely(npc, record_guards, npc)
