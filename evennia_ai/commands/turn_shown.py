"""`ai/why`, `lore/why` and `ai/debug`: what an NPC knew in a turn, since when, and why.

Everything comes from stored records. `ai/debug` shows the four steps in which something can go
wrong, in their order: the facts of the moment, the search in knowledge bases, the safe summary, and
the end of the turn.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from evennia_ai.commands.base import day_and_time, in_words
from evennia_ai.commands.prompt_shown import (
    CHANGES,
    PARTS,
    changed,
    request_lines,
    run_in_words,
    runs,
)
from evennia_ai.commands.screens import Row, head
from evennia_ai.engine.history.records import CONVERSATION, Record
from evennia_ai.engine.history.turn.manifest import TurnManifest
from evennia_ai.engine.knowledge.meta_prompt import TOOL
from evennia_ai.engine.lorebook.book import names_of
from evennia_ai.engine.prompt.messages import Part
from evennia_ai.engine.prompt.report import (
    Report,
    ReportMessage,
    explain_lines,
    find_message,
    hidden_lines,
    number_of,
    origins_called,
    origins_meant,
)
from evennia_ai.engine.text.columns import (
    WIDTH,
    clip_text,
    escape_controls,
    first_line,
    wrap_hanging,
    wrap_text,
)
from evennia_ai.npc.mind.status import describe_cut
from evennia_ai.npc.mind.viewers import seer_for
from evennia_ai.npc.senses.presence import NPC
from evennia_ai.npc.views.looking import foreseen_report, past_reader, sent_report
from evennia_ai.npc.views.turn_sources import origins_of_text, source_of
from evennia_ai.store import model_calls
from evennia_ai.store.history import past_turns, record_rows, turns
from evennia_ai.store.history.turns import StoredTurn
from evennia_ai.store.knowledge import knowledge_searches
from evennia_ai.store.knowledge.knowledge_searches import StoredSearch
from evennia_ai.store.model_calls import NewCall

_SHORTEST_WORDS: Final = 3
_NOT_YET: Final = "{name} had no turn yet; this is the prompt that it would get now."


def context_lines(
    caller: Any, npc: NPC, turn: StoredTurn, part: str, *, command: str = "ai/context"
) -> Iterator[str | Row]:
    """Yield the prompt of a turn: folded, one part, or what changed since the turn before.

    `command` is named as the way to see the other parts.
    """
    report = _report(caller, npc, turn)
    named = f"{npc.key}/{turn.number}"
    if part == CHANGES:
        before = past_turns.turn_before(turn)
        if before is None:
            yield f"Turn {turn.number} of {npc.key} is the first of its conversation."
            return
        yield head(f"{npc.key}, turn {turn.number}: what is different from turn {before.number}")
        yield from changed(_report(caller, npc, before), report)
        return
    title = f": {part}" if part else ""
    when = day_and_time(turn.created_at)
    yield head(f"What {npc.key} was last told, turn {turn.number}, {when}{title}")
    for told in cut_lines(turn):
        yield from wrap_hanging(f"! {told[0].upper()}{told[1:]}.")
    yield from PARTS[part](report)
    if not part:
        yield from request_lines(turn)
        others = " | ".join([*filter(None, PARTS), CHANGES])
        yield f"More: {command} {named} = {others}"


def cut_lines(turn: StoredTurn) -> Iterator[str]:
    """Yield a sentence for each call of the turn in which the server shortened the prompt."""
    for call in model_calls.calls_of_turns(turn.npc_ref, [turn.number]):
        if call.whole_tokens is not None:
            yield describe_cut(call)


def turn_lines(caller: Any, npc: NPC, turn: StoredTurn, *, is_full: bool) -> Iterator[str | Row]:
    """Yield every message of the turn's prompt: its record, since when it exists, and its sources.

    What was said is folded into one line unless `is_full`.
    """
    records = _records(turn)
    report = _report(caller, npc, turn)
    yield from _head(caller, npc, turn, records)
    yield from hidden_lines(report)
    for run in runs(report):
        if is_full or len(run) == 1:
            for index in run:
                yield from _about_message(turn, report, index, records)
        else:
            yield run_in_words(report, run)
    named = f"{npc.key}/{turn.number}"
    yield f"About one item: ai/why {named} = <item or number>; everything: = full"


def _report(caller: Any, npc: NPC, turn: StoredTurn) -> Report:
    """Return the report on the turn's prompt, as `caller` may see it."""
    return sent_report(seer_for(caller, npc.ai.ref), turn, past_reader())


