"""The report of a prompt, and its rendering as text for the game, the web and the command line.

A `Report` describes a `Prompt`, either a new one or one that was sent long ago. `trace_lines`
renders the whole report. `explain_lines` renders everything about one item. The item is an origin
such as `component:mood`, a key, the number of a message, or the name of a lore entry, if the caller
passes the names.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import groupby, islice
from typing import Final

from evennia_ai.engine.prompt.cache_account import MEANINGS, Sent
from evennia_ai.engine.prompt.messages import Block, Message, Part, Role, message_tokens
from evennia_ai.engine.prompt.prompt import Prompt, PromptFigures
from evennia_ai.engine.prompt.trace import Verdict, verdicts_about
from evennia_ai.engine.text.columns import (
    WIDTH,
    clip_text,
    count_columns,
    escape_controls,
    first_line,
    pad_text,
    wrap_items,
    wrap_text,
)

# Maps each kind of origin to its letter in the token bar, and to its name in the legend.
KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "component": ("C", "components"),
    "lore": ("L", "lore"),
    "note": ("N", "notes"),
    "history": ("H", "history"),
    "block": ("D", "dynamic blocks"),
    "event": ("E", "event"),
    "tools": ("T", "tools"),
    "framing": ("+", "framing"),
}
_OTHER: Final = ("?", "other")
STAGES: Final[Mapping[str, str]] = {
    "activate": "lore activation",
    "recall": "memory",
    "expand": "expansion",
    "budget": "budget",
    "place": "placement",
}
_ROLE_COLUMNS: Final = 10
_MOST_NAMES: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportMessage:
    """One message of a prompt as it was sent, with the origin of each part."""

    role: Role
    content: str
    name: str | None = None
    block: Block
    injected: bool = False
    parts: tuple[Part, ...] = ()
    tokens: int = 0
    calls: tuple[str, ...] = ()
    """The calls of tools in the message: the name of each tool with its arguments."""
    record: str | None = None
    """The id of the message's record; None for a text that only this prompt has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(PromptFigures):
    """The explanation of one prompt: its figures, its messages, and the verdicts on each item."""

    messages: tuple[ReportMessage, ...]
    verdicts: tuple[Verdict, ...]
    hidden: tuple[str, ...] = ()
    """The parts of the NPC's prompt that the viewer may not see, such as "2 messages".

    The prompt in this report was composed without them.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The tokens of one kind of origin, and how many cells of the token bar it fills."""

    kind: str
    mark: str
    label: str
    tokens: int
    cells: int


def make_report(
    prompt: Prompt,
    *,
    older: Sent | Sequence[Message] | None = None,
    hidden: tuple[str, ...] = (),
) -> Report:
    """Return the report of a prompt.

    Args:
        prompt: The prompt.
        older: The previous prompt of the conversation, for the account of the provider's cache.
        hidden: The parts of the NPC's own prompt that this viewer may not see.
    """
    account = prompt.account(older) if older is not None else None
    messages = map(report_message, prompt.messages, message_tokens(prompt.messages, prompt.counter))
    return Report(
        messages=tuple(messages),
        verdicts=prompt.verdicts,
        hidden=hidden,
        **prompt.figures(account),
    )


def hidden_in_words(report: Report) -> str:
    """Return a sentence that tells the viewer what is hidden from them; "" if nothing is."""
    if not report.hidden:
        return ""
    return (
        f"Hidden from you: {', '.join(report.hidden)}. This is the prompt without them;"
        " the NPC's own prompt has them."
    )


def hidden_lines(report: Report, *, width: int = WIDTH) -> list[str]:
    """Return the sentence about what is hidden from the viewer, wrapped into lines."""
    return wrap_text(hidden_in_words(report), width) if report.hidden else []


def number_of(report: Report, index: int) -> str:
    """Return the name by which people refer to a message: `#` with its record, or its index."""
    record = report.messages[index].record
    return str(index) if record is None else f"#{record}"


def find_message(report: Report, item: str) -> int | None:
    """Return the index of the message with this name or number; None if none has it."""
    bare = item.removeprefix("#")
    for index, message in enumerate(report.messages):
        if message.record is not None and message.record == bare:
            return index
    return int(bare) if bare in map(str, range(len(report.messages))) else None


