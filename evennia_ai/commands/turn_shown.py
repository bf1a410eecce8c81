"""`ai/why`: what an NPC knew in a turn, since when, and where it is recorded."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from evennia_ai.commands.shown import day_and_time, in_words
from evennia_ai.game.mind.viewers import seer_for
from evennia_ai.game.senses.presence import NPC
from evennia_ai.history.projection import CONVERSATION
from evennia_ai.history.records import Record
from evennia_ai.history.turn.manifest import RecordedMessage, TurnManifest
from evennia_ai.history.turn.replay import report_of_turn
from evennia_ai.lorebook.book import names_of
from evennia_ai.minds.turn_sources import source_of, told_by
from evennia_ai.prompt.messages import Part
from evennia_ai.prompt.report import (
    Report,
    ReportMessage,
    explain_lines,
    is_message,
    origins_meant,
    report_of,
)
from evennia_ai.store.history import record_rows, turns
from evennia_ai.store.history.turns import StoredTurn
from evennia_ai.text.columns import WIDTH, clipped, first_line, visible, wrapped

_NOT_YET: Final = "{name} was not asked anything yet; this is what it would be told now."


def turn_lines(caller: Any, npc: NPC, turn: StoredTurn) -> list[str]:
    """Every message of the turn's prompt: its record, since when it is there, and its sources."""
    records = _records(turn)
    report = seer_for(caller, npc.ai.ref).report(report_of_turn(turn.manifest, records.values()))
    lines = list(_head(npc, turn, records))
    for index in range(len(report.messages)):
        lines += _about_message(turn, report, index, records)
    return [*lines, f"All about one of them: ai/why {npc.key}/{turn.number} = <item or number>"]


def item_lines(caller: Any, npc: NPC, turn: StoredTurn, item: str) -> list[str]:
    """Everything about one item of the turn's prompt, and where it is recorded."""
    records = _records(turn)
    return [*_head(npc, turn, records), *_item(caller, npc, item, turn, records)]


def why_lines(caller: Any, npc: NPC, item: str) -> list[str]:
    """The same of the newest prompt, or of the one that would be sent now where there is none."""
    newest = turns.last_turn(npc.ai.ref)
    if newest is not None:
        return _item(caller, npc, item, newest, _records(newest))
    report = seer_for(caller, npc.ai.ref).report(report_of(npc.ai.preview()))
    told = wrapped(_NOT_YET.format(name=npc.key), WIDTH)
    return [*told, *explain_lines(report, item, names=names_of(npc.ai.view().books))]


def _item(
    caller: Any, npc: NPC, item: str, turn: StoredTurn, records: Mapping[str, Record]
) -> list[str]:
    """All about an item whose name is settled, and each place's record and revision."""
    report = seer_for(caller, npc.ai.ref).report(report_of_turn(turn.manifest, records.values()))
    names = names_of(npc.ai.view().books)
    lines = explain_lines(report, item, names=names)
    if is_message(report, item):
        index = int(item.removeprefix("#"))
        sources = _sources(report.messages[index], turn, _record(turn.manifest, index, records))
        return [*lines, *_recorded(turn, index, records), *sources]
    for origin in origins_meant(report, item, names=names)[:1]:
        lines += _stored(origin, turn)
        for index, message in enumerate(report.messages):
            parts = [part for part in message.parts if part.origin == origin]
            if parts:
                lines += _recorded(turn, index, records)
                record = _record(turn.manifest, index, records)
                lines += _told(origin, _text(message, parts), turn, record)
    return lines


def _records(turn: StoredTurn) -> Mapping[str, Record]:
    ids = turn.manifest.record_ids
    return {record.id: record for record in record_rows.records(ids)}


def _head(npc: NPC, turn: StoredTurn, records: Mapping[str, Record]) -> Iterator[str]:
    when = day_and_time(turn.created_at)
    yield clipped(f"Turn {turn.number} of {npc.key}, {when}, {turn.state}", WIDTH)
    yield clipped(f"  in {in_words(turn.conversation)}", WIDTH)
    event = records.get(turn.event_record or "")
    if event is not None:
        who = visible(event.name) or "somebody"
        yield clipped(f"  answers record #{event.id}, {who}: {first_line(event.body)}", WIDTH)


def _about_message(
    turn: StoredTurn, report: Report, index: int, records: Mapping[str, Record]
) -> Iterator[str]:
    message = report.messages[index]
    who = f" {visible(message.name)}:" if message.name else ""
    yield clipped(f"{index:4} {message.role}{who} {first_line(message.content)}", WIDTH)
    yield from _recorded(turn, index, records)
    yield from _sources(message, turn, _record(turn.manifest, index, records))


def _recorded(turn: StoredTurn, index: int, records: Mapping[str, Record]) -> list[str]:
    """The record of a message, and since when the NPC knew it."""
    record = _record(turn.manifest, index, records)
    if record is None:
        return ["       kept in the turn itself, without a record"]
    since = day_and_time(record.created_at)
    how = "recorded" if record.kind in CONVERSATION else "first told to it"
    return [f"       record #{record.id} ({record.kind}), {how} {since}"]


def _record(manifest: TurnManifest, index: int, records: Mapping[str, Record]) -> Record | None:
    message = manifest.messages[index]
    return records.get(message.record) if isinstance(message, RecordedMessage) else None


def _sources(message: ReportMessage, turn: StoredTurn, record: Record | None) -> Iterator[str]:
    """What each piece of a message came from; what was said has its record alone."""
    if message.block == "history" and not message.injected:
        return
    for origin in dict.fromkeys(part.origin for part in message.parts):
        parts = [part for part in message.parts if part.origin == origin]
        told = _told(origin, _text(message, parts), turn, record)
        stored = source_of(origin, turn.manifest, npc_ref=turn.npc_ref) is not None
        yield from _stored(origin, turn) if stored or not told else ()
        yield from told


def _text(message: ReportMessage, parts: Sequence[Part]) -> str:
    return "".join(message.content[part.start : part.end] for part in parts)


def _stored(origin: str, turn: StoredTurn) -> list[str]:
    """Which revision of what somebody stored a piece is."""
    found = source_of(origin, turn.manifest, npc_ref=turn.npc_ref)
    if found is None:
        return _indented(origin)
    made = f"by {found.changed_by}, {day_and_time(found.changed_at)}"
    return _indented(f"{origin}: {found.what}, revision {found.number} {made}")


def _told(origin: str, text: str, turn: StoredTurn, record: Record | None) -> list[str]:
    """What told a piece that nobody stored, when, and where that is recorded."""
    when = day_and_time(record.created_at if record is not None else turn.created_at)
    where = f"record #{record.id}" if record is not None else "no record"
    return [
        line
        for told in told_by(origin, text, turn.manifest)
        for line in _indented(f"{origin}: {told.by}, revision {told.revision}, {where}, {when}")
    ]


def _indented(text: str) -> list[str]:
    return [f"       {line}" for line in wrapped(text, WIDTH - 7)]
