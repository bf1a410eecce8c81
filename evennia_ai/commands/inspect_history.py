"""`ai/history <npc>`: what is recorded of an NPC, page by page, and nothing that is not."""

from collections.abc import Iterator
from typing import Any, Final

from evennia_ai.commands.called import in_words
from evennia_ai.commands.shown import day_and_time
from evennia_ai.commands.strict import CommandError
from evennia_ai.game.viewers import seer_for
from evennia_ai.history.records import Record, RecordKind
from evennia_ai.minds.seeing.seer import Seer
from evennia_ai.store.memory_erasing import OF_MEMORIES
from evennia_ai.store.record_pages import RecordPage, record_page
from evennia_ai.text.columns import WIDTH, clipped, first_line, visible, wrapped

PAGE_RECORDS: Final = 20
_ERASED: Final = "(erased on request)"


def history_lines(caller: Any, npc: Any, number: int) -> list[str]:
    """One page of an NPC's records, as `caller` may see them; page 1 is the newest."""
    page = record_page(npc.ai.ref, number, size=PAGE_RECORDS)
    if not page.records:
        raise CommandError(_nothing(npc, number))
    head = f"What is recorded of {npc.key}, page {number}, the newest record last:"
    return [*wrapped(head, WIDTH), *_rows(page, seer_for(caller, npc.ai.ref)), *_more(npc, page)]


def _nothing(npc: Any, number: int) -> str:
    if number == 1:
        return f"Nothing is recorded of {npc.key} yet."
    return f"There is no page {number}: {npc.key} has fewer records. ai/history {npc.key} is page 1"


def _rows(page: RecordPage, seer: Seer) -> Iterator[str]:
    """The records; a line before each change of the conversation says which one it is."""
    where = 0
    for record in page.records:
        if record.conversation != where:
            where = record.conversation
            yield clipped(f"-- {in_words(page.conversations[where])}", WIDTH)
        yield from _row(seer.record(record, page.records))


def _row(record: Record) -> Iterator[str]:
    who = f", {visible(record.name)}" if record.name else ""
    head = f"#{record.id}  {day_and_time(record.created_at)}  {record.kind}{who}"
    yield clipped(head, WIDTH)
    text = _ERASED if record.is_erased else _asked(record) or _told(record)
    if text:
        yield clipped(f"    {text}", WIDTH)
    if refused := record.meta.get("refused"):
        yield clipped(f"    instead of a reply: {visible(str(refused))}", WIDTH)


def _told(record: Record) -> str:
    """What the record says in a line; of calls of tools those, where nothing was said with them."""
    calls = record.meta.get("tool_calls") or ()
    called = "; ".join(f"{call['name']} {call['arguments']}" for call in calls)
    return first_line(record.body) or visible(called)


def _asked(record: Record) -> str:
    """Who had the conversation erased; nothing where the record tells of something else."""
    if record.kind != RecordKind.ERASURE:
        return ""
    by = visible(str(record.meta.get("by", "somebody")))
    if record.meta.get("of") == OF_MEMORIES:
        return f"memories of a person were erased from the prompts before for {by}"
    return f"what stood before was erased for {by}"


def _more(npc: Any, page: RecordPage) -> Iterator[str]:
    if page.has_older:
        yield f"Older records: ai/history {npc.key}/{page.number + 1}"
