"""The switches of `ai` that read, check, export and import an NPC's records.

`ai/history` lists records, `ai/replay` rebuilds a past prompt from them, and `ai/cache` says how
much of each prompt a provider may have found in its cache. `ai/verify`, `ai/export` and `ai/import`
read or write whole conversations while the game waits, so they have limits. `evennia-ai history` on
the command line has no limits.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from evennia_ai.commands.base import CommandError, day_and_time, in_words
from evennia_ai.commands.folder import bytes_of, new_file, offered, path_in, shown_path
from evennia_ai.commands.prompt_shown import request_lines, run_in_words, runs
from evennia_ai.commands.screens import Row, Span
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.history.records import CONVERSATION, Record, RecordKind
from evennia_ai.engine.history.turn.manifest import number_in
from evennia_ai.engine.history.turn.replay import LostMessage, shared_prefix
from evennia_ai.engine.prompt.cache_account import MEANINGS
from evennia_ai.engine.prompt.report import Report, hidden_lines, number_of
from evennia_ai.engine.text.columns import WIDTH, clip_text, escape_controls, first_line, wrap_text
from evennia_ai.formats.chats.chat_records import describe_source, is_chat_source
from evennia_ai.npc.mind.viewers import seer_for
from evennia_ai.npc.senses.presence import NPC
from evennia_ai.npc.views.looking import past_reader, sent_report
from evennia_ai.npc.views.visibility import Seer
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.history.control import withdrawals
from evennia_ai.store.history.conversations import conversations_of
from evennia_ai.store.history.past_turns import (
    RecordPage,
    newest_turns,
    record_page,
    replay_stored_turn,
    turn_before,
)
from evennia_ai.store.history.prompt_texts import OF_MEMORIES, OF_PERSONA, OF_ROOMS
from evennia_ai.store.history.record_rows import ConversationRef, count_records, records_of
from evennia_ai.store.history.transcripts import export_lines, import_lines
from evennia_ai.store.history.turns import StoredTurn
from evennia_ai.store.history.verifying import verify

PAGE_RECORDS: Final = 20
_ERASED: Final = "(erased on request)"
_SEEN: Final = CONVERSATION | {
    RecordKind.SPOKEN,
    RecordKind.FALLBACK,
    RecordKind.ERASURE,
    RecordKind.CONTROL,
}


_FATES: Final = {
    "reset": "before it started over",
    "undo": "taken back",
    "retry": "answered again since",
    "correct": "corrected since",
}
"""By the switch that withdrew a record: what the history says of that record."""
_CONTROLLED: Final = {
    "reset": "it starts over: nothing before counts",
    "undo": "exchanges before this were taken back",
    "retry": "an answer was taken back, to be given again",
    "correct": "the words just above replace earlier words",
}
"""By the switch that made a control record: what the history says of it."""


def history_lines(caller: Any, npc: NPC, number: int, *, is_full: bool) -> list[str | Row]:
    """Return one page of an NPC's records, as `caller` may see them. Page 1 is the newest.

    Texts of prompts and the ends of turns are folded into one line unless `is_full`.
    """
    page = record_page(npc.ai.ref, number, size=PAGE_RECORDS)
    if not page.records:
        raise CommandError(_nothing(npc, number))
    head = f"What is recorded of {npc.key}, page {number}, the newest record last:"
    seer = seer_for(caller, npc.ai.ref)
    rows = _rows(page, seer, is_full=is_full)
    return [*wrap_text(head, WIDTH), *rows, *_hint_lines(npc, page, is_full=is_full)]


def _nothing(npc: NPC, number: int) -> str:
    if number == 1:
        return f"Nothing is recorded of {npc.key} yet."
    return f"There is no page {number}: {npc.key} has fewer records. ai/history {npc.key} is page 1"


def _rows(page: RecordPage, seer: Seer, *, is_full: bool) -> Iterator[str | Row]:
    """Yield the records, with a heading wherever the conversation changes."""
    withdrawn = withdrawals(page.records)
    shown = [record for record in page.records if not seer.leaves_out(record)]
    for where, members in groupby(shown, key=lambda record: record.conversation):
        yield (Span(clip_text(f"-- {in_words(page.conversations[where])}", WIDTH), "component"),)
        for is_folded, run in groupby(members, key=lambda r: not is_full and _is_internal(r)):
            records = list(run)
            if is_folded:
                yield _folded(records)
                continue
            for record in records:
                fate = _FATES.get(withdrawn.get(record.id, ""), "")
                yield from _row(seer.record(record, page.records), fate)


def _is_internal(record: Record) -> bool:
    """True if the record is internal: no player or NPC said it, did it or asked for it."""
    return record.kind not in _SEEN and not record.is_erased and not is_chat_source(record)


def _folded(records: Sequence[Record]) -> str:
    first, last = records[0], records[-1]
    which = f"#{first.id}" if first is last else f"#{first.id} to #{last.id}"
    kinds = Counter(str(record.kind) for record in records)
    told = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    return clip_text(f"  ({which}, behind the scenes: {told})", WIDTH)


def _row(record: Record, fate: str) -> Iterator[str | Row]:
    who = f", {escape_controls(record.name)}" if record.name else ""
    also = f"  ({fate})" if fate and record.kind in CONVERSATION else ""
    head = f"#{record.id}  {day_and_time(record.created_at)}  {record.kind}{who}{also}"
    yield (Span(clip_text(head, WIDTH), "head"),)
    text = _ERASED if record.is_erased else _event_line(record) or _text_line(record)
    if text:
        yield clip_text(f"    {text}", WIDTH)
    if refused := record.meta.get("refused"):
        yield clip_text(f"    instead of a reply: {escape_controls(str(refused))}", WIDTH)


def _text_line(record: Record) -> str:
    """Return the first line of a record, or its tool calls if it has no text."""
    calls = record.meta.get("tool_calls") or ()
    called = "; ".join(f"{call['name']} {call['arguments']}" for call in calls)
    return first_line(record.body) or escape_controls(called)


def _event_line(record: Record) -> str:
    """Return a line for a record of an import, an erasure or a control, else ""."""
    if is_chat_source(record):
        return escape_controls(describe_source(record))
    return _erasure_line(record) or _control_line(record)


def _erasure_line(record: Record) -> str:
    """Return a line that says who asked for an erasure, or "" for other records."""
    if record.kind != RecordKind.ERASURE:
        return ""
    by = escape_controls(str(record.meta.get("by", "a builder")))
    if record.meta.get("of") == OF_MEMORIES:
        return f"memories of a person were erased from earlier prompts on request of {by}"
    if record.meta.get("of") == OF_ROOMS:
        return f"what was heard in a room was erased from earlier prompts on request of {by}"
    if record.meta.get("of") == OF_PERSONA:
        return f"a persona was erased from earlier prompts on request of {by}"
    return f"everything before this was erased on request of {by}"


def _control_line(record: Record) -> str:
    """Return a line that says what a builder decided, or "" for other records."""
    if record.kind != RecordKind.CONTROL:
        return ""
    what = _CONTROLLED[record.meta["what"]]
    hint = f"; the hint: {first_line(record.body)}" if record.body else ""
    return f"{what}, by {escape_controls(str(record.meta.get('by', 'a builder')))}{hint}"


def _hint_lines(npc: NPC, page: RecordPage, *, is_full: bool) -> Iterator[str]:
    full = " = full" if is_full else ""
    if page.has_older:
        yield f"Older records: ai/history {npc.key}/{page.number + 1}{full}"
    if not is_full and any(map(_is_internal, page.records)):
        command = f"ai/history {npc.key}/{page.number} = full"
        yield f"To see what was made behind the scenes, too: {command}"


def replay_lines(caller: Any, npc: NPC, turn: StoredTurn, *, is_full: bool) -> list[str | Row]:
    """Return the exact prompt of a turn, and whether it is the prompt that was sent.

    What `caller` may not see is hidden. What was said is folded into one line unless `is_full`.
    """
    rebuilt = replay_stored_turn(turn)
    head = f"Turn {turn.number} of {npc.key}, {day_and_time(turn.created_at)}, {turn.state}:"
    if not rebuilt.is_same:
        faults = (line for fault in rebuilt.faults for line in _fault(fault))
        return [head, *wrap_text(f"It cannot be replayed: {rebuilt.problem}.", WIDTH), *faults]
    same = "the same bytes as were sent, rebuilt from records only"
    report = sent_report(seer_for(caller, npc.ai.ref), turn, past_reader())
    # A hash of the whole prompt would let a builder guess a short hidden text.
    lines: list[str | Row] = [head, same]
    lines += hidden_lines(report) or [f"sha256 {rebuilt.sha256}"]
    lines += [*request_lines(turn), *message_lines(report, is_full=is_full)]
    if not is_full:
        lines += ["", f"To see what was said, too: ai/replay {npc.key} = {turn.number} full"]
    return lines


def message_lines(report: Report, *, is_full: bool) -> Iterator[str | Row]:
    """Yield each message in full. What was said is folded into one line unless `is_full`."""
    for run in runs(report):
        if len(run) > 1 and not is_full:
            yield ""
            yield run_in_words(report, run)
            continue
        for index in run:
            message = report.messages[index]
            name = f", {message.name}" if message.name else ""
            yield ""
            title = f"-- {number_of(report, index)} {message.role}{name}, {message.tokens} tokens"
            yield from ((Span(line, "head"),) for line in wrap_text(title, WIDTH))
            yield from wrap_text(message.content, WIDTH)


def _fault(fault: LostMessage) -> list[str]:
    return wrap_text(f"  message #{fault.record}: the record {fault.problem}", WIDTH)


TURNS: Final = 10
_HEAD: Final = f"{'turn':>6} {'conv.':>6} {'tokens':>7} {'shared':>7} {'share':>6}  what broke it"


def cache_lines(caller: Any, npc: NPC) -> list[str]:
    """Return a table of the newest turns: how much of each prompt the one before had already."""
    turns = newest_turns(npc.ai.ref, TURNS)
    if not turns:
        raise CommandError(f"{npc.key} had no turn yet: nothing was sent that could be cached.")
    seer = seer_for(caller, npc.ai.ref)
    lines = [f"The last {len(turns)} prompts of {npc.key}, each compared with the one before:"]
    lines += [_HEAD, "-" * WIDTH]
    for turn in turns:
        lines += _cache_rows(turn, seer)
    return [*lines, *_breakpoints(turns[-1])]


def _cache_rows(turn: StoredTurn, seer: Seer) -> Iterator[str]:
    shared, why = _shared_tokens(turn, seer)
    tokens = turn.manifest.tokens
    share = "" if shared is None else f"{100 * shared // max(tokens, 1)} %"
    told = "" if shared is None else str(shared)
    lead = f"{turn.number:6} {turn.conversation.id:>6} {tokens:7} {told:>7} {share:>6}  "
    first, *more = wrap_text(why, WIDTH - len(lead))
    yield f"{lead}{first}"
    yield from (" " * len(lead) + line for line in more)


def _shared_tokens(turn: StoredTurn, seer: Seer) -> tuple[int | None, str]:
    """Return the tokens shared with the prompt before, and why no more were shared.

    The tokens are None for the first prompt of a conversation, and for an erased one.
    """
    manifest = turn.manifest
    if manifest.erased:
        return None, "erased on request"
    if manifest.shared_tokens is not None:
        return manifest.shared_tokens, _why(turn, seer)
    before = turn_before(turn)
    if before is None:
        return None, "the first prompt of its conversation"
    prefix = shared_prefix(before.manifest, manifest)
    if prefix.is_whole:
        return prefix.tokens, MEANINGS["append"]
    differs = f"message {number_in(manifest, prefix.messages)} differs"
    return prefix.tokens, f"{differs}; the server restarted in between"


def _why(turn: StoredTurn, seer: Seer) -> str:
    manifest = turn.manifest
    if manifest.broken_by is None:
        return MEANINGS["append"]
    reason = manifest.break_reason
    declared = f": {reason.replace('_', '-')}, {MEANINGS[reason]}" if reason else ""
    return f"{escape_controls(seer.origin(manifest.broken_by))}{declared}"


def _breakpoints(turn: StoredTurn) -> list[str]:
    manifest = turn.manifest
    after = ", ".join(number_in(manifest, spot) for spot in manifest.breakpoints) or "nowhere"
    return wrap_text(
        f"A provider may cache the prompt of turn {turn.number} up to these messages: {after}. Its"
        f" first {manifest.stable_tokens} tokens stay the same.",
        WIDTH,
    )


MOST_RECORDS: Final = 10_000
MOST_BYTES: Final = 4 * 1024 * 1024
SUFFIX: Final = ".jsonl"
_WITHOUT_LIMIT: Final = "On the command line, evennia-ai history {what} has no limit."


def verify_lines(npc: NPC) -> list[str]:
    """Return lines that say, for each conversation, whether its records are unchanged."""
    known = conversations_of(npc.ai.ref)
    if not known:
        raise CommandError(f"Nothing is recorded of {npc.key} yet.")
    lengths = [count_records(one) for one in known]
    _refuse_too_many(sum(lengths), what="verify")
    head = f"The records of {npc.key}, each hashed with the one before it:"
    lines = [head, *(_verify_line(one, count) for one, count in zip(known, lengths, strict=True))]
    return [part for line in lines for part in wrap_text(line, WIDTH)]


def exported(caller: Any, npc: NPC, number: int | None) -> str:
    """Write a conversation of the NPC into a new file of the card folder.

    Return a line about it.
    """
    conversation = exportable(caller, npc, number)
    content = "".join(f"{line}\n" for line in export_lines(conversation)).encode()
    name = f"{npc.key}-{conversation.id}"
    path = new_file(conf().card_folder, name, content, suffix=SUFFIX)
    return (
        f"Wrote {in_words(conversation)}, {count_records(conversation)} records, to {path.name} in"
        f" {shown_path(conf().card_folder)}. Anyone who has the file can read all of it."
    )


def exportable(caller: Any, npc: NPC, number: int | None) -> ConversationRef:
    """Return the conversation that a builder wants to export.

    A file holds all of a conversation, so CommandError if any of it is hidden from `caller`.
    """
    conversation = _conversation_of(npc, number)
    _refuse_too_many(count_records(conversation), what="export")
    if seer_for(caller, npc.ai.ref).hides_some(records_of(conversation)):
        raise CommandError(
            f"Conversation {conversation.id} of {npc.key} contains texts that locks of knowledge"
            " bases hide from you. Nothing was written. A builder who may see them can export it."
        )
    return conversation


def files() -> list[str]:
    """Return lines that list the files in the card folder that may contain conversations."""
    return offered(conf().card_folder, suffixes=(SUFFIX,))


def file_read(name: str) -> tuple[Path, bytes]:
    """Return the path and the content of a conversation file in the card folder."""
    path = path_in(conf().card_folder, name, command="ai/import <npc>", suffixes=(SUFFIX,))
    content = bytes_of(path, most=MOST_BYTES)
    if len(content) > MOST_BYTES:
        raise CommandError(
            f"{path.name} has more than {MOST_BYTES} bytes; nothing was imported."
            f" {_WITHOUT_LIMIT.format(what='import')}"
        )
    return path, content


def imported(npc: NPC, path: Path, content: bytes, *, by: Actor) -> str:
    """Import the transcript of a file. Return a line that says what was imported."""
    made = import_lines(content.splitlines(), npc_ref=npc.ai.ref, by=by)
    return (
        f"Imported {count_records(made)} records from {path.name}. {npc.key} remembers them as"
        f" {in_words(made)}."
    )


def _verify_line(conversation: ConversationRef, count: int) -> str:
    broken = verify(conversation)
    found = "the chain holds" if broken is None else f"BROKEN at {broken}"
    return f"{in_words(conversation)}: {count} records, {found}"


def _conversation_of(npc: NPC, number: int | None) -> ConversationRef:
    known = conversations_of(npc.ai.ref)
    if not known:
        raise CommandError(f"Nothing is recorded of {npc.key} yet.")
    if number is None and len(known) == 1:
        return known[0]
    for one in known:
        if one.id == number:
            return one
    problem = "has several" if number is None else f"has no conversation {number}"
    raise CommandError(f"{npc.key} {problem}; {_which(npc, known)}")


def _which(npc: NPC, known: Sequence[ConversationRef]) -> str:
    shown = "; ".join(in_words(one) for one in known[:6])
    more = f"; and {len(known) - 6} more" if len(known) > 6 else ""
    return f"name one, as in ai/export {npc.key}/{known[0].id}: {shown}{more}"


def _refuse_too_many(count: int, *, what: str) -> None:
    if count > MOST_RECORDS:
        raise CommandError(
            f"These are {count} records. The limit is {MOST_RECORDS}, because the game waits"
            f" meanwhile. {_WITHOUT_LIMIT.format(what=what)}"
        )
