"""Store calls of models: what each call used, sums of calls, and halts.

A call is written in the transaction of its turn or job, so both are stored or neither. Days are in
UTC. After some time the calls of a day are added up. Then, or earlier if the player asks for it,
the calls no longer say whose words they answered.

A halt pauses an NPC or stops the whole game. Halts have their own table instead of Evennia's server
variables for three reasons: they are written in a transaction, other processes notice them, and
reading them makes no query.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from django.db.models import Count, F, Max, Q, QuerySet, Sum
from django.db.models.functions import Coalesce

from evennia_ai import models
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.prompt.components import GAME, Scope, of_npc
from evennia_ai.models.core import NAME
from evennia_ai.services.llm.money import NANODOLLARS
from evennia_ai.store.core.inserting import Insert
from evennia_ai.store.core.snapshots import Snapshot, changing, one_transaction, value_of

DAY_SECONDS: Final = 24 * 60 * 60
ANSWERED: Final = "answered"
CANCELLED: Final = "cancelled"
STOPPED: Final = "failed:stopped"
UNSENT: Final = "unsent:"
"""How the outcome begins if no model was called.

A breaker, a full queue or a limit prevented the call, or there is no model.
"""
OFFLINE: Final = f"{UNSENT}offline"
SLICE_CALLS: Final = 500
_MOST_TOKENS: Final = 2**31 - 1
_MOST_NANODOLLARS: Final = 2**53
"""More than a million dollars. Sums of such values fit into their column."""
# A time later than all others. SQLite does not accept infinity.
_END_OF_TIME: Final = 1e15


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCall:
    """A finished call of a model before it is stored.

    The fields are those of `models.ModelCall`.
    """

    npc_ref: str
    player_ref: str = ""
    role: str
    profile: str = ""
    model: str = ""
    turn: int | None = None
    started_at: float
    seconds: float
    first_piece_seconds: float | None = None
    input_tokens: int = 0
    cached_tokens: int | None = None
    written_tokens: int | None = None
    output_tokens: int = 0
    is_estimated: bool = False
    whole_tokens: int | None = None
    """The tokens of the whole prompt, if the server read only a part; else None."""
    nanodollars: int | None = None
    """What the call cost; None if the price is not known."""
    outcome: str = ANSWERED
    event_record_id: int | None = None
    """The record of the player's words that were not answered because of a limit."""

    @property
    def tokens(self) -> int:
        """The number of tokens that count against limits."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedSaying:
    """Words that a player said to an NPC and that a limit left without an answer."""

    npc_ref: str
    player_ref: str
    limit: str
    """The scope and the name of the limit, such as "player.calls_per_minute"."""
    at: float
    record: int
    """The number of the record of the words, as `ai/history` shows it."""
    event: str = ""
    """The kind of event; "" if it was erased."""
    speaker: str = ""
    """The name of the speaker; "" if it was erased."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedTimes:
    """How often one limit prevented an NPC from answering a person, and when it last did."""

    npc_ref: str
    player_ref: str
    limit: str
    times: int
    last_at: float


