"""How NPCs are doing: the values that commands, web pages and the command line render.

What is stored is read with the same few queries for any number of NPCs, in any thread and without a
running game. What only the running game knows is added from its memory, in the reactor's thread.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from inspect import getattr_static
from typing import Any, Final, Literal

import evennia
from evennia.typeclasses.attributes import Attribute, AttributeProperty

from evennia_ai.engine.prompt.components import GAME, Scope, of_npc
from evennia_ai.engine.prompt.report import describe_break
from evennia_ai.npc.background.queued import WorkStatus
from evennia_ai.npc.floor.scheduler import Crowd
from evennia_ai.npc.mind.npc_list import ListedNPC, NPCList, find_npc, npc_names
from evennia_ai.npc.model_calls.limits import Limits, LimitScope
from evennia_ai.npc.npc_settings import (
    ATTRIBUTE,
    SettingChange,
    changes_in,
    settings_in,
    settings_of,
)
from evennia_ai.npc.runtime import Runtime
from evennia_ai.npc.senses.presence import NPC, class_with_mind
from evennia_ai.npc.views.visibility import Seer
from evennia_ai.services.llm.arrival import describe_cut_prompt
from evennia_ai.services.llm.money import NANODOLLARS
from evennia_ai.services.llm.prices import unknown_price
from evennia_ai.services.llm.quotas import LIMITS, Quota, QuotaReached, QuotaUse, month_of
from evennia_ai.services.llm.resilience import BreakerState
from evennia_ai.services.settings.conf import conf
from evennia_ai.services.settings.npc import NPCSettings
from evennia_ai.store import model_calls
from evennia_ai.store.authored.cards import card_of
from evennia_ai.store.history import past_turns, turns
from evennia_ai.store.history.branches import npc_of
from evennia_ai.store.history.conversations import conversations_of
from evennia_ai.store.history.model_requests import compacted_of
from evennia_ai.store.history.past_turns import TurnLine
from evennia_ai.store.history.record_rows import ConversationRef
from evennia_ai.store.model_calls import (
    DAY_SECONDS,
    GAME_REF,
    Halt,
    NewCall,
    RefusedSaying,
    RefusedTimes,
    Used,
    halts,
)

ENABLED: Final = "ai_enabled"
MOST_TURNS: Final = 10_000
"""The most turns that are searched for NPCs with a turn today, or whose last turn failed."""
MOST_SHARED: Final = 2000
"""The most calls of the last day from which the shares of cached tokens are read."""
MOST_SHARES: Final = 24
POOR_PERCENT: Final = 50
MOST_BROKEN: Final = 5
MOST_NEW_TURNS: Final = 50
MOST_NEW_CALLS: Final = 30
MOST_REFUSED_PEOPLE: Final = 20
MOST_ODD: Final = 5
"""The most pairs of a model and an outcome for which the log counts odd replies."""
MOST_OTHER_CALLS: Final = 50
"""The most calls outside of turns that one page of a log has."""
MOST_REFUSED: Final = 200
"""The most refused utterances that one page of a log has."""

Filter = Literal["", "today", "failed", "paused", "never"]
"""Which NPCs a list has: all, or those with a turn today, a failed last turn, a pause, no turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NPCNow:
    """What an NPC does now. Only the running game knows it."""

    is_played: bool
    in_flight: bool
    """True if a turn of the NPC is running."""
    answering_seconds: float | None
    """How long its turn has been running; None if no turn runs."""
    rest_seconds: float
    waiting: int
    waits_because: str
    """Why its next turn waits; "" if nothing waits."""
    refused: int
    """How often a limit refused a call for it today, in this process."""
    model: str
    endpoint: str
    offline: bool
    """True if no model is asked."""
    breaker: BreakerState | Literal[""]
    """The state of the model's circuit breaker; "" if it has none."""

    @property
    def doing(self) -> str:
        """Return in one word what the NPC does."""
        if self.in_flight:
            return "answers"
        if not self.waiting:
            return "idle"
        return "rests" if self.rest_seconds else "waits"