def item_lines(caller: Any, npc: NPC, turn: StoredTurn, item: str) -> list[str]:
    """Return everything about one item of a turn's prompt, and where it is recorded."""
    records = _records(turn)
    return [*_head(caller, npc, turn, records), *_item(caller, npc, item, turn, records)]


def turn_with_words(caller: Any, npc: NPC, words: str) -> StoredTurn | None:
    """Return the newest turn in which the NPC said these words, as far as `caller` may see them.

    Upper and lower case are alike. Return None if an item of the newest prompt has this name.
    """
    newest = turns.last_turn(npc.ai.ref)
    if newest is None or len(words) < _SHORTEST_WORDS:
        return None
    report, names = _report(caller, npc, newest), names_of(npc.ai.view().books)
    is_item = find_message(report, words) is not None or origins_called(words, names)
    if is_item or origins_meant(report, words):
        return None
    seer, wanted = seer_for(caller, npc.ai.ref), words.casefold()
    for said in past_turns.newest_words(npc.ai.ref):
        if wanted in said.body.casefold() and wanted in seer.record(said).body.casefold():
            return past_turns.turn_of_words(npc.ai.ref, said)
    return None


def why_lines(caller: Any, npc: NPC, item: str) -> list[str]:
    """Return everything about one item of the newest prompt.

    If the NPC had no turn yet, the item is explained in the prompt that would be sent now.
    """
    newest = turns.last_turn(npc.ai.ref)
    if newest is not None:
        return _item(caller, npc, item, newest, _records(newest))
    report = foreseen_report(seer_for(caller, npc.ai.ref), npc.ai.foreseen())[1]
    told = wrap_text(_NOT_YET.format(name=npc.key), WIDTH)
    return [*told, *explain_lines(report, item, names=names_of(npc.ai.view().books))]


def _item(
    caller: Any, npc: NPC, item: str, turn: StoredTurn, records: Mapping[str, Record]
) -> list[str]:
    """Return all about a resolved item, and the record and revision of each of its places."""
    report = _report(caller, npc, turn)
    names = names_of(npc.ai.view().books)
    lines = explain_lines(report, item, names=names)
    index = find_message(report, item)
    if index is not None:
        message = report.messages[index]
        return [*lines, *_recorded(message, records), *_sources(message, turn, records)]
    for origin in origins_meant(report, item, names=names)[:1]:
        lines += _stored(origin, turn)
        for message in report.messages:
            parts = [part for part in message.parts if part.origin == origin]
            if parts:
                lines += _recorded(message, records)
                lines += _told(origin, _text(message, parts), turn, _record(message, records))
    return lines


def _records(turn: StoredTurn) -> Mapping[str, Record]:
    ids = turn.manifest.record_ids
    return {record.id: record for record in record_rows.records(ids)}


def _head(caller: Any, npc: NPC, turn: StoredTurn, records: Mapping[str, Record]) -> Iterator[str]:
    when = day_and_time(turn.created_at)
    yield clip_text(f"Turn {turn.number} of {npc.key}, {when}, {turn.state}", WIDTH)
    yield clip_text(f"  in {in_words(turn.conversation)}", WIDTH)
    event = records.get(turn.event_record or "")
    if event is not None:
        event = seer_for(caller, npc.ai.ref).record(event, records.values())
        who = escape_controls(event.name) or "a player"
        yield clip_text(f"  answers record #{event.id}, {who}: {first_line(event.body)}", WIDTH)


def _about_message(
    turn: StoredTurn, report: Report, index: int, records: Mapping[str, Record]
) -> Iterator[str]:
    message = report.messages[index]
    who = f" {escape_controls(message.name)}:" if message.name else ""
    yield clip_text(
        f"{number_of(report, index):>7} {message.role}{who} {first_line(message.content)}", WIDTH
    )
    yield from _recorded(message, records)
    yield from _sources(message, turn, records)


def _recorded(message: ReportMessage, records: Mapping[str, Record]) -> list[str]:
    """Return a line with the record of a message, and since when the NPC knew it."""
    record = _record(message, records)
    if record is None:
        return []
    since = day_and_time(record.created_at)
    how = "recorded" if record.kind in CONVERSATION else "first told to it"
    return [f"       record #{record.id} ({record.kind}), {how} {since}"]


