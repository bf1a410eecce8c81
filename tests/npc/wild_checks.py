"""Checks that must hold for every random game (`wild_games`)."""

import json
import re
from collections import Counter
from typing import Any

from evennia_ai import models
from evennia_ai.engine.history.projection import record_of
from evennia_ai.engine.history.records import Record, RecordKind, call_ids
from evennia_ai.npc.runtime import runtime
from evennia_ai.npc.turn.ending import STOPPED
from evennia_ai.npc.views.recomposing import PastReader, compose_again
from evennia_ai.store.history import record_rows
from evennia_ai.store.history.branches import ASKED_NEXT
from evennia_ai.store.history.past_turns import replay_stored_turn, turns_in_order
from evennia_ai.store.history.verifying import verify
from evennia_ai.store.history.windows import windows
from tests.npc.wild_games import LINE, PLAYERS, WORD, Game
from tests.npc.wild_models import Note, Request
from tests.store.builders import history_in

# Checks at every request and after every step.


def check_request(game: Game, one: Request) -> None:
    """Check what a prompt contains, and what it must not contain."""
    request = one.request
    messages = [m for m in request.messages if m.role != "system"]
    check_calls_are_answered(messages)
    while messages[-1].role == "tool" or messages[-1].tool_calls:
        messages.pop()
    event = messages[-1]
    assert event.role == "user"
    *_, asked = (None, *LINE.findall(request.question))  # of lines with one answer the newest
    is_answered = f"{asked}" in event.content if asked else request.question in event.content
    assert is_answered, "the last thing is not what is answered"
    said = game.said[int(asked)] if asked else None
    if said is not None:
        assert event.content.startswith(f"{said.by}: "), "another speaker"
        assert said.private_with in ("", one.npc_ref), "a whisper to another"
    for message in messages:
        for number in LINE.findall(message.content):
            other = game.said[int(number)]
            if other.private_with:
                assert other.private_with == one.npc_ref, "a whisper to another"
                assert said is None or (said.private_with and said.by == other.by), "not private"


def check_calls_are_answered(messages: list[Any]) -> None:
    """Check that each call is followed by its result, and that each result has a call."""
    open_calls: list[str] = []
    for message in messages:
        if message.role == "tool":
            assert message.tool_call_id in open_calls, "a result of no call"
            open_calls.remove(message.tool_call_id)
        else:
            assert not open_calls, "a call without a result"
            open_calls = [call.id for call in message.tool_calls]
    assert not open_calls, "a call without a result"


def check_step(game: Game) -> None:
    pending = Counter(one.npc_ref for one in game.model.asked if one.is_open)
    assert not pending or max(pending.values()) == 1, "two turns of one NPC"
    assert len(Note.ran) == len(set(Note.ran)), "an act ran twice"
    if game.fuse is None:
        left_open = Counter(models.Turn.objects.filter(state="open").values_list("npc_ref"))
        assert not left_open or max(left_open.values()) == 1, "two turns are open"


# Checks at the end.


def check_end(game: Game, logged: list[str]) -> None:
    assert not [line for line in logged if is_unexpected(line)]
    check_nothing_is_left(game)
    check_turns()
    check_answers(game, logged)
    check_calls(game)
    for where in game.all_conversations():
        check_history(where)
    for ref in game.refs:
        check_prompts(ref)
    check_screens(game)


def is_unexpected(line: str) -> bool:
    """Return whether the log shows an unexpected error. Only a tool may meet a database error."""
    if "Traceback" not in line and "Unhandled" not in line:
        return False
    return not (line.startswith("evennia_ai: tool ") and "database is locked" in line)


def check_nothing_is_left(game: Game) -> None:
    live = runtime()
    assert live.scheduler.running == live.scheduler.waiting_in_all == 0
    assert not live.calls.under_way
    assert not any(npc.ai.is_busy for npc in game.npcs.values() if npc.pk is not None)
    assert [str(call) for call in game.clock.getDelayedCalls()] == []


def check_turns() -> None:
    assert not models.Turn.objects.filter(state="open").exists(), "a turn is open"
    for row in models.Turn.objects.all():
        ends = models.Record.objects.filter(
            conversation_id=row.conversation_id,
            kind=RecordKind.RUN_END.value,
            meta__contains=f'"turn":{row.number}}}',
        )
        erased = row.outcome == "erased on request"
        assert ends.count() <= 1 if erased else ends.count() == 1, f"ends of turn {row.number}"
        assert row.outcome, "nobody knows how it ended"


def check_answers(game: Game, logged: list[str]) -> None:
    """Check that each event was answered once: only a round that goes on is followed by another."""
    by_event: dict[Any, list[str]] = {}
    for row in models.Turn.objects.exclude(event_record_id=None).order_by("pk"):
        joined = json.loads(row.manifest)["inputs"].get("history", {}).get("joined", [])
        for event in (row.event_record_id, *map(int, joined)):
            by_event.setdefault(event, []).append(row.outcome)
    for outcomes in by_event.values():
        for outcome in outcomes[:-1]:
            followed = outcome.startswith("used ") or outcome.endswith(ASKED_NEXT)
            begun_again = outcome in ("erased on request", STOPPED)
            assert followed or begun_again, outcomes
    told = " ".join(logged)
    for npc in game.npcs.values():
        verdicts = npc.ai.attention.last_verdicts if npc.pk is not None else ()
        for verdict in {
            LINE.search(v.text)[0]: v for v in verdicts if LINE.search(v.text)
        }.values():
            if verdict.answers:
                assert (
                    was_answered(npc, verdict, by_event)
                    or "given up" in told
                    or "does not fit" in told
                )


