"""Replay: rebuild the prompt of a past turn from the records that were sent, byte for byte.

This module also compares past prompts. The shared beginning of two prompts is found from their
manifests only: equal texts of a segment share one record, so equal records mean equal bytes.
Differences are listed message by message. Messages are matched by their bytes, so an inserted
message does not shift the comparison of the others.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, unified_diff
from functools import lru_cache
from itertools import takewhile
from typing import Final, Literal, NamedTuple

from evennia_ai.engine.errors import ReplayError
from evennia_ai.engine.history.records import Record, content_sha256
from evennia_ai.engine.history.turn.manifest import RecordedMessage, TurnManifest
from evennia_ai.engine.history.turn.sending import Handle, parse_tools, sent_messages
from evennia_ai.engine.lorebook.book import Unmatched
from evennia_ai.engine.prompt.messages import Message, ToolSpec, messages_sha256
from evennia_ai.engine.prompt.report import Report, report_message
from evennia_ai.engine.prompt.trace import Verdict
from evennia_ai.engine.text.differences import diff_texts


@dataclass(frozen=True, slots=True)
class LostMessage:
    """A message of a past prompt that cannot be rebuilt, because its record lacks the words."""

    index: int
    record: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """A past prompt, rebuilt. If that fails, `messages` is empty and `problem` says why.

    `faults` are the messages that could not be rebuilt, if they are known.
    """

    sha256: str
    messages: tuple[Message, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    """The tools that were sent with the messages."""
    problem: str = ""
    faults: tuple[LostMessage, ...] = ()

    @property
    def is_same(self) -> bool:
        """True if the rebuilt bytes are those that were sent."""
        return not self.problem


def replay_turn(manifest: TurnManifest, records: Iterable[Record]) -> Replay:
    """Rebuild the prompt and the tool list of a past turn.

    Args:
        manifest: The manifest of the turn.
        records: Records of the conversation, at least those of `manifest.sent_ids`.
    """
    by_id = {record.id: record for record in records}
    tools: tuple[ToolSpec, ...] = ()
    try:
        messages = replay_messages(manifest, by_id.values())
        if manifest.tools_record is not None:
            record = by_id.get(manifest.tools_record)
            problem = _record_problem(record)
            if problem or record is None:
                raise ReplayError(  # noqa: TRY301
                    f"record {manifest.tools_record}, the list of its tools, {problem}"
                )
            tools = parse_tools(record)
    except ReplayError as error:
        faults = tuple(
            LostMessage(index, message.record, problem)
            for index, message in enumerate(manifest.messages)
            if (problem := _record_problem(by_id.get(message.record)))
        )
        return Replay(sha256=manifest.sha256, problem=str(error), faults=faults)
    return Replay(sha256=manifest.sha256, messages=messages, tools=tools)


def replay_messages(manifest: TurnManifest, records: Iterable[Record]) -> tuple[Message, ...]:
    """Return the messages of a past turn with exactly the bytes that were sent.

    Raises:
        ReplayError: A record is missing or erased, or the messages do not have the hash of the
            prompt that was sent.
    """
    if manifest.erased:
        raise ReplayError("the words of the turn were erased on request")
    by_id = {record.id: record for record in records}
    messages = tuple(_rebuild_message(message, by_id) for message in manifest.messages)
    found = messages_sha256(messages)
    if found != manifest.sha256:
        raise ReplayError(
            f"the rebuilt prompt has the hash {found[:12]}..., the prompt that was sent had"
            f" {manifest.sha256[:12]}...; a record or the manifest was changed in the database"
        )
    return messages


def turn_report(
    manifest: TurnManifest, records: Iterable[Record], rebuilt: Sequence[Message] = ()
) -> Report:
    """Return the report that explains a past turn's prompt.

    Args:
        rebuilt: The messages of the turn, if the caller has replayed it already.

    Raises:
        ReplayError: The prompt cannot be rebuilt.
    """
    rebuilt = rebuilt or replay_messages(manifest, records)
    return Report(
        messages=tuple(
            report_message(message, kept.tokens)
            for message, kept in zip(rebuilt, manifest.messages, strict=True)
        ),
        verdicts=_all_verdicts(manifest),
        **manifest.figures,
    )


def _all_verdicts(manifest: TurnManifest) -> tuple[Verdict, ...]:
    """Return all verdicts of a past turn.

    Verdicts on lore entries are partly stored in groups. These follow the other verdicts of the
    stage "activate".
    """
    own = [verdict for verdict in manifest.verdicts if verdict.stage == "activate"]
    judged = {verdict.item for verdict in own}
    silent = [
        verdict
        for silence in manifest.silent
        for verdict in _silent_verdicts(silence)
        if verdict.item not in judged
    ]
    later = (verdict for verdict in manifest.verdicts if verdict.stage != "activate")
    return (*own, *silent, *later)


@lru_cache(maxsize=8)  # pages show the same turns, or turns after each other
def _silent_verdicts(silence: Unmatched) -> tuple[Verdict, ...]:
    """Return a verdict on each entry of a group."""
    return tuple(
        Verdict(stage="activate", item=f"lore:{label}", kept=False, reason=silence.reason)
        for label in silence.labels()
    )


def _rebuild_message(message: RecordedMessage, by_id: Mapping[str, Record]) -> Message:
    record = by_id.get(message.record)
    if record is None:
        raise ReplayError(f"record {message.record} of the turn is not there")
    handle = Handle(record=record, block=message.block, injected=message.injected)
    return sent_messages([handle])[0]


def _record_problem(record: Record | None) -> str:
    if record is None:
        return "is not there"
    if record.is_erased:
        return "was erased on request"
    if record.content_sha256 != content_sha256(record):
        return "was changed in the database: its hash does not match its content"
    return ""


class SharedPrefix(NamedTuple):
    """How many messages at the beginning of a prompt equal those of the previous prompt."""

    messages: int
    tokens: int
    is_whole: bool
    """True if the equal messages are the whole previous prompt."""


def shared_prefix(older: TurnManifest, newer: TurnManifest) -> SharedPrefix:
    """Return how many messages at the beginning of two prompts are equal.

    There may be more in fact, because only equal records are counted.
    """
    pairs = zip(older.messages, newer.messages, strict=False)
    shared = [now for _, now in takewhile(lambda pair: pair[0].record == pair[1].record, pairs)]
    return SharedPrefix(
        messages=len(shared),
        tokens=sum(message.tokens for message in shared),
        is_whole=len(shared) == len(older.messages),
    )


Change = Literal["added", "removed", "changed"]
MOST_DIFF_LINES: Final = 24
"""How many lines of text one changed message may show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A message that was added, removed or changed between two prompts.

    `at` is its index in the newer prompt, or in the older prompt for a removed message. `lines`
    shows what differs in its text, sentence by sentence, cut to `MOST_DIFF_LINES`.
    """

    change: Change
    at: int
    role: str
    origins: tuple[str, ...]
    lines: tuple[str, ...]


def message_differences(
    older: Sequence[Message], newer: Sequence[Message]
) -> tuple[Difference, ...]:
    """Return the differences between two prompts; it is empty if the bytes are equal."""
    first = [message.wire() for message in older]
    second = [message.wire() for message in newer]
    if first == second:
        return ()
    found: list[Difference] = []
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag != "equal":
            found += _differences_between(older[a:b], newer[c:d], a, c)
    return tuple(found)


def shared_messages(older: Sequence[Message], newer: Sequence[Message]) -> int:
    """Return the number of equal messages at the beginning of both prompts."""
    count = 0
    for before, now in zip(older, newer, strict=False):
        if before.wire() != now.wire():
            break
        count += 1
    return count


def _differences_between(
    older: Sequence[Message], newer: Sequence[Message], at: int, newer_at: int
) -> Iterator[Difference]:
    """Yield the differences between two ranges of messages that have none in common.

    Messages are compared in pairs; the surplus messages of the longer range were removed or added.
    """
    pairs = min(len(older), len(newer))
    for index in range(pairs):
        yield _difference("changed", newer_at + index, older[index], newer[index])
    for index, message in enumerate(older[pairs:], start=pairs):
        yield _difference("removed", at + index, message, None)
    for index, message in enumerate(newer[pairs:], start=pairs):
        yield _difference("added", newer_at + index, None, message)


def _difference(change: Change, at: int, before: Message | None, now: Message | None) -> Difference:
    one = now or before
    assert one is not None  # at most one of the two messages is None
    old, new = before.content if before else "", now.content if now else ""
    diff = list(diff_texts(old, new))
    if not diff and old != new:  # only blanks and the ends of lines differ
        diff = list(unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=1))[2:]
    more = len(diff) - MOST_DIFF_LINES
    rest = [f"... and {more} more lines"] if more > 0 else []
    return Difference(
        change=change,
        at=at,
        role=one.role
        if before is None or before.role == one.role
        else f"{before.role}->{one.role}",
        origins=tuple(dict.fromkeys(part.origin for part in one.parts)),
        lines=(*diff[:MOST_DIFF_LINES], *rest),
    )