def report_message(message: Message, tokens: int) -> ReportMessage:
    """Convert a message of a prompt into the form that reports use."""
    return ReportMessage(
        role=message.role,
        content=message.content,
        name=message.name,
        block=message.block,
        injected=message.injected,
        parts=message.parts,
        tokens=tokens,
        calls=tuple(f"{call.name} {call.arguments}" for call in message.tool_calls),
        record=message.record,
    )


def trace_lines(report: Report, *, width: int = WIDTH) -> list[str]:
    """Render the whole report of a prompt as plain text, in lines of at most `width` columns."""
    drawn, became = _draw_messages(report, width), _verdict_lines(report, width)
    return [*_head(report, width), "", *drawn, "", *became, "", *_cache(report, width)]


def token_shares(report: Report, *, cells: int) -> list[Share]:
    """Return how many tokens each kind of origin has, in the order of `KINDS`.

    All `cells` of the token bar together represent the token limit, or the prompt if it is larger.
    Every kind with any tokens gets at least one cell, as long as there are enough cells.
    """
    tokens = dict.fromkeys(KINDS, 0)
    for origin, cost in report.by_origin.items():
        kind = origin.partition(":")[0]
        tokens[kind] = tokens.get(kind, 0) + cost
    whole = max(report.limit_tokens, report.tokens, 1)
    made: list[Share] = []
    left = cells
    for kind, cost in tokens.items():
        if cost:
            taken = min(left, max(1, cost * cells // whole))
            mark, label = KINDS.get(kind, _OTHER)
            made.append(Share(kind=kind, mark=mark, label=label, tokens=cost, cells=taken))
            left -= taken
    return made


def final_verdicts(report: Report) -> tuple[list[Verdict], list[Verdict]]:
    """Return the deciding verdict on each item: kept items first, then items left out.

    The deciding verdict is the first one that left the item out, or else the last verdict on it. It
    gets the cause from an earlier verdict on the item.
    """
    decided: dict[str, Verdict] = {}
    for verdict in report.verdicts:
        before = decided.get(verdict.item)
        if before is None:
            decided[verdict.item] = verdict
        elif before.kept:
            decided[verdict.item] = replace(verdict, cause=verdict.cause or before.cause)
    kept = [verdict for verdict in decided.values() if verdict.kept]
    return kept, [verdict for verdict in decided.values() if not verdict.kept]


def _head(report: Report, width: int) -> Iterator[str]:
    yield clip_text(
        f"{report.tokens} of {report.limit_tokens} tokens, {len(report.messages)} messages,"
        f" layout {report.layout}, counted by {report.counter}",
        width,
    )
    cells = width - 9
    parts = token_shares(report, cells=cells)
    bar = "".join(share.mark * share.cells for share in parts)
    percent = 100 * report.tokens // max(report.limit_tokens, 1)
    yield f"[{bar.ljust(cells, '.')}] {percent:3} %"[:width]
    yield from wrap_items([f"{share.mark} {share.label} {share.tokens}" for share in parts], width)
    yield from hidden_lines(report, width=width)


def _draw_messages(report: Report, width: int) -> Iterator[str]:
    """Yield lines that show the messages in order. Texts inserted into the history are marked."""
    numbered = enumerate(report.messages)
    digits = max([4, *(len(number_of(report, i)) for i in range(len(report.messages)))])
    for block, members in groupby(numbered, key=lambda pair: pair[1].block):
        listed = list(members)
        yield _rule(_block_title(block, listed), width)
        for index, message in listed:
            number = number_of(report, index).rjust(digits)
            yield from _one_message(number, message, width)
    if not any(message.block == "history" for message in report.messages):
        yield _rule("history: no messages", width)


def _block_title(block: Block, listed: Sequence[tuple[int, ReportMessage]]) -> str:
    if block != "history":
        return {"ordered": "at their IDs", "dynamic": "dynamic context"}.get(block, block)
    injected = sum(message.injected for _, message in listed)
    return f"history: {len(listed) - injected} messages, {injected} injected"


def _one_message(number: str, message: ReportMessage, width: int) -> Iterator[str]:
    edge = {True: "|>", False: "| "}[message.injected] if message.block == "history" else "  "
    head = f"{number} {edge}{pad_text(message.role, _ROLE_COLUMNS)}{message.tokens:6}  "
    if message.block == "history" and not message.injected:
        speaker = f"{escape_controls(message.name)}: " if message.name else ""
        said = first_line(message.content) or calls_in_words(message)
        yield clip_text(f"{head}{speaker}{said}".rstrip(), width)
        return
    spoken = f" ({escape_controls(message.name)})" if message.name else ""
    parts = message.parts or (Part(origin=message.block, start=0, end=len(message.content)),)
    beside = " " * (len(number) + 1) + edge
    for nth, part in enumerate(parts):
        lead = head if nth == 0 else beside + " " * (count_columns(head) - len(beside))
        yield clip_text(f"{lead}{escape_controls(part.origin)}{spoken}", width)
        text = first_line(message.content[part.start : part.end]) or calls_in_words(message)
        yield clip_text(f"{beside}    {text}", width).rstrip()


def calls_in_words(message: ReportMessage) -> str:
    """Return a text that lists the tools that a message calls."""
    return escape_controls(f"calls {'; '.join(message.calls)}") if message.calls else ""


def _verdict_lines(report: Report, width: int) -> Iterator[str]:
    """Yield lines about the kept items, then about the items left out, grouped by reason."""
    kept, left = final_verdicts(report)
    yield _rule(f"kept: {len(kept)}", width)
    for verdict in kept:
        cost = f", {verdict.tokens} tokens" if verdict.tokens else ""
        cause = f"; {verdict.cause}" if verdict.cause else ""
        yield from indent_lines(f"{verdict.item}: {verdict.reason}{cost}{cause}", width)
    yield _rule(f"left out: {len(left)}", width)
    reasons: dict[str, list[str]] = {}
    for verdict in left:
        reasons.setdefault(f"{STAGES[verdict.stage]}: {verdict.reason}", []).append(verdict.item)
    for reason, items in reasons.items():
        yield from indent_lines(f"{_listed(items)}: {reason}", width)


def _listed(items: Sequence[str]) -> str:
    more = f" and {len(items) - _MOST_NAMES} more" if len(items) > _MOST_NAMES else ""
    return f"{', '.join(items[:_MOST_NAMES])}{more}"


def _cache(report: Report, width: int) -> Iterator[str]:
    yield _rule("cache", width)
    after = ", ".join(number_of(report, spot) for spot in report.breakpoints)
    where = f"breakpoints after message {after}" if after else "no breakpoints"
    yield from indent_lines(f"{where}; {report.stable_tokens} tokens up to the last one", width)
    if report.shared_tokens is not None:
        shared = f"{report.shared_tokens} tokens shared with the prompt before"
        yield from indent_lines(f"{shared}; {describe_break(report)}", width)
    yield from indent_lines(f"sha256 {report.sha256}", width)


def describe_break(report: PromptFigures) -> str:
    """Return a sentence on where the common prefix with the previous prompt ends, and why."""
    if report.broken_by is None:
        return MEANINGS["append"]
    by = f"broken first by {escape_controls(report.broken_by)}"
    reason = report.break_reason
    return by if reason is None else f"{by} ({reason.replace('_', '-')}: {MEANINGS[reason]})"


def indent_lines(text: str, width: int) -> list[str]:
    """Wrap `text` into lines. The first is indented by two columns, the others by four."""
    lines = wrap_text(text, width - 4)
    return ["  " + lines[0], *("    " + line for line in lines[1:])]


def _rule(title: str, width: int) -> str:
    return f"-- {title} ".ljust(width, "-")[:width]


NO_NAMES: Final[Mapping[str, str]] = {}
_MOST_COMPARED: Final = 20_000


def explain_lines(
    report: Report, item: str, *, names: Mapping[str, str] = NO_NAMES, width: int = WIDTH
) -> list[str]:
    """Render everything about one component, entry, note or block, or about one message.

    If no item has that name, similar names are listed. If several items have it, all are listed.

    Args:
        report: The report.
        item: The name of the item, or the number of a message.
        names: The names of lore entries, by their origin.
        width: The longest line, in columns.
    """
    index = find_message(report, item)
    if index is not None:
        return _about_message(report, index, width)
    meant = origins_meant(report, item, names=names)
    if not meant:
        return _none_called(report, item, names, width)
    if len(meant) > 1:
        which = _listed([_titled(origin, names) for origin in meant])
        return wrap_text(
            f"{escape_controls(clip_text(item, 60))} could be {which}; name one", width
        )
    return _about_origin(report, meant[0], names, width)


def origins_meant(report: Report, item: str, *, names: Mapping[str, str] = NO_NAMES) -> list[str]:
    """Return the origins in a report that a name can mean; only one if the name is unambiguous."""
    origins = _origins(report)
    if item in origins:
        return [item]
    by_key = next((origin for origin in origins if origin.partition(":")[2] == item), None)
    if by_key is not None:
        return [by_key]
    return [origin for origin in origins_called(item, names) if origin in origins]


def origins_called(wanted: str, names: Mapping[str, str]) -> list[str]:
    """Return the origins of the lore entries called `name`, `book#name` or `book/name`."""
    folded = wanted.removeprefix("lore:").casefold()
    return [origin for origin, name in names.items() if folded in _spellings(origin, name)]


def _spellings(origin: str, name: str) -> tuple[str, ...]:
    book, called = origin.removeprefix("lore:").rpartition("#")[0].casefold(), name.casefold()
    return called, f"{book}#{called}", f"{book}/{called}"


def _titled(origin: str, names: Mapping[str, str]) -> str:
    return escape_controls(f"{origin} ({names[origin]})" if names.get(origin) else origin)


def _about_origin(report: Report, origin: str, names: Mapping[str, str], width: int) -> list[str]:
    lines = [clip_text(_titled(origin, names), width)]
    for verdict in verdicts_about(report.verdicts, origin):
        lines += indent_lines(_in_words(verdict), width)
    if origin in report.by_origin:
        lines += indent_lines(
            f"costs {report.by_origin[origin]} tokens of {report.limit_tokens}", width
        )
    for index, message in enumerate(report.messages):
        for part in (part for part in message.parts if part.origin == origin != "history"):
            at = f"characters {part.start} to {part.end}"
            lines += indent_lines(f"is in message {number_of(report, index)}, {at}:", width)
            lines += _quoted(message.content[part.start : part.end], width)
    return lines


def _quoted(text: str, width: int) -> list[str]:
    return [f"    | {line}" for line in wrap_text(text, width - 6)]


def _about_message(report: Report, index: int, width: int) -> list[str]:
    message = report.messages[index]
    injected = ", injected by depth" if message.injected else ""
    speaker = f", said by {message.name}" if message.name else ""
    head = f"message {number_of(report, index)}: block {message.block}{injected},"
    lines = wrap_text(f"{head} role {message.role}{speaker}, {message.tokens} tokens", width)
    for part in message.parts:
        lines += indent_lines(f"characters {part.start} to {part.end} are {part.origin}", width)
    return lines + _quoted(message.content, width)


def _none_called(report: Report, item: str, names: Mapping[str, str], width: int) -> list[str]:
    if re.fullmatch(r"#?-?[0-9]+", item):
        ends = f"{number_of(report, 0)} to {number_of(report, len(report.messages) - 1)}"
        return wrap_text(f"there is no message {clip_text(item, 20)}; they are {ends}", width)
    origins = _origins(report)
    known = {names[origin]: origin for origin in origins if origin in names}
    known |= {key: origin for origin in origins for key in (origin, origin.partition(":")[2])}
    compared = list(islice(known, _MOST_COMPARED))
    near = [known[key] for key in get_close_matches(item[:60], compared, n=6, cutoff=0.4)]
    listed = [_titled(origin, names) for origin in dict.fromkeys(near or islice(origins, 12))]
    there = f"{'similar names' if near else 'there are'}: {', '.join(listed)}"
    name = clip_text(escape_controls(item), 60)
    if item.startswith("memory:"):
        # A stored turn keeps the verdicts on the memories that were taken and on the next best.
        why = "it was not among the best, or it is newer than this prompt"
        return wrap_text(f"{name} has no verdict here: {why}; {there}", width)
    return wrap_text(f"nothing here is called {name}; {there}", width)


def _origins(report: Report) -> dict[str, None]:
    """Return all origins in a report as keys, in the order of the stages."""
    placed = [part.origin for message in report.messages for part in message.parts]
    return dict.fromkeys([*(one.item for one in report.verdicts), *report.by_origin, *placed])


def _in_words(verdict: Verdict) -> str:
    decided = "kept" if verdict.kept else "left out"
    cause = f" ({verdict.cause})" if verdict.cause and verdict.cause not in verdict.reason else ""
    cost = f", {verdict.tokens} tokens" if verdict.tokens else ""
    return f"{STAGES[verdict.stage]}: {decided}: {verdict.reason}{cause}{cost}"