def was_answered(npc: Any, verdict: Any, by_event: dict[Any, list[str]]) -> bool:
    line = LINE.search(verdict.text)[0]
    rows = models.Record.objects.filter(
        conversation__npc_ref=str(npc.id), kind=RecordKind.USER.value, body__contains=line
    )
    erased = not rows.exists()
    return erased or any(row.pk in by_event for row in rows)


def check_calls(game: Game) -> None:
    """Check that there is a row for every model call."""
    rows = models.ModelCall.objects.filter(role="speaker").exclude(outcome__startswith="unsent:")
    asked = rows.exclude(outcome="failed:stopped").count()
    stopped = rows.filter(outcome="failed:stopped").count()
    made = len(game.model.asked) - game.lost_calls
    assert asked <= made <= asked + stopped, (made, asked, stopped)


def check_history(where: Any) -> None:
    assert verify(where) is None
    shown = [record_of(m) for m in windows(where.id).history]
    assert [r.place for r in shown if r] == [
        r.place for m in history_in(where, windows(where.id).end.segment) if (r := record_of(m))
    ]
    known, fresh = windows(where.id), windows._load(where.id)
    assert known.history.stop == fresh.history.stop
    assert known.history.user_messages == fresh.history.user_messages
    assert known.history.replies == fresh.history.replies
    for name in ("end", "cut", "anchors", "first_reply", "remembered_from"):
        assert getattr(known, name) == getattr(fresh, name), name
    check_calls_are_answered(list(windows(where.id).history))
    records = record_rows.records_of(where)
    calls = [call for record in records for call in call_ids(record)]
    results = [
        r.meta["tool_call_id"]
        for r in records
        if r.kind is RecordKind.TOOL_RESULT and r.meta.get("tool_call_id")
    ]
    assert sorted(calls) == sorted(results), "calls and results"
    if where.kind == "room":
        for record in records:
            assert not record.meta.get("to") or record.meta.get("event") != "whisper"


def check_prompts(npc_ref: str) -> None:
    reader = PastReader()
    for turn in turns_in_order(npc_ref):
        if turn.manifest.erased:
            continue
        records = record_rows.records(turn.manifest.record_ids)
        if any(record.is_erased for record in records):
            continue
        assert replay_stored_turn(turn).is_same
        assert compose_again(turn, reader).sha256 == turn.manifest.sha256


# Comparisons of what was shown with what was recorded.


def check_screens(game: Game) -> None:
    known = game.all_conversations()
    for ref, name in game.refs.items():
        for place, watcher in game.watchers.items():
            shown = words_on(watcher, f"{name} (?!whispers)")
            mine = [c for c in known if c.npc_ref == ref and c.place_ref == str(place)]
            asides = words_aside([c for c in known if c.npc_ref == ref and c not in mine])
            check_words(game, shown, mine, f"{name} in {place}", asides)
        for player in PLAYERS:
            shown = words_on(game.players[player], f"{name} whispers to you")
            partner = str(game.players[player].id)
            mine = [c for c in known if c.npc_ref == ref and c.partner_ref == partner]
            check_words(game, shown, mine, f"{name} to {player}", set())
    for number, said in enumerate(game.said):
        if said.private_with:
            for watcher in game.watchers.values():
                assert f"line {number}." not in " ".join(watcher.screen.plain())
            rooms = [c.id for c in known if c.kind == "room"]
            heard = models.Record.objects.filter(conversation_id__in=rooms)
            assert not heard.filter(body__contains=f"line {number}.").exists()


def check_words(
    game: Game, shown: list[str], known: list[Any], whose: str, asides: set[str]
) -> None:
    assert len(shown) == len(set(shown)), f"{whose}: said twice: {shown}"
    told, maybe = words_in(known, asides)
    unsure = maybe | game.forgotten
    heard, sure = ([word for word in words if word not in unsure] for words in (shown, told))
    assert heard == sure, f"{whose}: not as recorded"


def words_on(character: Any, begin: str) -> list[str]:
    lines = [line for line in character.screen.plain() if re.match(begin, line)]
    return [word for line in lines for word in WORD.findall(line)]


def words_aside(known: list[Any]) -> set[str]:
    """Return the words said in these conversations while another one was being answered."""
    records = [record for where in known for record in record_rows.records_of(where)]
    return {word for r in records if r.meta.get("aside") for word in WORD.findall(r.body)}


def words_in(known: list[Any], elsewhere: set[str]) -> tuple[list[str], set[str]]:
    """Return the recorded words in order, and words of calls whose outcome is unknown.

    Words that were said `elsewhere` are left out here.
    """
    told: dict[str, None] = {}
    maybe: set[str] = set()
    for where in known:
        records = record_rows.records_of(where)
        results = {
            r.meta.get("tool_call_id"): r for r in records if r.kind is RecordKind.TOOL_RESULT
        }
        for record in records:
            if record.role == "assistant" and record.kind in (
                RecordKind.ASSISTANT,
                RecordKind.SPOKEN,
                RecordKind.TOOL_CALL,
            ):
                told.update(dict.fromkeys(WORD.findall(record.body)))
            for call in record.meta.get("tool_calls", ()):
                act(call, results.get(call["id"]), where.kind, told, maybe)
    return [word for word in told if word not in elsewhere], maybe


def act(call: dict[str, str], result: Record | None, kind: str, told: Any, maybe: set[str]) -> None:
    words = WORD.findall(call["arguments"])
    was_said = {"room": ("say", "pose"), "private": ("whisper",)}[kind]
    if call["name"] not in was_said:
        return
    if result is None or result.meta.get("closes"):
        maybe.update(words)
    elif result.body.startswith(("You say", "You did it", "You whisper")):
        told.update(dict.fromkeys(words))
