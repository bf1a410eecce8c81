"""Replay: the bytes of a past turn, rebuilt from the records that its manifest names.

With it, what two past prompts shared, told from their manifests alone (equal texts of a segment are
one record, so the same records were the same bytes), and what differs in two prompts, message by
message: those are paired by their bytes, so one that was put in moves none of the others.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, unified_diff
from itertools import takewhile
from typing import Final, Literal, NamedTuple

from evennia_ai.engine.errors import ReplayError
from evennia_ai.engine.history.records import Record, content_sha256
from evennia_ai.engine.history.turn.manifest import RecordedMessage, TurnManifest
from evennia_ai.engine.history.turn.sending import Handle, sent_messages, tools_in
from evennia_ai.engine.prompt.messages import Message, ToolSpec, messages_sha256
from evennia_ai.engine.prompt.report import Report, report_message
from evennia_ai.engine.prompt.trace import Verdict


@dataclass(frozen=True, slots=True)
class Fault:
    """A message of a past prompt whose record does not say any more what it said."""

    index: int
    record: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """A past prompt; `messages` is empty where it cannot be rebuilt, and `problem` says why.

    `faults` are the messages that are to blame, where it can be told.
    """

    sha256: str
    messages: tuple[Message, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    """The tools that were sent beside the messages."""
    problem: str = ""
    faults: tuple[Fault, ...] = ()

    @property
    def is_same(self) -> bool:
        """Whether these are the bytes that were sent."""
        return not self.problem


def replay(manifest: TurnManifest, records: Iterable[Record]) -> Replay:
    """Rebuild the prompt of a past turn, and its tools, from the records that its manifest names.

    `records` must hold those of `manifest.sent_ids`.
    """
    by_id = {record.id: record for record in records}
    try:
        messages = messages_of(manifest, by_id.values())
        tools = _tools(manifest, by_id)
    except ReplayError as error:
        return Replay(
            sha256=manifest.sha256, problem=str(error), faults=tuple(_faults(manifest, by_id))
        )
    return Replay(sha256=manifest.sha256, messages=messages, tools=tools)


def _tools(manifest: TurnManifest, by_id: Mapping[str, Record]) -> tuple[ToolSpec, ...]:
    if manifest.tools_record is None:
        return ()
    record = by_id.get(manifest.tools_record)
    problem = _problem(record)
    if problem or record is None:
        raise ReplayError(f"record {manifest.tools_record}, the list of its tools, {problem}")
    return tools_in(record)


def messages_of(manifest: TurnManifest, records: Iterable[Record]) -> tuple[Message, ...]:
    """The messages of a past turn, the same bytes as then.

    ReplayError: a record is missing or erased, or the result does not have the hash of the prompt
    that was sent.
    """
    if manifest.erased:
        raise ReplayError("the words of the turn were erased on request")
    by_id = {record.id: record for record in records}
    messages = tuple(_rebuilt(message, by_id) for message in manifest.messages)
    found = messages_sha256(messages)
    if found != manifest.sha256:
        raise ReplayError(
            f"the rebuilt prompt has the hash {found[:12]}..., the prompt that was sent had"
            f" {manifest.sha256[:12]}...; a record or the manifest was changed in the database"
        )
    return messages


def report_of_turn(manifest: TurnManifest, records: Iterable[Record]) -> Report:
    """The account of a past turn's prompt, as it was when the prompt was sent.

    ReplayError: the prompt cannot be rebuilt.
    """
    rebuilt = messages_of(manifest, records)
    return Report(
        messages=tuple(
            report_message(message, kept.tokens)
            for message, kept in zip(rebuilt, manifest.messages, strict=True)
        ),
        verdicts=_all_verdicts(manifest),
        **manifest.figures,
    )


def _all_verdicts(manifest: TurnManifest) -> tuple[Verdict, ...]:
    """The verdicts, each silent entry's behind those of the activation."""
    own = [verdict for verdict in manifest.verdicts if verdict.stage == "activate"]
    judged = {verdict.item for verdict in own}
    silent = [
        Verdict(stage="activate", item=f"lore:{label}", kept=False, reason=silence.reason)
        for silence in manifest.silent
        for label in silence.labels()
        if f"lore:{label}" not in judged
    ]
    later = (verdict for verdict in manifest.verdicts if verdict.stage != "activate")
    return (*own, *silent, *later)


