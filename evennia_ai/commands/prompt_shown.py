"""A prompt as builders read it: folded at first, and each part in full when they ask.

`ai/context` and `component/preview` show it folded: its cost, its messages in order with the
history in one line, and how much was kept and left out. Every screen calls a message by the same
number: that of its record, such as `#12`, or its place in the prompt if it has no record yet.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from evennia_ai.commands.base import CommandError, counted
from evennia_ai.commands.screens import Row, Span, head, width_of
from evennia_ai.engine.history.turn.manifest import request_in_words
from evennia_ai.engine.prompt.changes import Change, compare_messages, compare_reports
from evennia_ai.engine.prompt.report import (
    KINDS,
    STAGES,
    Report,
    ReportMessage,
    calls_in_words,
    describe_break,
    final_verdicts,
    hidden_lines,
    indent_lines,
    number_of,
    token_shares,
    trace_lines,
)
from evennia_ai.engine.prompt.trace import Verdict
from evennia_ai.engine.text.columns import (
    WIDTH,
    clip_text,
    escape_controls,
    first_line,
    pad_text,
    wrap_text,
)
from evennia_ai.store.history.turns import StoredTurn

_BAR: Final = 60
_MARGIN: Final = 26
"""Columns before the contents of a message: its number, role and tokens."""
MOST_NUMBERS: Final = 12

_SIGNS: Final = {"came": "+", "went": "-", "changed": "~"}


def folded(report: Report) -> Iterator[str | Row]:
    """Yield the prompt with one line for the history and few lines for every other message."""
    yield (
        f"{report.tokens} of {report.limit_tokens} tokens,"
        f" {counted(len(report.messages), 'message')}, layout {report.layout}"
    )
    yield from _bar(report)
    yield from hidden_lines(report)
    for run in runs(report):
        if len(run) > 1 or _is_said(report.messages[run[0]]):
            yield run_in_words(report, run)
        else:
            yield from _message(report, run[0])
    kept, left = final_verdicts(report)
    yield from indent_lines(f"kept {len(kept)}: {_by_kind(kept)}", WIDTH)
    yield from indent_lines(f"left out {len(left)}: {_by_kind(left)}", WIDTH)
    if report.shared_tokens is not None:
        shared = f"cache: {report.shared_tokens} tokens as in the prompt before"
        yield from indent_lines(f"{shared}; {describe_break(report)}", WIDTH)


def runs(report: Report) -> Iterator[Sequence[int]]:
    """Yield the indices of the messages, grouped: history messages in a row form one group.

    A history message without a record, such as a greeting not yet said, has no number and is not
    grouped with recorded messages.
    """
    numbered = enumerate(report.messages)
    alike = groupby(numbered, key=lambda pair: (_is_said(pair[1]), pair[1].record is None))
    for (said, _), members in alike:
        indices = [index for index, _ in members]
        yield from [indices] if said else [[index] for index in indices]


def run_in_words(report: Report, run: Sequence[int]) -> Row:
    """Return a run of history messages as one line."""
    first, last = number_of(report, run[0]), number_of(report, run[-1])
    tokens = sum(report.messages[index].tokens for index in run)
    which = f"message {first}" if len(run) == 1 else f"messages {first} to {last}"
    many = "" if len(run) == 1 else f" ({len(run)})"
    return (Span(f"H history: {which}{many}, {tokens:,} tokens", "history"),)


def _is_said(message: ReportMessage) -> bool:
    return message.block == "history" and not message.injected


def _bar(report: Report) -> Iterator[Row]:
    """Yield a bar that shows how full the prompt is, with one letter for each kind of text."""
    parts = token_shares(report, cells=_BAR)
    empty = "." * (_BAR - sum(share.cells for share in parts))
    percent = 100 * report.tokens // max(report.limit_tokens, 1)
    cells = [Span(share.mark * share.cells, share.kind) for share in parts]
    yield (Span("["), *cells, Span(f"{empty}] {percent} %"))
    legend = [Span(f"{share.mark} {share.label} {share.tokens}", share.kind) for share in parts]
    yield from _in_rows(legend, lead=(), margin=0)


def _message(report: Report, index: int) -> Iterator[Row]:
    """Yield what a message outside of the history is made of."""
    message = report.messages[index]
    role = f"{message.role}{' >' if message.injected else ''}"
    lead = Span(f"{number_of(report, index):>7} {pad_text(role, 11)} {message.tokens:5} ")
    origins = dict.fromkeys(part.origin for part in message.parts) or {message.block: None}
    if message.block in ("event", "tool"):
        speaker = f"{escape_controls(message.name)}: " if message.name else ""
        said = first_line(message.content) or calls_in_words(message)
        text = clip_text(f"{marked(next(iter(origins)))} {speaker}{said}", WIDTH - _MARGIN)
        yield (lead, Span(text, "event"))
        return
    pieces = [Span(clip_text(marked(one), WIDTH - _MARGIN - 2), _kind(one)) for one in origins]
    yield from _in_rows(pieces, lead=(lead,), margin=_MARGIN)


def _in_rows(pieces: Sequence[Span], *, lead: Row, margin: int) -> Iterator[Row]:
    """Yield items separated by commas, wrapped so that new lines begin under the first item."""
    row = list(lead)
    fresh = True
    for place, piece in enumerate(pieces):
        end = "," if place < len(pieces) - 1 else ""
        if not fresh and width_of(row) + width_of((piece,)) + 1 + len(end) > WIDTH:
            yield tuple(row)
            row, fresh = [Span(" " * margin)], True
        row += [Span("" if fresh else " "), piece, Span(end)]
        fresh = False
    yield tuple(row)


def _kind(origin: str) -> str:
    return origin.partition(":")[0]


def _mark(origin: str) -> str:
    return KINDS.get(_kind(origin), ("?", ""))[0]


def marked(origin: str) -> str:
    """Return an origin with the letter of its kind before it."""
    return escape_controls(f"{_mark(origin)} {origin.partition(':')[2] or origin}")


def _by_kind(verdicts: Iterable[Verdict]) -> str:
    many = Counter(_kind(verdict.item) for verdict in verdicts)
    told = [f"{KINDS.get(kind, ('?', kind))[1]} {count}" for kind, count in many.items()]
    return escape_controls(", ".join(told) or "nothing")


def _history(report: Report) -> Iterator[str | Row]:
    """Yield every message of the history with its speaker, and the notes and lore in between."""
    for index, message in enumerate(report.messages):
        if message.block != "history":
            continue
        if message.injected:
            yield from _message(report, index)
            continue
        speaker = f"{escape_controls(message.name)}: " if message.name else ""
        said = first_line(message.content) or calls_in_words(message)
        lead = f"{number_of(report, index):>7} {pad_text(message.role, 11)} {message.tokens:5} "
        yield clip_text(f"{lead}{speaker}{said}", WIDTH)
    if not any(message.block == "history" for message in report.messages):
        yield "There is no history yet: nothing was said before."


def _lore(report: Report) -> Iterator[str | Row]:
    """Yield the active lore entries: why they are in the prompt, their cost, place and text."""
    active = [verdict for verdict in final_verdicts(report)[0] if _kind(verdict.item) == "lore"]
    if not active:
        yield "No entry of lore is in this prompt."
    for verdict in active:
        cost = f", {verdict.tokens} tokens" if verdict.tokens else ""
        yield (Span(clip_text(f"{marked(verdict.item)}{cost}", WIDTH), "lore"),)
        yield from indent_lines("; ".join(filter(None, (verdict.cause, verdict.reason))), WIDTH)
        for index, message in enumerate(report.messages):
            for part in (part for part in message.parts if part.origin == verdict.item):
                number = number_of(report, index)
                text = message.content[part.start : part.end]
                yield from indent_lines(f"in message {number}: {text}", WIDTH)
    silent = [verdict for verdict in final_verdicts(report)[1] if _kind(verdict.item) == "lore"]
    yield f"{counted(len(silent), 'entry', 'entries')} of lore left out."


def _left_out(report: Report) -> Iterator[str | Row]:
    """Yield what is not in the prompt, grouped by reason."""
    reasons: dict[str, list[str]] = {}
    for verdict in final_verdicts(report)[1]:
        reasons.setdefault(f"{STAGES[verdict.stage]}: {verdict.reason}", []).append(verdict.item)
    if not reasons:
        yield "Nothing was left out."
    for reason, items in reasons.items():
        yield from (head(line) for line in wrap_text(f"{reason} ({len(items)})", WIDTH))
        pieces = [Span(clip_text(marked(item), WIDTH - 5), _kind(item)) for item in items]
        yield from _in_rows(pieces, lead=(Span("  "),), margin=2)


def changed(older: Report, newer: Report) -> Iterator[str | Row]:
    """Yield what differs in `newer`: texts that came, went or changed, and what was said."""
    found = compare_reports(older, newer)
    for change in found:
        yield from _change(change)
    if not found:
        yield "No component, lore, note, memory or block came, went or changed."
    came, gone = compare_messages(older, newer)
    if came:
        yield from indent_lines(f"+ said since: {_listed(came)}", WIDTH)
    if gone:
        yield from indent_lines(f"- messages no longer in the prompt: {_listed(gone)}", WIDTH)
    yield from indent_lines(f"tokens: {older.tokens} before, {newer.tokens} now", WIDTH)


def _change(change: Change) -> Iterator[str | Row]:
    why = f": {change.why}" if change.why else ""
    title = f"{_SIGNS[change.how]} {_kind(change.item)} {marked(change.item)} {change.how}{why}"
    yield from ((Span(line, change.how),) for line in wrap_text(title, WIDTH))
    signs = {"+": "came", "-": "went"} if change.how == "changed" else {}
    for text in change.lines:
        kind = signs.get(text[:1], "")
        yield from ((Span(f"    {line}", kind),) for line in wrap_text(text, WIDTH - 4))


def _listed(numbers: Sequence[str]) -> str:
    more = f" and {len(numbers) - MOST_NUMBERS} more" if len(numbers) > MOST_NUMBERS else ""
    return f"{', '.join(numbers[:MOST_NUMBERS])}{more}"


def request_lines(turn: StoredTurn) -> list[str]:
    """Return a line with the settings of the request besides its messages; none if erased."""
    asked = request_in_words(turn.manifest)
    tools = turn.manifest.tools_record
    beside = "" if tools is None else f"; its tools are record #{tools}"
    return wrap_text(escape_controls(f"Asked with {asked}{beside}."), WIDTH) if asked else []


PARTS: Final[Mapping[str, Callable[[Report], Iterable[str | Row]]]] = {
    "": folded,
    "full": trace_lines,
    "history": _history,
    "lore": _lore,
    "left out": _left_out,
}
"""The parts of one prompt that a builder can ask for. The part `changes` is not here: it needs the
prompt before it, too."""

CHANGES: Final = "changes"


def part_called(text: str) -> str:
    """Return the part that was typed. CommandError names the parts that exist."""
    wanted = " ".join(text.lower().split()).replace("_", " ").replace("-", " ")
    if wanted in (*PARTS, CHANGES):
        return wanted
    known = ", ".join([*filter(None, PARTS), CHANGES])
    raise CommandError(f"There is no part '{clip_text(text, 40)}' of a prompt; there are {known}.")
