"""Builders for tests of the store. Each shows only the values that matter."""

from evennia_ai import models
from evennia_ai.engine.history.projection import project_records
from evennia_ai.engine.history.records import NewRecord, RecordKind
from evennia_ai.engine.history.turn.sending import make_draft
from evennia_ai.store import model_calls
from evennia_ai.store.core.snapshots import Snapshots
from evennia_ai.store.history import conversations, record_rows, turns
from evennia_ai.store.history.conversations import records_in
from evennia_ai.store.history.record_rows import records_at
from evennia_ai.store.history.sealing import portable_turn
from evennia_ai.store.history.windows import windows
from tests.engine.history.builders import a_prompt

SAID = ("event", "user", "assistant")


def a_line(body: str, *, kind=RecordKind.EVENT, role="user", name="Anna", **fields) -> NewRecord:
    return NewRecord(kind=kind, role=role, name=name, body=body, **fields)


def a_reply(body: str = "Evening.") -> NewRecord:
    return a_line(body, kind=RecordKind.ASSISTANT, role="assistant", name="Oren")


def a_staying_text(body: str, *, before: str | None, of: str = "dynamic") -> NewRecord:
    """Return a text that stays in the history before the record at that place."""
    meta = {"stays": True, "of": of, "before": before, "parts": [[of, 0, len(body), 0]]}
    return a_line(body, kind=RecordKind.CONTEXT_BLOCK, name="", meta=meta)


def talked(where, pairs: int, *, start: int = 0) -> None:
    """Let a player and the NPC speak alternately."""
    for number in range(start, start + pairs):
        conversations.append_records(
            where, [a_line(f"Line {number}."), a_reply(f"Answer {number}.")]
        )


def said(where) -> list[str]:
    """Return what the conversation's history says."""
    return [message.content for message in windows(where.id).history]


def a_turn(where, body: str = "Good evening, Oren.", *, reply: str | None = "Evening.", **fields):
    """Play a whole turn: the NPC hears something, a prompt is sent, the NPC answers."""
    conversations.append_records(where, [a_line(body)])
    heard = [r for r in record_rows.records_of(where) if r.kind in SAID and not r.is_erased]
    draft = make_draft(a_prompt(heard, **fields), event=heard[-1], model="tiny")
    begun = turns.begin_turn(where, draft=draft, event=heard[-1]).turn
    if reply is not None:
        turns.finish_turn(begun, [a_reply(reply)])
    return begun


def give(snapshots, value, *, patch):
    """Make these snapshots return `value`, as in a process that has not noticed a change."""
    real = Snapshots.__call__
    patch.setattr(
        Snapshots, "__call__", lambda own, key: value if own is snapshots else real(own, key)
    )


def history_in(where, segment):
    """Return the whole history as a prompt at the end of this segment could show it."""
    records = list(records_in(where, segment))
    places = [place for record in records[:1] for place in record.meta.get("tail", ())]
    return project_records(records, tail=records_at(where.id, places), segment=segment)


def newest_calls(npc_ref, *, limit):
    """Return the newest model calls for an NPC, newest first."""
    rows = models.ModelCall.objects.filter(npc_ref=npc_ref).order_by("-started_at", "-pk")
    return model_calls._calls(rows[:limit])


def seal_of_turn(number: int, npc_ref: str = "12") -> str:
    """Return the seal of a stored turn as its row has it now."""
    return portable_turn(models.Turn.objects.get(npc_ref=npc_ref, number=number)).seal