@dataclass(frozen=True, slots=True, kw_only=True)
class NPCRow:
    """The state of an NPC in a list. `now` is None outside of the running game."""

    ref: str
    name: str
    room: str
    room_ref: str
    """The reference of its room, "" if it is nowhere."""
    is_on: bool
    pause: Halt | None
    last_turn: TurnLine | None
    cut: NewCall | None
    """The model call of its last turn, if the server read only part of the prompt."""
    today: Used
    settings: NPCSettings
    problems: tuple[str, ...]
    """Problems of its settings."""
    now: NPCNow | None = None

    @property
    def state(self) -> str:
        """Return the state in one word. Reasons why the NPC cannot answer come first.

        Outside of the running game it is "on" if nothing stored prevents an answer.
        """
        if self.now is not None and self.now.is_played:
            return "played"
        if not self.is_on:
            return "off"
        if self.pause is not None:
            return "paused"
        return "on" if self.now is None else self.now.doing

    @property
    def silent_because(self) -> str:
        """Return the known reasons why the NPC may not answer, "" if there are none."""
        why = {
            "it is switched off": not self.is_on,
            "it is paused": self.pause is not None,
            "its last turn failed": self.last_turn is not None and self.last_turn.state == "failed",
        }
        if now := self.now:
            why |= {
                "a player plays it": now.is_played,
                f"its model {now.model} failed repeatedly and is not asked for a while": now.breaker
                == "open",
                f"what it heard waits: {now.waits_because}": bool(now.waits_because),
                f"{now.refused} answers were refused today by limits": bool(now.refused),
            }
        return "; ".join(words for words, holds in why.items() if holds)

    @property
    def cut_because(self) -> str:
        """Return how much of the last prompt the server read, "" if it read all of it."""
        return "" if self.cut is None else describe_cut(self.cut)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedCard:
    """The card that an NPC plays."""

    name: str
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """A conversation with its newest compaction, or with an attempt that failed."""

    conversation: ConversationRef
    by: Literal["", "extract", "model"]
    """What wrote the newest summary; "" if there is none, or if a branch copied it."""
    at: float | None
    failures: int
    """How many attempts failed in a row."""
    rests_until: int | None
    """The turn before which no attempt is made; None if one may be made."""
    reason: str
    """Why the newest attempt ended as it did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NPCStatus(NPCRow):
    """The state of one NPC with its details.

    The fields with a default are empty outside of the running game. In the running game `problems`
    also has those of its texts and tools.
    """

    card: PlayedCard | None
    conversations: Mapping[str, int]
    """The number of conversations of each kind."""
    month: Used
    """What it used since the month began, in UTC."""
    ever: Used
    compactions: tuple[Compaction, ...]
    preset: str | None = None
    left: Mapping[str, float] | None = None
    """What the NPC's limits still allow, by limit."""
    overflows: int | None = None
    """How much it could not answer since the start, because too much waited."""
    unrecorded: int | None = None
    """How many events wait until the database can be reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NPCPage:
    """One page of a list of NPCs. `shares` and `breaks` are only in lists that ask for caches."""

    number: int
    pages: int
    count: int
    are_more: bool
    """True if there are more NPCs than the list counts."""
    npcs: tuple[NPCRow, ...]
    shares: Mapping[str, Sequence[int]]
    """The percentages of their newest calls' tokens from caches, oldest first, by NPC."""
    breaks: Mapping[str, str]
    """What broke the cache, for a few NPCs whose last call took little from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What models cost the whole game, and its limits. Days and months are those of UTC."""

    today_nanodollars: int
    month_nanodollars: int
    quota: Quota
    """The limits of the whole game."""
    reached: str
    """The limit of the whole game that is reached, so that no NPC asks a model; "" for none."""
    unpriced: tuple[str, ...]
    """Profiles whose price is not known, each with what to do about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitUse:
    """One limit of the game or of an NPC, and its use."""

    limit: str
    used: float
    most: float | None
    """None if there is no limit."""
    is_own: bool
    """True if the NPC's own limit applies, and not the limit of each NPC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitStatus:
    """What the game or one NPC may use of models, what it used, and who was refused today."""

    game: tuple[LimitUse, ...]
    npc: tuple[LimitUse, ...]
    """The limits of the NPC, empty for the whole game."""
    usual: Mapping[LimitScope, Quota]
    """The limits of each NPC and of each player."""
    at_limit: tuple[tuple[LimitScope, str, QuotaReached], ...]
    """The NPCs and players, by reference, that are at a limit."""
    spenders: Mapping[LimitScope, tuple[tuple[str, QuotaUse], ...]]
    """The NPCs and players, by reference, that cost the most this month."""
    refused: tuple[RefusedTimes, ...]
    """Who was refused today, the last refusal first."""
    unpriced: tuple[str, ...]
    """Profiles whose price is not known, each with what to do about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GameNow:
    """What all NPCs do now. Only the running game knows it."""

    answering: int
    waiting: int
    crowds: tuple[Crowd, ...]
    small_windows: tuple[str, ...]
    """Warnings about servers that read less than their profile sends."""
    breakers: Mapping[str, BreakerState]
    """The circuit breakers by the model's profile."""
    spending: Spending
    work: WorkStatus | None
    """The background workers; None if the game does the work itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GameStatus:
    """The state of all NPCs. `now` is None outside of the running game."""

    stopped: Halt | None
    paused: Mapping[str, Halt]
    today: Used
    now: GameNow | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CutPrompt:
    """An NPC whose last prompt the server read only in part."""

    npc_ref: str
    turn: int | None
    cut_because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GameLog:
    """The newest turns and calls of all NPCs, and who was refused an answer today."""

    turns: tuple[TurnLine, ...]
    calls: tuple[NewCall, ...]
    cut: tuple[CutPrompt, ...]
    refused: tuple[RefusedTimes, ...]
    names: Mapping[str, str]
    """The names of these NPCs and of paused ones, by reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedTurn:
    """A turn with its calls of models, oldest first."""

    turn: TurnLine
    calls: tuple[NewCall, ...]

    @property
    def nanodollars(self) -> int:
        """What its calls cost, without those whose price was not known."""
        return sum(call.nanodollars or 0 for call in self.calls)