def _rebuilt(message: RecordedMessage, by_id: Mapping[str, Record]) -> Message:
    record = by_id.get(message.record)
    if record is None:
        raise ReplayError(f"record {message.record} of the turn is not there")
    handle = Handle(record=record, block=message.block, injected=message.injected)
    return sent_messages([handle])[0]


def _faults(manifest: TurnManifest, by_id: Mapping[str, Record]) -> Iterator[Fault]:
    for index, message in enumerate(manifest.messages):
        problem = _problem(by_id.get(message.record))
        if problem:
            yield Fault(index, message.record, problem)


def _problem(record: Record | None) -> str:
    if record is None:
        return "is not there"
    if record.is_erased:
        return "was erased on request"
    if record.content_sha256 != content_sha256(record):
        return "was changed in the database: it does not say what its hash covers"
    return ""


class SharedPrefix(NamedTuple):
    """The messages at the start of a prompt that the one before began with as well."""

    messages: int
    tokens: int
    is_whole: bool
    """Whether all of the prompt before is among them."""


def shared_prefix(older: TurnManifest, newer: TurnManifest) -> SharedPrefix:
    """What the newer prompt still shares with the older one, at least."""
    pairs = zip(older.messages, newer.messages, strict=False)
    shared = [now for _, now in takewhile(lambda pair: pair[0].record == pair[1].record, pairs)]
    return SharedPrefix(
        messages=len(shared),
        tokens=sum(message.tokens for message in shared),
        is_whole=len(shared) == len(older.messages),
    )


Change = Literal["added", "removed", "changed"]
MOST_LINES: Final = 24
"""Lines of one difference that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One message that is added, removed or changed; `at` is its index, of a new one the new one.

    `lines` is a unified diff of its text, clipped.
    """

    change: Change
    at: int
    role: str
    origins: tuple[str, ...]
    lines: tuple[str, ...]


def differences(older: Sequence[Message], newer: Sequence[Message]) -> tuple[Difference, ...]:
    """What makes `newer` another prompt than `older`; nothing where they are the same bytes."""
    first = [message.wire() for message in older]
    second = [message.wire() for message in newer]
    if first == second:
        return ()
    found: list[Difference] = []
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag != "equal":
            found += _stretch(older[a:b], newer[c:d], a, c)
    return tuple(found)


def shared_messages(older: Sequence[Message], newer: Sequence[Message]) -> int:
    """How many messages at the start of both are the same bytes."""
    count = 0
    for before, now in zip(older, newer, strict=False):
        if before.wire() != now.wire():
            break
        count += 1
    return count


def _stretch(
    older: Sequence[Message], newer: Sequence[Message], at: int, newer_at: int
) -> Iterator[Difference]:
    """A stretch that differs: messages in pairs, and what one of the two has more."""
    pairs = min(len(older), len(newer))
    for index in range(pairs):
        yield _difference("changed", newer_at + index, older[index], newer[index])
    for index, message in enumerate(older[pairs:], start=pairs):
        yield _difference("removed", at + index, message, None)
    for index, message in enumerate(newer[pairs:], start=pairs):
        yield _difference("added", newer_at + index, None, message)


def _difference(change: Change, at: int, before: Message | None, now: Message | None) -> Difference:
    one = now or before
    assert one is not None  # something differs
    return Difference(
        change=change,
        at=at,
        role=one.role
        if before is None or before.role == one.role
        else f"{before.role}->{one.role}",
        origins=tuple(dict.fromkeys(part.origin for part in one.parts)),
        lines=tuple(_lines(before.content if before else "", now.content if now else "")),
    )


def _lines(before: str, now: str) -> Iterator[str]:
    diff = list(unified_diff(before.splitlines(), now.splitlines(), lineterm="", n=1))[2:]
    yield from diff[:MOST_LINES]
    if len(diff) > MOST_LINES:
        yield f"... and {len(diff) - MOST_LINES} more lines"