_FIELDS: Final = tuple(NewCall.__dataclass_fields__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """Sums of calls, tokens and money."""

    calls: int = 0
    failures: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    """The input tokens that were read from the provider's cache."""
    output_tokens: int = 0
    nanodollars: int = 0
    unpriced_calls: int = 0
    """The calls whose price was not known. They are not part of `nanodollars`."""

    @property
    def tokens(self) -> int:
        """The number of tokens that count against limits."""
        return self.input_tokens + self.output_tokens

    @property
    def dollars(self) -> float:
        """The money in dollars, without calls whose price was not known."""
        return self.nanodollars / NANODOLLARS

    @property
    def cached_percent(self) -> int | None:
        """The share of the input tokens that came from the provider's cache; None without input."""
        return 100 * self.cached_tokens // self.input_tokens if self.input_tokens else None

    def __add__(self, other: "Used") -> "Used":
        """Return both together."""
        return Used(**{name: getattr(self, name) + getattr(other, name) for name in _SUMMED})


NOTHING: Final = Used()
_insert: Final = Insert(models.ModelCall, _FIELDS)
_LENGTHS: Final = {
    name: models.ModelCall._meta.get_field(name).max_length or None for name in _FIELDS
}
"""The most characters of each column; None for a number."""
_HIGHEST: Final = {
    **{name: _MOST_TOKENS for name in _FIELDS if name.endswith("_tokens")},
    "nanodollars": _MOST_NANODOLLARS,
}


def add_call(new: NewCall) -> None:
    """Store a call inside the current transaction.

    Numbers that a provider reported are limited to the range of their column, so that storing a
    reply cannot fail.
    """
    values = {name: getattr(new, name) for name in _FIELDS}
    for name, most in _LENGTHS.items():
        if most is not None:
            values[name] = values[name][:most]
        elif values[name] and (highest := _HIGHEST.get(name)):
            values[name] = min(max(0, values[name]), highest)
    _insert([list(values.values())])


def is_counted(outcome: str) -> bool:
    """True if a call with this outcome counts against limits, that is, if a model was called."""
    return not outcome.startswith(UNSENT) and outcome != STOPPED


def add_call_alone(new: NewCall) -> None:
    """Store a call in its own transaction.

    Raises:
        StoreError: it was not stored.
    """
    with one_transaction(f"storing a model call for NPC {new.npc_ref}"):
        add_call(new)


def use_since(since: float, scope: Scope = GAME) -> Used:
    """Return what the game, an NPC or a player has used since a time (seconds since 1970)."""
    rows = models.ModelCall.objects.filter(started_at__gte=since)
    return _used(_of(rows, scope).aggregate(**_SUMS))


def use_by_each(
    whom: Literal["npc_ref", "player_ref"], since: float, *, among: Collection[str] | None = None
) -> Mapping[str, Used]:
    """Return what each NPC or each player has used since a time, with one query.

    Calls without a player have the key "".

    Args:
        among: The references to include; None for all.
    """
    rows = models.ModelCall.objects.filter(started_at__gte=since).values(whom)
    if among is not None:
        rows = rows.filter(**{f"{whom}__in": among})
    return {row[whom]: _used(row) for row in rows.annotate(**_SUMS)}


def use_in_days(since: float, scope: Scope = GAME) -> Used:
    """Return what was used since the day of a time began, also by calls that were added up.

    Calls that were added up no longer say whose words they answered. So the result of a player has
    only calls that are still kept.
    """
    kept = use_since(since - since % DAY_SECONDS, scope)
    if scope.kind == "player":
        return kept
    days = models.ModelCallDay.objects.filter(day__gte=since // DAY_SECONDS)
    if scope.kind == "npc":
        days = days.filter(npc_ref=scope.ref)
    return kept + _used(days.aggregate(**_SUMS_OF_DAYS))


def spent_by_each(since: float) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Return the nanodollars spent since the day of a time began, by NPC and by player."""
    first = since - since % DAY_SECONDS
    kept = models.ModelCall.objects.filter(started_at__gte=first, nanodollars__gt=0)
    days = models.ModelCallDay.objects.filter(day__gte=since // DAY_SECONDS, nanodollars__gt=0)
    npcs = _spent(kept, "npc_ref")
    for ref, spent in _spent(days, "npc_ref").items():
        npcs[ref] = npcs.get(ref, 0) + spent
    return npcs, _spent(kept, "player_ref")


def _spent(rows: QuerySet, whom: str) -> dict[str, int]:
    found = rows.order_by().values_list(whom).annotate(spent=Sum("nanodollars"))
    return dict(found)


def calls_of_turns(npc_ref: str, numbers: Collection[int]) -> tuple[NewCall, ...]:
    """Return the calls that belong to these turns of an NPC, oldest first."""
    rows = models.ModelCall.objects.filter(npc_ref=npc_ref, turn__in=numbers)
    return _calls(rows.order_by("started_at", "pk"))


def newest_cut_calls(turns: Mapping[str, int]) -> Mapping[str, NewCall]:
    """Return, for each NPC, the newest call of its turn if the server cut the prompt. One query.

    Args:
        turns: The number of one turn for each NPC.
    """
    rows = models.ModelCall.objects.filter(
        npc_ref__in=list(turns), turn__in=set(turns.values()), whole_tokens__isnull=False
    )
    found = _calls(rows.order_by("pk"))
    return {call.npc_ref: call for call in found if turns[call.npc_ref] == call.turn}


def newest_calls(count: int) -> tuple[NewCall, ...]:
    """Return the newest calls of the whole game, newest first."""
    return _calls(models.ModelCall.objects.order_by("-pk")[:count])


def newest_turn_for(player_refs: Collection[str]) -> tuple[str, int] | None:
    """Return the newest turn that answered one of these people: its NPC and its number, or None."""
    rows = models.ModelCall.objects.filter(player_ref__in=player_refs, turn__isnull=False)
    found: tuple[str, int] | None = rows.order_by("-pk").values_list("npc_ref", "turn").first()
    return found


def cache_shares(npc_refs: Collection[str], *, since: float, most: int) -> dict[str, list[int]]:
    """Return which percentage of recent calls' input came from the provider's cache, by NPC.

    The list of each NPC begins with its oldest call. Only the newest `most` calls are examined.
    Calls whose provider reported no share are left out.
    """
    rows = models.ModelCall.objects.filter(
        npc_ref__in=npc_refs, started_at__gte=since, input_tokens__gt=0, cached_tokens__isnull=False
    )
    found: dict[str, list[int]] = {}
    told = rows.order_by("-pk").values_list("npc_ref", "input_tokens", "cached_tokens")[:most]
    for ref, given, kept in reversed(told):
        found.setdefault(ref, []).append(min(100, 100 * kept // given))
    return found


def calls_outside_turns(
    npc_ref: str, *, since: float, until: float, limit_calls: int
) -> tuple[NewCall, ...]:
    """Return an NPC's newest calls between two times that belong to no turn, newest first."""
    rows = models.ModelCall.objects.filter(npc_ref=npc_ref, turn=None, event_record=None)
    rows = rows.filter(started_at__gte=since)
    rows = rows.filter(started_at__lt=min(until, _END_OF_TIME))
    return _calls(rows.order_by("-started_at", "-pk")[:limit_calls])


def refused_sayings(
    npc_ref: str, *, since: float, until: float, limit: int
) -> tuple[RefusedSaying, ...]:
    """Return what people said that a limit prevented an NPC from answering, newest first.

    Only words between the two times are returned.
    """
    rows = _refused(since).filter(npc_ref=npc_ref, started_at__lt=min(until, _END_OF_TIME))
    newest = rows.select_related("event_record").order_by("-started_at", "-pk")
    return tuple(_saying(row) for row in newest[:limit])


def refused_times(since: float, *, npc_ref: str = "", limit: int) -> tuple[RefusedTimes, ...]:
    """Return how often each limit has refused each person since a time, the last refusal first."""
    rows = _refused(since).filter(**({"npc_ref": npc_ref} if npc_ref else {}))
    by_whom = rows.values("npc_ref", "player_ref", "outcome")
    found = by_whom.annotate(times=Count("pk"), last_at=Max("started_at")).order_by("-last_at")
    return tuple(
        RefusedTimes(limit=row.pop("outcome").removeprefix(UNSENT), **row) for row in found[:limit]
    )


def odd_replies(npc_ref: str, *, limit: int) -> tuple[tuple[str, str, int], ...]:
    """Return model, outcome and number of an NPC's odd replies in the calls that are kept."""
    rows = models.ModelCall.objects.filter(npc_ref=npc_ref)
    odd = rows.filter(outcome__startswith=f"{ANSWERED}:").values_list("model", "outcome")
    return tuple(odd.annotate(times=Count("pk")).order_by("-times", "model", "outcome")[:limit])


def _refused(since: float) -> QuerySet:
    return models.ModelCall.objects.filter(started_at__gte=since, event_record__isnull=False)


def _saying(row: models.ModelCall) -> RefusedSaying:
    record = row.event_record
    meta = {} if record.meta == models.ERASED_META else json.loads(record.meta)
    return RefusedSaying(
        npc_ref=row.npc_ref,
        player_ref=row.player_ref,
        limit=row.outcome.removeprefix(UNSENT),
        at=row.started_at,
        record=record.pk,
        event=str(meta.get("event", "")),
        speaker=record.name,
    )


def total_use(npc_ref: str) -> Used:
    """Return everything that was ever used for an NPC, removed calls included."""
    return use_in_days(0.0, of_npc(npc_ref))


def forget_player(player_ref: str, *, npc_ref: str | None = None) -> int:
    """Remove a player's reference from the player's calls, and return the number of calls.

    Call this inside a transaction.
    """
    return _of_player(player_ref, npc_ref).update(player_ref="")


def count_of_player(player_ref: str, *, npc_ref: str | None = None) -> int:
    """Return how many calls answered a player's words, for one NPC or for all."""
    return _of_player(player_ref, npc_ref).count()


def sum_up_old(now: float, *, keep_days: int, most_calls: int = SLICE_CALLS) -> int:
    """Add old calls to the sum of their day and delete them. Return the number of deleted calls.

    Each invocation handles at most `most_calls` rows of one day, in one transaction, so that the
    game does not pause. It returns 0 if nothing is left to do.

    Args:
        keep_days: Calls are old if their day ended more than this many days ago.
    """
    first_kept = (int(now // DAY_SECONDS) - keep_days) * DAY_SECONDS
    old = models.ModelCall.objects.filter(started_at__lt=first_kept).order_by("started_at", "pk")
    oldest = old.values_list("started_at", flat=True).first()
    if oldest is None:
        return 0
    day = int(oldest // DAY_SECONDS)
    of_day = old.filter(started_at__lt=(day + 1) * DAY_SECONDS)
    mine = list(of_day.values_list("pk", flat=True)[:most_calls])
    rows = models.ModelCall.objects.filter(pk__in=mine)
    with one_transaction(f"summing up the calls of day {day}"):
        for found in rows.values(*_DAY_KEY).annotate(**_SUMS).order_by():
            _add_to_day({"day": day, **{name: found[name] for name in _DAY_KEY}}, _used(found))
        return rows.delete()[0]


def _add_to_day(key: Mapping[str, Any], found: Used) -> None:
    known = models.ModelCallDay.objects.filter(**key)
    sums = {name: getattr(found, name) for name in _SUMMED}
    if not known.update(**{name: F(name) + value for name, value in sums.items()}):
        models.ModelCallDay.objects.create(**key, **sums)


def _of_player(player_ref: str, npc_ref: str | None) -> QuerySet:
    rows = models.ModelCall.objects.filter(player_ref=player_ref).exclude(player_ref="")
    return rows if npc_ref is None else rows.filter(npc_ref=npc_ref)


def _calls(rows: QuerySet) -> tuple[NewCall, ...]:
    return tuple(NewCall(**row) for row in rows.values(*_FIELDS))


def _of(rows: QuerySet, scope: Scope) -> QuerySet:
    if scope.kind == "npc":
        return rows.filter(npc_ref=scope.ref)
    return rows.filter(player_ref=scope.ref) if scope.kind == "player" else rows


def _used(row: Mapping[str, Any]) -> Used:
    return Used(**{name: row[f"all_{name}"] for name in _SUMMED})


_DAY_KEY: Final = ("npc_ref", "role", "model")
_SUMMED: Final = tuple(Used.__dataclass_fields__)
_SUMS_OF_DAYS: Final[Mapping[str, Any]] = {
    f"all_{name}": Coalesce(Sum(name), 0) for name in _SUMMED
}
_COUNTED: Final = ~(Q(outcome__startswith=UNSENT) | Q(outcome=STOPPED))
_SUMS: Final[Mapping[str, Any]] = {
    **_SUMS_OF_DAYS,
    "all_calls": Count("pk", filter=_COUNTED),
    "all_failures": Count("pk", filter=_COUNTED & ~Q(outcome__startswith=ANSWERED)),
    "all_unpriced_calls": Count("pk", filter=_COUNTED & Q(nanodollars=None)),
}


HALTS: Final = "halts"
GAME_REF: Final = ""
"""The reference of the whole game, in place of an NPC's reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Halt:
    """A halt: an NPC is paused, or the whole game is stopped."""

    npc_ref: str
    """The NPC that is paused; "" for the whole game."""
    halted_by: str
    halted_at: float
    reason: str = ""
    """The reason; "" if none was given."""

    def __str__(self) -> str:
        why = f": {self.reason}" if self.reason else ""
        return f"{'paused' if self.npc_ref else 'stopped'} by {self.halted_by}{why}"


def _load_halts() -> Mapping[str, Halt]:
    return {row.npc_ref: value_of(Halt, row) for row in models.Halt.objects.order_by("pk")}


halts: Final = Snapshot(HALTS, _load_halts)
"""Return the current halts, by reference.

No query is made if they are in memory. Raises StoreError if the database cannot be read.
"""


def add_halt(new: Halt, *, by: Actor) -> None:
    """Halt an NPC or the game. An earlier halt is replaced.

    Raises:
        StoreError: the database refused the change, and nothing is halted.
    """
    values = {
        "halted_by": new.halted_by[:NAME],
        "halted_at": new.halted_at,
        "reason": new.reason[:NAME],
    }
    with changing(HALTS, f"halting {new.npc_ref or 'the game'}", by=by):
        models.Halt.objects.update_or_create(npc_ref=new.npc_ref, defaults=values)
        halts.note_any_change()


def remove_halt(npc_ref: str, *, by: Actor) -> bool:
    """End the halt of an NPC or of the game.

    Returns:
        True if there was a halt.

    Raises:
        StoreError: the database refused the change.
    """
    with changing(HALTS, f"releasing {npc_ref or 'the game'}", by=by):
        gone, _ = models.Halt.objects.filter(npc_ref=npc_ref).delete()
        halts.note_any_change()
    return bool(gone)