@dataclass(frozen=True, slots=True, kw_only=True)
class NPCLog:
    """One page of what an NPC did. Page 1 is the newest."""

    number: int
    has_older: bool
    turns: tuple[LoggedTurn, ...]
    other_calls: tuple[NewCall, ...]
    """Calls outside of turns in the time of this page, newest first."""
    refused: tuple[RefusedSaying, ...]
    more_refused: bool
    """True if more was refused in the time of this page than `refused` has."""
    changes: tuple[SettingChange, ...]
    """Changes of settings in the time of this page, oldest first."""
    odd_replies: tuple[tuple[str, str, int], ...] = ()
    """On page 1: how often replies of a model were odd, as (model, outcome of the call, times)."""


def describe_cut(call: NewCall) -> str:
    """Return a sentence about a call in which the server shortened the prompt."""
    assert call.whole_tokens is not None
    return describe_cut_prompt(
        counted=call.input_tokens, whole=call.whole_tokens, profile=call.profile
    )


def used_today(now: float, scope: Scope = GAME) -> Used:
    """Return what the game or an NPC has used since the day began, in UTC."""
    return model_calls.use_since(now - now % DAY_SECONDS, scope)


def used_this_month(now: float, scope: Scope = GAME) -> Used:
    """Return what the game or an NPC has used since the month began, in UTC.

    In the running game, `game_now` knows the money of the whole game without a query.
    """
    return model_calls.use_in_days(month_of(now)[0], scope)


# One NPC.