def _record(message: ReportMessage, records: Mapping[str, Record]) -> Record | None:
    """Return the record of a message, or None if its text was replaced for this viewer."""
    return records.get(message.record or "")


def _sources(
    message: ReportMessage, turn: StoredTurn, records: Mapping[str, Record]
) -> Iterator[str]:
    """Yield the sources of each text in a message. A message of the history has only its record."""
    if message.block == "history" and not message.injected:
        return
    record = _record(message, records)
    for origin in dict.fromkeys(part.origin for part in message.parts):
        parts = [part for part in message.parts if part.origin == origin]
        told = _told(origin, _text(message, parts), turn, record)
        stored = source_of(origin, turn.manifest, npc_ref=turn.npc_ref) is not None
        yield from _stored(origin, turn) if stored or not told else ()
        yield from told


def _text(message: ReportMessage, parts: Sequence[Part]) -> str:
    return "".join(message.content[part.start : part.end] for part in parts)


def _stored(origin: str, turn: StoredTurn) -> list[str]:
    """Return a line with the revision of a text that a builder stored."""
    found = source_of(origin, turn.manifest, npc_ref=turn.npc_ref)
    if found is None:
        return _indented(origin)
    made = f"by {found.changed_by}, {day_and_time(found.changed_at)}"
    return _indented(f"{origin}: {found.what}, revision {found.number} {made}")


def _told(origin: str, text: str, turn: StoredTurn, record: Record | None) -> list[str]:
    """Return lines with the provider of a fact: which, when, and in which record."""
    if record is None:
        return []
    when, where = day_and_time(record.created_at), f"record #{record.id}"
    return [
        line
        for told in origins_of_text(origin, text, turn.manifest)
        for line in _indented(f"{origin}: {told.by}, revision {told.revision}, {where}, {when}")
    ]


def _indented(text: str) -> list[str]:
    return [f"       {line}" for line in wrap_text(text, WIDTH - 7)]


MEDIATOR: Final = "mediator"
MOST_ROUNDS: Final = 20
_INDENT: Final = "   "

# By the number of a search: the text that replaces one the viewer may not see.
Marks = Mapping[int, str]


def debug_lines(caller: Any, npc: NPC, turn: StoredTurn) -> list[str]:
    """Return the four steps of a turn, with all its rounds, as `caller` may see them."""
    rounds = rounds_of(turn)
    first, last = rounds[0], rounds[-1]
    numbers = f"Turn {first.number}" if first is last else f"Turns {first.number} to {last.number}"
    head = f"{numbers} of {npc.key}, {day_and_time(first.created_at)}, {last.state}:"
    if any(one.manifest.erased for one in rounds):
        return [*wrap_hanging(head), "Its words were erased on request; nothing is left to see."]
    searches = knowledge_searches.searches_of_turns(npc.ai.ref, first.number, last.number)
    seer = seer_for(caller, npc.ai.ref)
    marks = {search.id: mark for search in searches if (mark := seer.search(search))}
    calls = model_calls.calls_of_turns(npc.ai.ref, [one.number for one in rounds])
    mediated = [call for call in calls if call.role == MEDIATOR]
    lines = [
        head,
        *_facts(last.manifest, _report(caller, npc, last)),
        *_searched(_calls_shown(last), searches, marks),
        *_summaries(searches, mediated, marks),
        *_outcome(searches, last, marks),
    ]
    return [shown for line in lines for shown in wrap_hanging(line)]


def rounds_of(turn: StoredTurn) -> tuple[StoredTurn, ...]:
    """Return the turns that answered the same event as `turn`, in order."""
    found = [turn]
    newest = turns.next_number(turn.npc_ref) - 1
    while found[0].number > 1 and len(found) < MOST_ROUNDS:
        before = turns.get_turn(turn.npc_ref, found[0].number - 1)
        if not _answers_the_same(before, turn):
            break
        found.insert(0, before)
    while found[-1].number < newest and len(found) < MOST_ROUNDS:
        after = turns.get_turn(turn.npc_ref, found[-1].number + 1)
        if not _answers_the_same(after, turn):
            break
        found.append(after)
    return tuple(found)


