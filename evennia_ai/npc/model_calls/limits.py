"""Decides if a model may be asked: limits, and halts by a person.

A halt stops the whole game or pauses one NPC. Halts are stored in the database, so they outlast a
reload, and they are cached. `npc.mind.emergency` cancels running calls.

Calls, tokens and money are limited per minute, day or month (`services.llm.quotas`), for each
player, each NPC and the whole game. They are counted in memory. The use of today and the money of
this month are read once from the tables of calls, so a reload does not reset them. This module
returns a refusal, and `npc.mind.pending_answer` lets the NPC say a line about it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from heapq import nlargest
from typing import Final, Literal

from evennia.utils import logger

from evennia_ai.engine.errors import StoreError
from evennia_ai.npc.jobs.counting import estimate_usage
from evennia_ai.npc.senses.events import Line
from evennia_ai.services.llm.chat import Usage
from evennia_ai.services.llm.quotas import (
    DAY_SECONDS,
    NOTHING_USED,
    Meter,
    Quota,
    QuotaReached,
    Quotas,
    QuotaUse,
    month_of,
    most_in_words,
)
from evennia_ai.store.model_calls import (
    ANSWERED,
    GAME_REF,
    UNSENT,
    Halt,
    NewCall,
    Used,
    halts,
    is_counted,
)

LimitScope = Literal["player", "npc", "game"]

_NO_LIMITS: Final[Mapping[str, float]] = {}

DayUsed = tuple[Mapping[str, Used], Mapping[str, Used]]
ReadUsed = Callable[[float], DayUsed]
"""A function that returns what was used since a time, by NPC and by player."""
ReadSpent = Callable[[float], tuple[Mapping[str, int], Mapping[str, int]]]
"""A function that returns the nanodollars spent since a time, by NPC and by player."""
Pricing = Callable[[Usage], int | None]
"""A function that returns the nanodollars of a usage, None if the price is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallKey:
    """What identifies a call for limits, logs and watchers.

    `player_ref` is the player whose words led to the call, "" for nobody. `turn` is the number of
    the turn. `name` is the call's name in logs, "" to use the role. `prompt_tokens` and
    `reply_tokens` are the most that it may use, and they are reserved. If `is_protected`, watchers
    do not get its words.
    """

    npc_ref: str
    player_ref: str = ""
    role: str = "speaker"
    name: str = ""
    profile: str = ""
    model: str = ""
    turn: int | None = None
    prompt_tokens: int = 0
    reply_tokens: int = 0
    is_protected: bool = False
    is_offline: bool = False
    """True for a call of the offline responder, which no limit counts."""
    line: Line | None = None
    """The player's line that led to the call, None if no line did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedCall:
    """A running call, with its start in seconds since 1970."""

    key: CallKey
    started_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why no model may be asked now. `told` is the reason as a text for builders."""

    scope: LimitScope
    ref: str
    limit: str
    told: str
    retry_in_seconds: float
    at: float = 0.0
    """When the call was refused, in seconds since 1970."""

    def row(self, *, npc_ref: str, player_ref: str, event_record: str) -> NewCall:
        """Return a row for the call that was not made."""
        return NewCall(
            npc_ref=npc_ref,
            player_ref=player_ref,
            role="speaker",
            started_at=self.at,
            seconds=0.0,
            nanodollars=0,
            outcome=f"{UNSENT}{self.scope}.{self.limit}",
            event_record_id=int(event_record),
        )