def stored_status(ref: str, *, now: float) -> NPCStatus:
    """Return what is stored about an NPC, or about a builder's branch of it.

    A branch has its own turns and conversations. Everything else belongs to the NPC.
    """
    npc_ref = npc_of(ref)
    listed = find_npc(npc_ref) or ListedNPC(
        id=int(npc_ref) if npc_ref.isdecimal() else 0,
        name=f"#{ref}",
        room="",
        room_ref="",
        typeclass="",
    )
    [row] = _stored_rows([listed], now=now)
    if ref != npc_ref:
        last = past_turns.newest_of_each([ref]).get(ref)
        row = replace(row, ref=ref, name=npc_names([ref]).get(ref, f"#{ref}"), last_turn=last)
    card = card_of(npc_ref)
    kinds = [known.kind for known in conversations_of(ref)]
    return NPCStatus(
        **{one.name: getattr(row, one.name) for one in fields(row)},
        card=None if card is None else PlayedCard(name=card.name, revision=card.revision),
        conversations={kind: kinds.count(kind) for kind in dict.fromkeys(kinds)},
        month=used_this_month(now, of_npc(npc_ref)),
        ever=model_calls.total_use(npc_ref),
        compactions=tuple(_compactions(ref)),
    )


def _compactions(ref: str) -> Iterator[Compaction]:
    turn, rules = turns.next_number(ref), conf().compaction.rules
    for one in compacted_of(ref):
        breaker = one.attempt.breaker
        is_open = breaker.is_open(turn, rules=rules)
        by: Literal["", "extract", "model"] = ""
        if one.summary is not None and "by" in one.summary.meta:
            by = "extract" if one.summary.meta["by"] == "extract" else "model"
        yield Compaction(
            conversation=one.conversation,
            by=by,
            at=None if one.summary is None else one.summary.created_at,
            failures=breaker.failures,
            rests_until=(breaker.opened_at or 0) + rules.rest_turns if is_open else None,
            reason=one.attempt.reason,
        )


def left_of_limits(live: Runtime, ref: str, settings: NPCSettings) -> dict[str, float]:
    """Return what the limits of an NPC still allow, by limit. Limits that are not set are left
    out.
    """
    quota, used = live.limits.quota("npc", settings.limits), live.limits.reading("npc", ref)
    most = {limit: getattr(quota, limit) for limit in LIMITS}
    return {
        limit: max(0, allowed - getattr(used, limit))
        for limit, allowed in most.items()
        if allowed is not None
    }


def limit_status(live: Runtime, npc: NPC | None, *, most: int, most_spenders: int) -> LimitStatus:
    """Return the limits of one NPC, or of everyone.

    Args:
        most: The most refusals.
        most_spenders: The most NPCs, and the most players, that cost money this month.
    """
    limits, ref = live.limits, "" if npc is None else npc.ai.ref
    own = {} if npc is None else settings_of(npc).limits
    scopes: tuple[LimitScope, ...] = ("npc", "player")
    of_all = scopes if npc is None else ()
    return LimitStatus(
        game=_limit_uses(limits, "game", "", {}),
        npc=_limit_uses(limits, "npc", ref, own) if ref else (),
        usual={scope: limits.quota(scope) for scope in scopes},
        at_limit=limits.at_limit() if npc is None else (),
        spenders={scope: limits.spenders(scope, most=most_spenders) for scope in of_all},
        refused=model_calls.refused_times(limits.midnight, npc_ref=ref, limit=most),
        unpriced=unpriced(live),
    )


def _limit_uses(
    limits: Limits, scope: LimitScope, ref: str, own: Mapping[str, float]
) -> tuple[LimitUse, ...]:
    quota, used = limits.quota(scope, own), limits.reading(scope, ref)
    return tuple(
        LimitUse(
            limit=limit,
            used=getattr(used, limit),
            most=getattr(quota, limit),
            is_own=limit in own and getattr(quota, limit) == own[limit],
        )
        for limit in LIMITS
    )


