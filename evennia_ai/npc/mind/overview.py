"""The overview: how NPCs of the game's list are doing, however many there are.

What is in the database is read for those that are shown, in one query each; the rest is in memory.

Whom the locks of restricted bases hold is looked at before anybody changes it: when a base changes,
when the server starts, and before and after an NPC gets or loses a tag or a permission. What any
builder can take away ends no guard then; whatever else a lock asks is looked at in each turn.
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
from evennia_ai.npc.knowledge.guarding import is_held, names_some, notice
from evennia_ai.npc.mind.npc_list import ListedNPC, NPCList
from evennia_ai.npc.npc_settings import ATTRIBUTE, settings_in
from evennia_ai.npc.runtime import Runtime
from evennia_ai.npc.senses.presence import NPC, HasMind, class_with_mind, minds
from evennia_ai.npc.senses.witness import safely
from evennia_ai.services.llm.resilience import BreakerState
from evennia_ai.store import model_calls
from evennia_ai.store.history import past_turns
from evennia_ai.store.history.past_turns import TurnLine
from evennia_ai.store.knowledge.knowledge_bases import list_bases
from evennia_ai.store.model_calls import NewCall, halts

ENABLED: Final = "ai_enabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class NPCRow:
    """How an NPC is doing.

    `answering_seconds` is None while it answers nobody; `calls` and `tokens` are those of today.
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
    """The call of its last turn whose prompt did not arrive whole."""
    calls: int
    tokens: int
    refused: int
    model: str
    breaker: BreakerState

    @property
    def state(self) -> str:
        """What it does, in a word; whoever cannot answer says why first."""
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
        """Why it may say nothing where somebody expects an answer, "" where nothing is known."""
        why = {
            "a player plays it": self.is_played,
            "it is switched off": not self.is_on,
            "it is paused": self.is_paused,
            f"its model {self.model} failed repeatedly and is left alone": self.breaker == "open",
            f"what it heard waits: {self.waits_because}": bool(self.waits_because),
            f"{self.refused} answers were refused today by limits": bool(self.refused),
            "its last turn failed": self.last is not None and self.last.state == "failed",
        }
        return "; ".join(words for words, holds in why.items() if holds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """How the game is doing; `calls` and `tokens` are those of today."""

    npcs: int
    are_more: bool
    """True if there are more NPCs than are counted."""
    answering: int
    waiting: int
    calls: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What of NPCs is in the database: their Attributes by id and name, their newest turns.

    `cut` are the calls of these turns whose prompts did not arrive whole, by NPC as the turns are.
    """

    attributes: Mapping[int, Mapping[str, Any]]
    newest: Mapping[str, TurnLine]
    cut: Mapping[str, NewCall]


def stored_of(shown: Sequence[ListedNPC]) -> Stored:
    """What of these NPCs is to be read, in any thread; as many queries for one as for a hundred."""
    newest = past_turns.newest_of_each([one.ref for one in shown])
    cut = model_calls.newest_cut_calls({ref: line.number for ref, line in newest.items()})
    return Stored(attributes=_attributes(shown), newest=newest, cut=cut)


def rows_of(live: Runtime, shown: Sequence[ListedNPC], *, now: float) -> tuple[NPCRow, ...]:
    """How these NPCs are doing."""
    return rows_from(live, shown, stored_of(shown), now=now)


def rows_from(
    live: Runtime, shown: Sequence[ListedNPC], stored: Stored, *, now: float
) -> tuple[NPCRow, ...]:
    """The same of what was read: nothing is asked of the database."""
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


def totals(live: Runtime, npcs: NPCList) -> Totals:
    """How the game of these NPCs is doing; no query but for their count."""
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
    """True if NPCs of this typeclass answer where nobody said whether they shall."""
    found = class_with_mind(path)
    # Asked of the class itself: the property would look for an Attribute of an object.
    enabled = getattr_static(found, ENABLED, False)
    return bool(enabled._default if isinstance(enabled, AttributeProperty) else enabled)


def _attributes(shown: Sequence[ListedNPC]) -> dict[int, dict[str, Any]]:
    """What is stored of these NPCs, by id and name."""
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
    """Write down whom the locks of restricted bases hold now."""
    for info in list_bases():
        look_at_all(info)


def look_at_all(info: BaseInfo) -> None:
    """The same for one base; nothing where it is restricted for nobody or for everybody."""
    if not names_some(info):
        return
    for key, *_ in minds():
        npc: NPC = ObjectDB.objects.get_id(key)
        if npc is not None:
            is_held(npc, info)


@receiver(m2m_changed, sender=ObjectDB.db_tags.through, dispatch_uid="evennia_ai.guards")
def _tags_change(instance: Any, action: str, **_: Any) -> None:
    """Notice what an NPC guards with the tags and permissions it has, before it has others."""
    if not isinstance(instance, HasMind):
        return
    npc: Any = instance
    if action == "post_add":  # Evennia's caches do not know the new one yet
        npc.tags.reset_cache()
        npc.permissions.reset_cache()
    if action in ("pre_add", "post_add", "pre_remove", "pre_clear"):
        safely(npc, notice, npc)
