"""`ai`, `ai <npc>` and `ai/limits`: how NPCs are doing, and what they may use of models."""

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from twisted.internet.defer import Deferred

from evennia_ai.commands.base import CommandError, counted, day_and_time, in_words, name_of
from evennia_ai.commands.turn_shown import cut_lines
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.prompt.components import Scope
from evennia_ai.engine.text.columns import WIDTH, clip_text, escape_controls, pad_text, wrap_hanging
from evennia_ai.npc.background.queued import WorkStatus
from evennia_ai.npc.floor.scheduler import Crowd
from evennia_ai.npc.mind import overview
from evennia_ai.npc.mind.npc_list import NPCList
from evennia_ai.npc.mind.overview import NPCRow, Totals
from evennia_ai.npc.model_calls.limits import Limits, LimitScope, is_stopped
from evennia_ai.npc.npc_settings import settings_of
from evennia_ai.npc.runtime import runtime
from evennia_ai.npc.senses.presence import NPC, object_of
from evennia_ai.npc.tools.registry import problems_of
from evennia_ai.npc.upkeep.compacting import Outcome
from evennia_ai.services.llm.quotas import LIMITS
from evennia_ai.store import model_calls
from evennia_ai.store.history import turns
from evennia_ai.store.history.model_requests import Compacted, compacted_of
from evennia_ai.store.history.turns import StoredTurn
from evennia_ai.store.model_calls import DAY_SECONDS, halts

PAGE_NPCS: Final = 20
MOST_SET_ASIDE: Final = 5
MOST_WAITING: Final = 5
_WIDTHS: Final = (14, 11, 12, 3, 13, 5, 6)
_HEADS: Final = ("name", "room", "state", "q", "last turn", "calls", "tokens", "model")
_MODEL_WIDTH: Final = WIDTH - sum(_WIDTHS) - len(_WIDTHS)