def npc_log(ref: str, number: int, *, size: int) -> NPCLog:
    """Return one page of what an NPC did."""
    page = past_turns.turn_page(ref, number, size=size)
    calls = model_calls.calls_of_turns(ref, [turn.number for turn in page.turns])
    log = NPCLog(
        number=number,
        has_older=page.has_older,
        turns=tuple(
            LoggedTurn(turn=turn, calls=tuple(one for one in calls if one.turn == turn.number))
            for turn in page.turns
        ),
        other_calls=(),
        refused=(),
        more_refused=False,
        changes=(),
        odd_replies=model_calls.odd_replies(ref, limit=MOST_ODD) if number == 1 else (),
    )
    if number > 1 and not page.turns:
        return log
    refused = model_calls.refused_sayings(
        ref, since=page.since, until=page.until, limit=MOST_REFUSED + 1
    )
    listed = find_npc(ref)
    stored = _attributes([listed]).get(listed.id, {}) if listed else {}
    return replace(
        log,
        other_calls=model_calls.calls_outside_turns(
            ref, since=page.since, until=page.until, limit_calls=MOST_OTHER_CALLS
        ),
        refused=refused[:MOST_REFUSED],
        more_refused=len(refused) > MOST_REFUSED,
        changes=tuple(
            one for one in changes_in(stored.get(ATTRIBUTE)) if page.since <= one.at < page.until
        ),
    )


# Lists of NPCs.