class Limits:
    """Counts what calls use, and compares it with the limits. `now` returns seconds since 1970."""

    def __init__(
        self,
        quotas: Quotas,
        *,
        now: Callable[[], float],
        used_since: ReadUsed,
        spent_since: ReadSpent,
    ) -> None:
        self.quotas: Final = quotas
        self._now: Final = now
        self._used_since: Final = used_since
        self._spent_since: Final = spent_since
        self._meters: dict[tuple[LimitScope, str], Meter] = {}
        self._refused: dict[str, int] = {}
        self._day: int | None = None
        self._workers: Mapping[tuple[LimitScope, str], QuotaUse] = {}

    def set_worker_use(self, taken: Mapping[str, QuotaUse]) -> None:
        """Set what workers have used in this minute, by NPC. The key GAME_REF is the whole game."""
        self._workers = {
            ("game" if ref == GAME_REF else "npc", ref): use for ref, use in taken.items()
        }

    def count_worker_call(self, call: NewCall) -> None:
        """Count a call that a worker made towards the limits of the day."""
        now, spent = self._today(), call.nanodollars or 0
        if is_counted(call.outcome):
            for scope in _scopes(call.npc_ref, call.player_ref):
                meter = self._meters.setdefault(scope, Meter())
                meter.restored(now, calls=1, tokens=call.tokens, nanodollars=spent)
                meter.restored_month(now, nanodollars=spent)

    def refusal(
        self,
        *,
        npc_ref: str,
        player_ref: str = "",
        npc_limits: Mapping[str, float] = _NO_LIMITS,
        tokens: int = 0,
    ) -> Refusal | None:
        """Return why no model may be asked for this NPC and player, None if one may.

        Args:
            npc_limits: The NPC's own limits, which can only be stricter than the game's.
            tokens: The tokens that the call would use, if known.
        """
        now, quotas = self._today(), self.quotas
        narrowed = replace(quotas, npc=quotas.npc.narrowed(npc_limits)) if npc_limits else quotas
        for scope, ref in _scopes(npc_ref, player_ref):
            meter = self._meters.get((scope, ref)) or Meter()
            others = self._workers.get((scope, ref), NOTHING_USED)
            reached = meter.reached(now, getattr(narrowed, scope), tokens=tokens, others=others)
            if reached is not None:
                self._refused[npc_ref] = self._refused.get(npc_ref, 0) + 1
                return self._refusal(scope, ref, reached)
        return None

    def begun(self, key: CallKey) -> StartedCall:
        """Count a call that begins, and reserve its tokens."""
        now = self._today()
        if key.line is not None and not key.is_offline:
            key.line.calls += 1
        reserved_tokens = key.prompt_tokens + key.reply_tokens
        for scope in _metered(key):
            meter = self._meters.setdefault(scope, Meter())
            meter.begun(now, reserved_tokens=reserved_tokens)
        return StartedCall(key=key, started_at=now)

    def ended(
        self,
        call: StartedCall,
        usage: Usage | None,
        outcome: str = ANSWERED,
        *,
        pricing: Pricing,
        reply_tokens: int = 0,
        first_piece_seconds: float | None = None,
    ) -> NewCall:
        """Count what a call used, and return its row. Call this once for each call.

        A call that never reached a model no longer counts. If the provider reports no usage, the
        tokens are estimated from those of the prompt and `reply_tokens`.
        """
        now, key = self._today(), call.key
        used = usage or estimate_usage(
            outcome, prompt_tokens=key.prompt_tokens, reply_tokens=reply_tokens
        )
        row = _row(
            call,
            used,
            nanodollars=pricing(used),
            is_estimated=usage is None,
            seconds=max(0.0, now - call.started_at),
            first_piece_seconds=first_piece_seconds,
            outcome=outcome,
        )
        reserved_tokens = key.prompt_tokens + key.reply_tokens
        used_tokens, counts = row.tokens, is_counted(outcome)
        for scope in _metered(key):
            meter = self._meters.setdefault(scope, Meter())
            meter.ended(
                now,
                reserved_tokens=reserved_tokens,
                tokens=used_tokens,
                nanodollars=row.nanodollars or 0,
            )
            if not counts:
                meter.undo_start(call.started_at)
        return row

    def quota(self, scope: LimitScope, npc_limits: Mapping[str, float] = _NO_LIMITS) -> Quota:
        """Return the limits of a player, an NPC or the game.

        An NPC's own limits make them stricter.
        """
        quota: Quota = getattr(self.quotas, scope)
        return quota.narrowed(npc_limits) if scope == "npc" else quota

    def reading(self, scope: LimitScope, ref: str = "") -> QuotaUse:
        """Return what a player, an NPC or the game has used."""
        now = self._today()
        meter = self._meters.get((scope, ref))
        return meter.reading(now) if meter is not None else QuotaUse()

    def refused(self, npc_ref: str) -> int:
        """Return how often this process has refused calls for this NPC today."""
        self._today()
        return self._refused.get(npc_ref, 0)

    @property
    def midnight(self) -> float:
        """Return when this day began, in seconds since 1970."""
        now = self._now()
        return now - now % DAY_SECONDS

    def at_limit(self) -> tuple[tuple[LimitScope, str, QuotaReached], ...]:
        """Return the players and NPCs that have reached a limit, each with that limit."""
        now = self._today()
        found = []
        for (scope, ref), meter in self._meters.items():
            reached = meter.reached(now, self.quota(scope))
            if reached is not None and scope != "game":
                found.append((scope, ref, reached))
        return tuple(found)

    def game_reached(self) -> Refusal | None:
        """Return the limit of the whole game that is reached, so that no NPC asks a model."""
        now = self._today()
        meter = self._meters.get(("game", "")) or Meter()
        others = self._workers.get(("game", ""), NOTHING_USED)
        reached = meter.reached(now, self.quotas.game, others=others)
        return None if reached is None else self._refusal("game", "", reached)

    def spenders(self, scope: LimitScope, *, most: int) -> tuple[tuple[str, QuotaUse], ...]:
        """Return the players or NPCs that cost the most this month, and their use."""
        now = self._today()
        uses = [(key[1], one.reading(now)) for key, one in self._meters.items() if key[0] == scope]
        spent = [one for one in uses if one[1].dollars_per_month]
        return tuple(nlargest(most, spent, key=lambda one: one[1].dollars_per_month))

    def _today(self) -> float:
        """Return the current time. On the first call of a day, forget the counts of the day before.

        The first call of all reads what was used earlier today, and spent earlier this month.

        Raises:
            StoreError: The use of today cannot be read.
        """
        now = self._now()
        day = int(now // DAY_SECONDS)
        if self._day == day:
            return now
        if self._day is None:
            self._restore(now)
        self._day = day
        self._refused = {}
        self._meters = {key: one for key, one in self._meters.items() if not one.is_idle(now)}
        return now

    def _restore(self, now: float) -> None:
        npcs, players = self._used_since(now - now % DAY_SECONDS)
        found: list[tuple[LimitScope, Mapping[str, Used]]] = [("npc", npcs), ("player", players)]
        for scope, by_ref in found:
            for ref, used in by_ref.items():
                if ref:
                    self._restore_meter(now, (scope, ref), used)
        for used in npcs.values():
            self._restore_meter(now, ("game", ""), used)
        by_npc, by_player = self._spent_since(month_of(now)[0])
        spent: list[tuple[LimitScope, Mapping[str, int]]] = [
            ("npc", by_npc),
            ("player", by_player),
            ("game", {"": sum(by_npc.values())}),
        ]
        for scope, nanodollars_of in spent:
            for ref, nanodollars in nanodollars_of.items():
                if ref or scope == "game":
                    meter = self._meters.setdefault((scope, ref), Meter())
                    meter.restored_month(now, nanodollars=nanodollars)

    def _restore_meter(self, now: float, key: tuple[LimitScope, str], used: Used) -> None:
        meter = self._meters.setdefault(key, Meter())
        meter.restored(now, calls=used.calls, tokens=used.tokens, nanodollars=used.nanodollars)

    def _refusal(self, scope: LimitScope, ref: str, reached: QuotaReached) -> Refusal:
        return Refusal(
            scope=scope,
            ref=ref,
            limit=reached.limit,
            told=_describe_refusal(scope, ref, reached),
            retry_in_seconds=reached.retry_in_seconds,
            at=self._now(),
        )


def _scopes(npc_ref: str, player_ref: str) -> tuple[tuple[LimitScope, str], ...]:
    """Return for whom a call counts: its player, its NPC and the game."""
    player: tuple[tuple[LimitScope, str], ...] = (("player", player_ref),) if player_ref else ()
    return (*player, ("npc", npc_ref), ("game", ""))


def _metered(key: CallKey) -> tuple[tuple[LimitScope, str], ...]:
    return () if key.is_offline else _scopes(key.npc_ref, key.player_ref)


def _row(
    call: StartedCall,
    usage: Usage,
    *,
    nanodollars: int | None,
    is_estimated: bool,
    seconds: float,
    first_piece_seconds: float | None,
    outcome: str,
) -> NewCall:
    key = call.key
    return NewCall(
        npc_ref=key.npc_ref,
        player_ref=key.player_ref,
        role=key.role,
        profile=key.profile,
        model=key.model,
        turn=key.turn,
        started_at=call.started_at,
        seconds=seconds,
        first_piece_seconds=first_piece_seconds,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=None if is_estimated else usage.cached_tokens,
        written_tokens=None if is_estimated else usage.written_tokens,
        nanodollars=nanodollars,
        is_estimated=is_estimated,
        outcome=outcome,
    )


def _describe_refusal(scope: LimitScope, ref: str, reached: QuotaReached) -> str:
    who = {"player": f"player #{ref}", "npc": f"NPC #{ref}", "game": "the game"}[scope]
    what = most_in_words(reached.limit, reached.most)
    own = "ai/set limits or " if scope == "npc" else ""
    return (
        f"{who} has used its {what}; again in {reached.retry_in_seconds:.0f} s"
        f" ({own}EVENNIA_AI_LIMITS, {scope}, {reached.limit})"
    )


def is_stopped() -> str:
    """Return who stopped the whole game, and why, as a text. "" if it is not stopped."""
    return why_halted(GAME_REF)


def why_halted(npc_ref: str) -> str:
    """Return why this NPC may ask no model, such as "stopped by Mira: ...". "" if it may."""
    known = _current_halts()
    halt = known.get(GAME_REF) or known.get(npc_ref)
    return str(halt) if halt is not None else ""


def _current_halts() -> Mapping[str, Halt]:
    """Return the halts by NPC.

    If the database cannot be read, return none, so that NPCs can speak.
    """
    try:
        return halts()
    except StoreError as error:
        logger.log_err(
            f"evennia_ai: cannot read if the game is stopped or NPCs are paused: {error}"
        )
        return {}
