"""`ai`, `ai <npc>` and `ai/limits`: how NPCs are doing, and what they may use of models."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from twisted.internet.defer import Deferred

from evennia_ai.commands.base import CommandError, counted, day_and_time, in_words, name_of
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.text.columns import WIDTH, clip_text, escape_controls, pad_text, wrap_hanging
from evennia_ai.npc.background.queued import WorkStatus
from evennia_ai.npc.floor.scheduler import Crowd
from evennia_ai.npc.mind.status import (
    Compaction,
    GameNow,
    LimitUse,
    NPCPage,
    NPCRow,
    NPCStatus,
    Spending,
    game_now,
    limit_status,
    npcs_now,
    stored_game_status,
    stored_page,
)
from evennia_ai.npc.model_calls.limits import LimitScope
from evennia_ai.npc.runtime import runtime
from evennia_ai.npc.senses.presence import NPC, object_of
from evennia_ai.npc.upkeep.compacting import Outcome
from evennia_ai.services.llm.money import as_dollars, describe_cost, in_dollars
from evennia_ai.services.llm.quotas import LIMITS, MONEY, most_in_words
from evennia_ai.store.history.past_turns import TurnLine
from evennia_ai.store.model_calls import GAME_REF, Halt, Used, halts

PAGE_NPCS: Final = 20
MOST_SET_ASIDE: Final = 5
MOST_WAITING: Final = 5
_WIDTHS: Final = (14, 11, 12, 3, 13, 5, 6)
_HEADS: Final = ("name", "room", "state", "q", "last turn", "calls", "tokens", "model")
_MODEL_WIDTH: Final = WIDTH - sum(_WIDTHS) - len(_WIDTHS)


def overview_lines(part: str, number: int) -> list[str]:
    """Return one page of the NPCs whose name or room contains `part`."""
    live, now = runtime(), time.time()
    busy = live.scheduler.busy_keys
    page = stored_page(part, number, size=PAGE_NPCS, now=now, first_refs=busy)
    if page.number != number or not page.npcs:
        raise CommandError(_nobody(part, number))
    states = npcs_now(live, page.npcs, now=now)
    rows = [replace(row, now=does) for row, does in zip(page.npcs, states, strict=True)]
    game, does = stored_game_status(now=now), game_now(live)
    return [
        *stop_lines(game.stopped),
        *_total_lines(page, game.today, does, part),
        *_crowd_lines(does.crowds),
        *[line for told in does.small_windows for line in wrap_hanging(f"! {told}")],
        *work_lines(does.work, now=now),
        _columns(_HEADS),
        "-" * WIDTH,
        *[_row(row, now=now) for row in rows],
        *_legend(rows),
        *_more(part, number, pages=page.pages),
    ]


def stop_lines(stopped: Halt | None) -> list[str]:
    """Return a warning if the whole game is stopped, else no lines."""
    if stopped is None:
        return []
    told = f"*** ALL NPCS ARE STOPPED: {escape_controls(str(stopped))} ***"
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


def _total_lines(page: NPCPage, today: Used, now: GameNow, part: str) -> Iterator[str]:
    which = f"with '{escape_controls(part)}'" if part else "in the game"
    more = "more than " if page.are_more else ""
    npcs = f"{more}{counted(page.count, 'NPC')} {which}"
    yield from wrap_hanging(
        f"{npcs}; in all {now.answering} answering, {now.waiting} waiting; today"
        f" {counted(today.calls, 'call')}, {thousands(today.tokens)} tokens."
    )
    yield from money_lines(now.spending)


def money_lines(spending: Spending) -> Iterator[str]:
    """Yield what models cost, and what to do if a limit is reached or a price is not known."""
    quota = spending.quota
    spent = [
        (spending.today_nanodollars, "today", quota.dollars_per_day),
        (spending.month_nanodollars, "this month", quota.dollars_per_month),
    ]
    if any(amount or most is not None for amount, _, most in spent):
        told = [
            f"{in_dollars(amount)}{'' if most is None else f' of {as_dollars(most)}'} {when}"
            for amount, when, most in spent
        ]
        yield f"Models cost {', '.join(told)}; see ai/limits."
    if spending.reached:
        yield from wrap_hanging(
            f"! No NPC asks a model: {spending.reached}. To go on, raise the limit in the settings"
            " and type @reload."
        )
    yield from (line for told in spending.unpriced for line in wrap_hanging(f"! {told}"))


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


def _row(row: NPCRow, *, now: float) -> str:
    does, last = row.now, row.last_turn
    assert does is not None
    state = "PAUSED" if row.state == "paused" else row.state
    if row.state == "answers" and does.answering_seconds is not None:
        state = f"answers {ago(does.answering_seconds)}"
    ended = "-" if last is None else "under way"
    if last is not None and last.ended_at is not None:
        ended = f"{ago(now - last.ended_at)}, {'CUT' if row.cut is not None else last.state}"
    return _columns(
        (
            row.name,
            row.room or "(nowhere)",
            state,
            str(does.waiting),
            ended,
            str(row.today.calls),
            thousands(row.today.tokens),
            f"{'!' if does.breaker not in ('', 'closed') else ''}{does.model}",
        )
    )


def _legend(rows: Iterable[NPCRow]) -> Iterator[str]:
    rows = tuple(rows)
    if any(row.now and row.now.breaker not in ("", "closed") for row in rows):
        yield "! this model failed repeatedly and is left alone for a while"
    cut = next((row for row in rows if row.cut is not None), None)
    if cut is not None:
        name = escape_controls(cut.name)
        yield clip_text(
            f"CUT: the server read only part of the prompt; see ai/context {name}", WIDTH
        )
    refused = sum(row.now.refused for row in rows if row.now)
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
MOST_SPENDERS: Final = 5


def limit_lines(npc: NPC | None = None) -> list[str]:
    """Return the limits and their use: of the game and one NPC, or of everyone at a limit now."""
    found = limit_status(runtime(), npc, most=MOST_AT_LIMIT + 1, most_spenders=MOST_SPENDERS)
    lines = ["Limits on calls of models, used of allowed:", *_use_lines("game", found.game)]
    if npc is None:
        usual: tuple[tuple[LimitScope, str], ...] = (("npc", "each NPC"), ("player", "each player"))
        for scope, name in usual:
            set_limits = ((limit, getattr(found.usual[scope], limit)) for limit in LIMITS)
            told = [most_in_words(limit, most) for limit, most in set_limits if most is not None]
            lines.append(f"  {name:16} {', '.join(told) or 'no limit'}")
        for kind, ref, reached in found.at_limit[:MOST_AT_LIMIT]:
            what = most_in_words(reached.limit, reached.most)
            lines.append(f"  {kind} {escape_controls(name_of(ref))} is at its {what}")
        if len(found.at_limit) > MOST_AT_LIMIT:
            more = len(found.at_limit) - MOST_AT_LIMIT
            lines.append(f"  and {more} more are at a limit")
        lines += (
            f"  {kind} {escape_controls(name_of(ref))} cost"
            f" {as_dollars(used.dollars_per_month)} this month,"
            f" {as_dollars(used.dollars_per_day)} today"
            for kind, spenders in found.spenders.items()
            for ref, used in spenders
        )
    else:
        lines += _use_lines(escape_controls(npc.key), found.npc)
    if found.refused:
        lines.append("Refused today, the last first:")
    for one in found.refused[:MOST_AT_LIMIT]:
        who = escape_controls(name_of(one.player_ref)) if one.player_ref else "no player"
        by = f" by {escape_controls(name_of(one.npc_ref))}" if npc is None else ""
        lines.append(f"  {day_and_time(one.last_at)}  {who}{by}, {_times(one.times)}")
        lines.append(f"      {limit_in_words(one.limit)}")
    if len(found.refused) > MOST_AT_LIMIT:
        lines.append("  and others before that; ai/log <npc> has each of them")
    lines += (line for told in found.unpriced for line in wrap_hanging(f"! {told}"))
    return [clip_text(line, WIDTH) for line in lines]


def _use_lines(name: str, uses: Iterable[LimitUse]) -> Iterator[str]:
    for one in uses:
        is_money = one.limit.startswith(MONEY)
        most = one.most
        allowed = "no limit" if most is None else as_dollars(most) if is_money else str(most)
        mine = " (its own)" if one.is_own else ""
        shown = as_dollars(one.used) if is_money else one.used
        yield f"  {name:16.16} {one.limit.replace('_', ' '):18} {shown:>9} of {allowed}{mine}"


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


def _compaction_line(one: Compaction) -> str:
    parts = []
    if one.at is not None:
        by = "an extract" if one.by == "extract" else "a model"
        parts.append(f"compacted by {by} {day_and_time(one.at)}")
    failures = f"{one.failures} failures in a row"
    if one.rests_until is not None:
        parts.append(f"no new try until turn {one.rests_until}, after {failures}")
    elif one.failures:
        parts.append(failures)
    if one.reason:
        parts.append(f"last: {one.reason}")
    return f"{in_words(one.conversation)}: {', '.join(parts)}"


_PLACES: Final = {"room": "in rooms", "private": "in private"}


def status_lines(npc: NPC) -> list[str]:
    """Return how an NPC is doing, one line for each fact."""
    lines = _status_lines(npc.ai.status())
    return [
        *stop_lines(halts().get(GAME_REF)),
        *(shown for line in lines for shown in wrap_hanging(line)),
    ]


def _status_lines(status: NPCStatus) -> Iterator[str]:
    now, name, pause, last = status.now, status.name, status.pause, status.last_turn
    assert now is not None
    is_on = "on" if status.is_on and not now.is_played else "off"
    busy = "answering now" if now.in_flight else "idle"
    yield f"{name} (#{status.ref}): {is_on}, {busy}, {now.waiting} waiting"
    where = "no model is asked" if now.offline else "a model is asked"
    breaker = f", breaker {now.breaker}" if now.breaker else ""
    counts = [f"{count} {_PLACES[kind]}" for kind, count in status.conversations.items()]
    facts = {
        "PAUSED": pause and f"{pause}, {day_and_time(pause.halted_at)}; ai/resume {name}",
        "waits because": escape_controls(now.waits_because),
        "answers by": f"{now.endpoint} ({where}){breaker}",
        "card": status.card.name if status.card else f"none; card/assign <card> = {name} gives one",
        "preset": status.preset and escape_controls(status.preset),
        "conversations": ", ".join(counts) or "none",
        "last turn": "none yet" if last is None else _turn_in_words(last),
        "PROMPT CUT": status.cut_because,
        "today": _used_in_words(status.today),
        "this month": _cost(status.month),
        "ever": ", ".join(
            filter(
                None,
                (
                    counted(status.ever.calls, "call"),
                    f"{status.ever.tokens} tokens",
                    _cost(status.ever),
                ),
            )
        ),
        "left": ", ".join(_left(status)) or "no limits",
        "refused": now.refused and f"{now.refused} today",
    }
    yield from (f"  {fact:14} {told}" for fact, told in facts.items() if told)
    yield from (f"  compaction     {_compaction_line(one)}" for one in status.compactions)
    if status.overflows:
        yield f"  not answered   {status.overflows} since the start: too much waited"
    if status.unrecorded:
        yield f"  not recorded   {status.unrecorded}: the database cannot be reached"
    yield from (f"  problem        {problem}" for problem in status.problems)


def _used_in_words(used: Used) -> str:
    """Return calls and tokens in words, such as "1 call, 9 tokens in, 4 out"."""
    cached = "" if used.cached_percent is None else f", {used.cached_percent} % cached"
    calls, cost = counted(used.calls, "call"), _cost(used)
    told = f"{calls}, {used.input_tokens} tokens in{cached}, {used.output_tokens} out"
    return f"{told}, {cost}" if cost else told


def _cost(used: Used) -> str:
    return describe_cost(used.nanodollars, used.unpriced_calls)


def _left(status: NPCStatus) -> Iterator[str]:
    for limit, count in (status.left or {}).items():
        yield most_in_words(limit, count)


def _turn_in_words(last: TurnLine) -> str:
    outcome = f": {last.outcome}" if last.outcome else ""
    return f"{last.number}, {last.state}{outcome}, {day_and_time(last.created_at)}"