def stored_page(
    part: str,
    number: int,
    *,
    size: int,
    now: float,
    which: Filter = "",
    first_refs: Collection[str] = (),
    seer_of: Callable[[str], Seer] | None = None,
    by_room: bool = False,
) -> NPCPage:
    """Return one page of the NPCs whose name or room contains `part`, as they are stored.

    Args:
        number: The page, from 1. If there are fewer pages, the last one is returned.
        first_refs: The NPCs that come first.
        seer_of: Returns the viewer of an NPC. If given, the page has what caches gave.
        by_room: Sort the NPCs by their rooms, so that those of one room follow each other.
    """
    among: Collection[str] | None = None
    if which == "today":
        among = past_turns.refs_since(now - now % DAY_SECONDS, most=MOST_TURNS)
    elif which == "failed":
        among = past_turns.refs_failed(most=MOST_TURNS)
    elif which == "paused":
        among = [ref for ref in halts() if ref != GAME_REF]
    found = NPCList(
        part,
        first_refs=first_refs,
        among=among,
        without_turn=which == "never",
        by_room=by_room,
    )
    pages = max(1, -(-found.count // size))
    number = min(number, pages)
    rows = _stored_rows(found.page(number, size=size), now=now)
    shares: dict[str, list[int]] = {}
    breaks: dict[str, str] = {}
    if seer_of is not None:
        refs = [row.ref for row in rows]
        shares = model_calls.cache_shares(refs, since=now - DAY_SECONDS, most=MOST_SHARED)
        poor = [
            row.last_turn
            for row in rows
            if row.last_turn and (shares.get(row.ref) or [100])[-1] < POOR_PERCENT
        ]
        for last in poor[:MOST_BROKEN]:
            manifest = turns.get_turn(last.npc_ref, last.number).manifest
            if manifest.broken_by is not None:
                origin = seer_of(last.npc_ref).origin(manifest.broken_by)
                breaks[last.npc_ref] = describe_break(replace(manifest, broken_by=origin))
    return NPCPage(
        number=number,
        pages=pages,
        count=found.count,
        are_more=found.are_more,
        npcs=rows,
        shares={ref: some[-MOST_SHARES:] for ref, some in shares.items()},
        breaks=breaks,
    )


def _stored_rows(shown: Sequence[ListedNPC], *, now: float) -> tuple[NPCRow, ...]:
    refs = [one.ref for one in shown]
    attributes = _attributes(shown)
    newest = past_turns.newest_of_each(refs)
    cut = model_calls.newest_cut_calls({ref: line.number for ref, line in newest.items()})
    used = model_calls.use_by_each("npc_ref", now - now % DAY_SECONDS, among=refs)
    rows = []
    for one in shown:
        stored = attributes.get(one.id, {})
        settings, problems = settings_in(stored.get(ATTRIBUTE))
        rows.append(
            NPCRow(
                ref=one.ref,
                name=one.name,
                room=one.room,
                room_ref=one.room_ref,
                is_on=bool(stored.get(ENABLED, _is_on_by_default(one.typeclass))),
                pause=halts().get(one.ref),
                last_turn=newest.get(one.ref),
                cut=cut.get(one.ref),
                today=used.get(one.ref, Used()),
                settings=settings,
                problems=problems,
            )
        )
    return tuple(rows)


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


def _is_on_by_default(path: str) -> bool:
    """True if NPCs of this typeclass are switched on unless an Attribute says otherwise."""
    found = class_with_mind(path)
    # Read the default from the class, because the property would look for an object's Attribute.
    enabled = getattr_static(found, ENABLED, False)
    return bool(enabled._default if isinstance(enabled, AttributeProperty) else enabled)


def npcs_now(live: Runtime, rows: Sequence[NPCRow], *, now: float) -> list[NPCNow]:
    """Return what these NPCs do now. Call this in the reactor's thread; it makes no query."""
    played = {str(session.puid) for session in evennia.SESSION_HANDLER.values()}
    return [_npc_now(live, row, is_played=npc_of(row.ref) in played, now=now) for row in rows]


def _npc_now(live: Runtime, row: NPCRow, *, is_played: bool, now: float) -> NPCNow:
    ref, last, scheduler = npc_of(row.ref), row.last_turn, live.scheduler
    access = live.models.of_role("speaker", settings=row.settings)[0]
    begun_at = last.created_at if last is not None and last.ended_at is None else now
    in_flight = scheduler.in_flight(ref)
    return NPCNow(
        is_played=is_played,
        in_flight=in_flight,
        answering_seconds=max(0.0, now - begun_at) if in_flight else None,
        rest_seconds=scheduler.rest_seconds(ref),
        waiting=scheduler.waiting(ref),
        waits_because=scheduler.why_waits(ref),
        refused=live.limits.refused(ref),
        model=access.model_id or access.name,
        endpoint=access.name,
        offline=access.model.offline,
        breaker=access.breaker.state if access.breaker is not None else "",
    )


# All NPCs.


def stored_game_status(*, now: float) -> GameStatus:
    """Return what is stored about the state of all NPCs."""
    halted = dict(halts())
    return GameStatus(stopped=halted.pop(GAME_REF, None), paused=halted, today=used_today(now))


def game_now(live: Runtime) -> GameNow:
    """Return what all NPCs do now. Call this in the reactor's thread; it makes no query."""
    return GameNow(
        answering=live.scheduler.running,
        waiting=live.scheduler.waiting_in_all,
        crowds=tuple(live.scheduler.crowds()),
        small_windows=tuple(live.calls.small_windows.values()),
        breakers={
            one.name: one.breaker.state for one in live.models.accesses() if one.breaker is not None
        },
        spending=_spending(live),
        work=live.work.status,
    )


def _spending(live: Runtime) -> Spending:
    used, reached = live.limits.reading("game"), live.limits.game_reached()
    return Spending(
        today_nanodollars=round(used.dollars_per_day * NANODOLLARS),
        month_nanodollars=round(used.dollars_per_month * NANODOLLARS),
        quota=live.limits.quota("game"),
        reached="" if reached is None else reached.told,
        unpriced=unpriced(live),
    )


def unpriced(live: Runtime) -> tuple[str, ...]:
    """Return, for each profile in use whose price is not known, what to do about it."""
    return tuple(filter(None, map(unknown_price, live.models.used_profiles)))


def game_log(*, now: float) -> GameLog:
    """Return the newest turns and calls of all NPCs, and who was refused an answer today."""
    newest = past_turns.newest_of_all(MOST_NEW_TURNS)
    calls = model_calls.newest_calls(MOST_NEW_CALLS)
    refused = model_calls.refused_times(now - now % DAY_SECONDS, limit=MOST_REFUSED_PEOPLE)
    last_calls = {call.npc_ref: call for call in reversed(calls)}
    refs = {one.npc_ref for some in (newest, calls, refused) for one in some}
    return GameLog(
        turns=newest,
        calls=calls,
        cut=tuple(
            CutPrompt(npc_ref=ref, turn=call.turn, cut_because=describe_cut(call))
            for ref, call in last_calls.items()
            if call.whole_tokens is not None
        ),
        refused=refused,
        names=npc_names(refs | set(halts())),
    )