def overview_lines(part: str, number: int) -> list[str]:
    """Return one page of the NPCs whose name or room contains `part`."""
    live = runtime()
    found = NPCList(part, first_refs=live.scheduler.busy_keys)
    shown = found.page(number, size=PAGE_NPCS)
    if not shown:
        raise CommandError(_nobody(part, number))
    rows = overview.rows_of(live, shown, now=time.time())
    return [
        *stop_lines(),
        *_total_lines(overview.game_totals(live, found), part),
        *_crowd_lines(live.scheduler.crowds()),
        *[line for told in live.calls.small_windows.values() for line in wrap_hanging(f"! {told}")],
        *work_lines(live.work.status, now=time.time()),
        _columns(_HEADS),
        "-" * WIDTH,
        *map(_row, rows),
        *_legend(rows),
        *_more(part, number, pages=-(-found.count // PAGE_NPCS)),
    ]


def stop_lines() -> list[str]:
    """Return a warning if the whole game is stopped, else no lines."""
    why = is_stopped()
    if not why:
        return []
    told = f"*** ALL NPCS ARE STOPPED: {escape_controls(why)} ***"
    return [clip_text(told, WIDTH), "*** No model is asked for anything. ai/startall ends it. ***"]


def thousands(number: int) -> str:
    """Return a number in at most six columns."""
    if number < 100_000:
        return str(number)
    return f"{number / 1000:.0f}k" if number < 10_000_000 else f"{number / 1_000_000:.0f}M"


def ago(seconds: float) -> str:
    """Return how long ago something was, in at most five columns."""
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= length:
            return f"{seconds // length:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def _nobody(part: str, number: int) -> str:
    if number > 1:
        return f"There is no page {number}: there are fewer NPCs."
    if part:
        return f"No NPC has '{part}' in its name or in the name of its room."
    return (
        "There is no NPC with a mind yet; create one: create/drop Oren:evennia_ai.typeclasses.AINPC"
    )


def _total_lines(all_of: Totals, part: str) -> Iterator[str]:
    which = f"with '{escape_controls(part)}'" if part else "in the game"
    more = "more than " if all_of.are_more else ""
    npcs = f"{more}{counted(all_of.npcs, 'NPC')} {which}"
    yield from wrap_hanging(
        f"{npcs}; in all {all_of.answering} answering, {all_of.waiting} waiting; today"
        f" {counted(all_of.calls, 'call')}, {thousands(all_of.tokens)} tokens."
    )


def _crowd_lines(crowds: Iterable[Crowd]) -> Iterator[str]:
    """Name the NPCs that wait because a model already has as many turns as it may run at once."""
    for crowd in crowds:
        found = (object_of(key) for key in crowd.keys[:MOST_WAITING])
        names = [escape_controls(npc.key) for npc in found if npc is not None]
        if more := len(crowd.keys) - len(names):
            names.append(f"{more} more")
        yield from wrap_hanging(
            f"! {escape_controls(crowd.model)} has {counted(crowd.running, 'turn')} under way, its"
            f" limit (max_concurrent). Waiting for it: {', '.join(names)}."
        )


def work_lines(status: WorkStatus | None, *, now: float) -> Iterator[str]:
    """Yield lines about the background workers; none if the game does the work itself."""
    if status is None:
        return
    told = [counted(len(status.workers), "worker")]
    told += [
        f"{escape_controls(one.name)} has given no sign for {ago(now - one.seen_at)}"
        for one in status.silent(now)
    ]
    told += [f"{one.kind} {one.waiting} waiting, {one.taken} taken" for one in status.queues]
    if lag := status.lag_seconds(now):
        told.append(f"the oldest waits {ago(lag)}")
    if status.is_away:
        told.append(f"the queue cannot be reached, {counted(status.unsent, 'job')} kept here")
    told += [f"{kind} done without {often} times" for kind, often in status.over.items()]
    yield from wrap_hanging(f"Background work: {'; '.join(told)}.")
    for name, reason in status.poisoned[:MOST_SET_ASIDE]:
        yield from wrap_hanging(f"! set aside: {escape_controls(name)}: {escape_controls(reason)}")


def _row(row: NPCRow) -> str:
    return _columns(
        (
            row.found.name,
            row.found.room or "(nowhere)",
            _state(row),
            str(row.waiting),
            _last(row),
            str(row.calls),
            thousands(row.tokens),
            f"{'!' if row.breaker != 'closed' else ''}{row.model}",
        )
    )


def _state(row: NPCRow) -> str:
    """Return what the NPC does now, or why it cannot answer."""
    if row.state == "answers" and row.answering_seconds is not None:
        return f"answers {ago(row.answering_seconds)}"
    return "PAUSED" if row.state == "paused" else row.state


def _last(row: NPCRow) -> str:
    if row.last is None:
        return "-"
    if row.last.ended_at is None:
        return "under way"
    how = "CUT" if row.cut is not None else row.last.state
    return f"{ago(time.time() - row.last.ended_at)}, {how}"


def _legend(rows: Iterable[NPCRow]) -> Iterator[str]:
    rows = tuple(rows)
    if any(row.breaker != "closed" for row in rows):
        yield "! this model failed repeatedly and is left alone for a while"
    cut = next((row for row in rows if row.cut is not None), None)
    if cut is not None:
        name = escape_controls(cut.found.name)
        yield clip_text(
            f"CUT: the server read only part of the prompt; see ai/context {name}", WIDTH
        )
    refused = sum(row.refused for row in rows)
    if refused:
        yield f"{refused} answers were refused today because of limits; see ai/limits"


def _more(part: str, number: int, *, pages: int) -> Iterator[str]:
    if number < pages:
        what = f"{part}/{number + 1}" if part else f"/{number + 1}"
        yield clip_text(
            f"Page {number} of {pages}; the next: ai/list {escape_controls(what)}", WIDTH
        )


def _columns(texts: Iterable[str]) -> str:
    *cells, model = (escape_controls(text) for text in texts)
    row = " ".join(pad_text(cell, width) for cell, width in zip(cells, _WIDTHS, strict=True))
    return f"{row} {clip_text(model, _MODEL_WIDTH)}"


MOST_AT_LIMIT: Final = 20


def limit_lines(npc: NPC | None = None) -> list[str]:
    """Return the limits and their use: of the game and one NPC, or of everyone at a limit now."""
    limits = runtime().limits
    lines = ["Limits on calls of models, used of allowed:", *_used(limits, "game", "", "game")]
    if npc is None:
        lines += _usual(limits)
        lines += _at_limit(limits)
        lines += _refused_today("")
    else:
        own = settings_of(npc).limits
        lines += _used(limits, "npc", npc.ai.ref, escape_controls(npc.key), own)
        lines += _refused_today(npc.ai.ref)
    return [clip_text(line, WIDTH) for line in lines]


def today_lines(npc: NPC, *, now: float) -> list[str]:
    """Return the status lines on what an NPC used today and what is left."""
    limits, ref = runtime().limits, npc.ai.ref
    used = model_calls.use_since(now - now % DAY_SECONDS, Scope(kind="npc", ref=ref))
    all_time = model_calls.total_use(ref)
    share = (
        f", {100 * used.cached_tokens // used.input_tokens} % cached" if used.input_tokens else ""
    )
    calls = counted(used.calls, "call")
    told = f"{calls}, {used.input_tokens} tokens in{share}, {used.output_tokens} out"
    lines = [
        f"  today          {told}",
        f"  ever           {counted(all_time.calls, 'call')}, {all_time.tokens} tokens",
    ]
    left = ", ".join(_left(limits, ref, settings_of(npc).limits))
    lines.append(f"  left           {left or 'no limits'}")
    refused = limits.refused(ref)
    return [*lines, f"  refused        {refused} today"] if refused else lines


def _left(limits: Limits, ref: str, own: Mapping[str, int]) -> Iterator[str]:
    quota, reading = limits.quota("npc", own), limits.reading("npc", ref)
    for limit in LIMITS:
        most = getattr(quota, limit)
        if most is not None:
            yield f"{max(0, most - getattr(reading, limit))} {limit.replace('_', ' ')}"


def _used(
    limits: Limits, scope: LimitScope, ref: str, name: str, own: Mapping[str, int] | None = None
) -> Iterator[str]:
    quota, reading = limits.quota(scope, own or {}), limits.reading(scope, ref)
    for limit in LIMITS:
        most = getattr(quota, limit)
        allowed = "no limit" if most is None else str(most)
        mine = " (its own)" if own and limit in own and most == own[limit] else ""
        what = limit.replace("_", " ")
        yield f"  {name:16.16} {what:18} {getattr(reading, limit):>9} of {allowed}{mine}"


def _usual(limits: Limits) -> Iterator[str]:
    kinds: tuple[tuple[LimitScope, str], ...] = (("npc", "each NPC"), ("player", "each player"))
    for scope, name in kinds:
        quota = limits.quota(scope)
        told = [
            f"{getattr(quota, limit)} {limit.replace('_', ' ')}"
            for limit in LIMITS
            if getattr(quota, limit) is not None
        ]
        yield f"  {name:16} {', '.join(told) or 'no limit'}"


def _at_limit(limits: Limits) -> Iterator[str]:
    found = limits.at_limit()
    for scope, ref, reached in found[:MOST_AT_LIMIT]:
        what = reached.limit.replace("_", " ")
        yield f"  {scope} {escape_controls(name_of(ref))} is at its {reached.most} {what}"
    if len(found) > MOST_AT_LIMIT:
        yield f"  and {len(found) - MOST_AT_LIMIT} more are at a limit"


def _refused_today(npc_ref: str) -> Iterator[str]:
    """Yield who was refused today, by which limit, how often, and when last."""
    since = runtime().limits.midnight
    found = model_calls.refused_times(since, npc_ref=npc_ref, limit=MOST_AT_LIMIT + 1)
    if found:
        yield "Refused today, the last first:"
    for one in found[:MOST_AT_LIMIT]:
        who = escape_controls(name_of(one.player_ref)) if one.player_ref else "no player"
        by = "" if npc_ref else f" by {escape_controls(name_of(one.npc_ref))}"
        yield f"  {day_and_time(one.last_at)}  {who}{by}, {_times(one.times)}"
        yield f"      {limit_in_words(one.limit)}"
    if len(found) > MOST_AT_LIMIT:
        yield "  and others before that; ai/log <npc> has each of them"


def limit_in_words(limit: str) -> str:
    """Return a limit such as "player.calls_per_minute" as builders read it."""
    scope, _, name = limit.partition(".")
    whose = {"player": "the player's", "npc": "the NPC's", "game": "the game's"}.get(scope, scope)
    return escape_controls(f"{whose} {name.replace('_', ' ')}")


def _times(times: int) -> str:
    return "once" if times == 1 else f"{times} times"


def compact_room(npc: NPC, *, by: Actor) -> "Deferred[str]":
    """Compact what the NPC remembers of its room. Fires with a line about the result."""

    def told(outcome: Outcome) -> str:
        if outcome.record is None:
            return f"Nothing was summarised for {npc.key}: {outcome.told}."
        return f"What was said in the room of {npc.key} is summarised now: {outcome.told}."

    return runtime().compactor.compact_room(npc.ai, by=by).addCallback(told)


def compaction_lines(npc: NPC) -> Iterator[str]:
    """Yield a line for each conversation that was compacted, or for which it was tried."""
    turn = turns.next_number(npc.ai.ref)
    for one in compacted_of(npc.ai.ref):
        yield f"{in_words(one.conversation)}: {', '.join(_parts(one, turn))}"


def _parts(one: Compacted, turn: int) -> Iterator[str]:
    if one.summary is not None:
        by = "an extract" if one.summary.meta["by"] == "extract" else "a model"
        yield f"compacted by {by} {day_and_time(one.summary.created_at)}"
    breaker, rules = one.attempt.breaker, runtime().conf.compaction.rules
    if breaker.is_open(turn, rules=rules):
        until = (breaker.opened_at or 0) + rules.rest_turns
        yield f"no new try until turn {until}, after {breaker.failures} failures in a row"
    elif breaker.failures:
        yield f"{breaker.failures} failures in a row"
    if one.attempt.reason:
        yield f"last: {one.attempt.reason}"


_PLACES: Final = {"room": "in rooms", "private": "in private"}


def status_lines(npc: NPC) -> list[str]:
    """Return how an NPC is doing, one line for each fact."""
    status = npc.ai.status()
    busy = "answering now" if status.in_flight else "idle"
    breaker = f", breaker {status.breaker}" if status.breaker else ""
    where = "no model is asked" if status.offline else "a model is asked"
    talks = ", ".join(f"{count} {_PLACES[kind]}" for kind, count in status.conversations.items())
    state = f"{'on' if status.enabled else 'off'}, {busy}, {status.waiting} waiting"
    lines = [
        *stop_lines(),
        f"{npc.key} (#{npc.id}): {state}",
        *_pause_lines(npc),
        *(
            [f"  waits because  {escape_controls(status.waits_because)}"]
            if status.waits_because
            else []
        ),
        f"  answers by     {status.endpoint} ({where}){breaker}",
        f"  card           {status.card or f'none; card/assign <card> = {npc.key} gives one'}",
        *([f"  preset         {escape_controls(status.preset)}"] if status.preset else []),
        f"  conversations  {talks or 'none'}",
        f"  last turn      {_turn_in_words(status.last_turn)}",
    ]
    if status.last_turn is not None:
        lines += [f"  PROMPT CUT     {told}" for told in cut_lines(status.last_turn)]
    lines += today_lines(npc, now=time.time())
    lines += [f"  compaction     {line}" for line in compaction_lines(npc)]
    if npc.ai.attention.overflows:
        overflows = npc.ai.attention.overflows
        lines.append(f"  not answered   {overflows} since the start: too much waited")
    if status.unrecorded:
        lines.append(f"  not recorded   {status.unrecorded}: the database cannot be reached")
    problems = (*status.problems, *problems_of(npc))
    lines += [f"  problem        {problem}" for problem in problems]
    return [shown for line in lines for shown in wrap_hanging(line)]


def _pause_lines(npc: NPC) -> list[str]:
    pause = halts().get(npc.ai.ref)
    if pause is None:
        return []
    return [f"  PAUSED         {pause}, {day_and_time(pause.halted_at)}; ai/resume {npc.key}"]


def _turn_in_words(last: StoredTurn | None) -> str:
    if last is None:
        return "none yet"
    outcome = f": {last.outcome}" if last.outcome else ""
    return f"{last.number}, {last.state}{outcome}, {day_and_time(last.created_at)}"