def _answers_the_same(one: StoredTurn, other: StoredTurn) -> bool:
    return one.event_record is not None and one.event_record == other.event_record


def _facts(manifest: TurnManifest, report: Report) -> Iterator[str]:
    """Yield step 1: whether the facts of the moment were in the request, where, and which."""
    places = [i for i, message in enumerate(report.messages) if message.block == "dynamic"]
    blocks = [key for key, text in manifest.inputs.get("blocks", ()) if text.strip()]
    if not places:
        yield "1. dynamic_context: NOT in the request."
        yield _INDENT + (
            _why_no_facts(manifest)
            if blocks
            else "no provider had a fact to tell; EVENNIA_AI_CONTEXT_PROVIDERS lists the providers"
        )
        return
    where = ", ".join(number_of(report, place) for place in places)
    last = number_of(report, len(report.messages) - 1)
    yield f"1. dynamic_context: message {where}, the last being {last}; role user."
    yield f"{_INDENT}blocks: {', '.join(blocks) or 'none from a provider'}"


def _why_no_facts(manifest: TurnManifest) -> str:
    reasons = [v.reason for v in manifest.verdicts if v.item.startswith("block:") and not v.kept]
    return "; ".join(dict.fromkeys(reasons)) or "the history contains these facts already"


def _searched(
    calls: Sequence[Mapping[str, Any]], searches: Sequence[StoredSearch], marks: Marks
) -> Iterator[str]:
    """Yield step 2: whether the model called the search tool, and what it asked."""
    if not calls and not searches:
        yield f"2. {TOOL}: NOT called."
        return
    count = max(len(calls), len(searches))
    yield f"2. {TOOL}: called {_times(count)}, searched {_times(len(searches))}."
    for search in searches:
        if search.id in marks:
            yield f"{_INDENT}search {search.id}: {marks[search.id]}"
            continue
        kind = "restricted" if search.restricted else "open"
        # The question to a guarded base may itself give away what is in it.
        query = "" if search.restricted else f": {first_line(search.query)}"
        yield f"{_INDENT}search {search.id} ({kind}) in {', '.join(search.bases)}{query}"
    if len(calls) > len(searches):
        yield f"{_INDENT}a call without a search was refused; ai/why shows what the model was told"


def _summaries(
    searches: Sequence[StoredSearch], mediated: Sequence[NewCall], marks: Marks
) -> Iterator[str]:
    """Yield step 3: whether a safe summary was started, of what, and which model was asked."""
    restricted = [search for search in searches if search.restricted]
    if not restricted:
        yield "3. Safe summary: NOT started; nothing restricted was searched."
        return
    yield f"3. Safe summary: started {_times(len(restricted))}."
    for search in restricted:
        if search.id in marks:
            continue
        yield f"{_INDENT}search {search.id}: {search.sent} of {search.total} passages were sent"
    for call in mediated:
        yield f"{_INDENT}the {MEDIATOR} was asked: {call.model or call.profile}, {call.outcome}"
    if not mediated:
        yield f"{_INDENT}no model of the role {MEDIATOR} was asked"


def _outcome(searches: Sequence[StoredSearch], last: StoredTurn, marks: Marks) -> Iterator[str]:
    """Yield step 4: what was decided, and how the turn ended."""
    yield f"4. The turn ended: {last.outcome or last.state}."
    for search in searches:
        if search.ended_at is None:
            yield f"{_INDENT}search {search.id} has no end: the server stopped during it"
        elif search.id in marks:
            yield f"{_INDENT}search {search.id}: {marks[search.id]}"
        elif search.restricted:
            told = f"decision {search.decision}, reason {search.reason}"
            yield f"{_INDENT}search {search.id}: {told}"
        else:
            passages = f"{search.sent} of {search.total} passages"
            yield f"{_INDENT}search {search.id}: {passages} given to the NPC"


def _calls_shown(last: StoredTurn) -> list[Mapping[str, Any]]:
    """Return the calls of the search tool in the turn's newest prompt."""
    shown = [one.record for one in last.manifest.messages if one.block == "tool"]
    return [
        call
        for record in record_rows.records(shown)
        for call in record.meta.get("tool_calls", ())
        if call.get("name") == TOOL
    ]


def _times(count: int) -> str:
    return {0: "never", 1: "once"}.get(count, f"{count} times")
