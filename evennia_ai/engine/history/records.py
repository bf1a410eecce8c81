"""Records: what happened in a conversation, appended one after the other and never changed.

The hash of each record covers the record before it, so tampering with a history is found at its
place. The chain covers the hash of a record's content, not the words themselves. So words can be
erased on request without breaking the chain.

An interrupted turn leaves tool calls and replies incomplete; further records complete them.
Providers refuse a prompt in which a tool call has no result, so each such call gets a result that
says what is known. The tool is never run again, because it may have changed the world already. If
only the start of a reply was said, that start becomes the NPC's reply.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, get_args

from evennia_ai.engine.prompt.memo import Memo, Slot
from evennia_ai.engine.prompt.messages import Role
from evennia_ai.engine.prompt.names import in_guise

# Matches characters that are replaced: databases cannot store the null character, and UTF-8 cannot
# encode lone surrogates.
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
ERASED: Final[Mapping[str, Any]] = MappingProxyType({"erased": True})
"""The meta of a record whose words were erased. Such a record has no name and no body."""


class RecordKind(StrEnum):
    """The kind of a record.

    The first group is what is said or done in the conversation. The second group is texts of
    prompts. The third group records the course of turns and changes of the conversation: `spoken`
    is the start of a reply that was said before the rest arrived. `fallback` is a line of the game
    in place of a reply; no model sees it as its own words. `control` begins a new segment of the
    history after a builder changed which part of it counts (`control_record`).
    """

    USER = "user"
    ASSISTANT = "assistant"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    EVENT = "event"
    REMINDER = "reminder"
    SUMMARY = "summary"

    CONTEXT_BLOCK = "context_block"
    NOTE_ANCHOR = "note_anchor"
    COMPONENT_REV = "component_rev"
    SNAPSHOT = "snapshot"

    SPOKEN = "spoken"
    FALLBACK = "fallback"
    INVOKE = "invoke"
    RUN_END = "run_end"
    USAGE = "usage"
    ERASURE = "erasure"
    CONTROL = "control"


# Kinds of things said and done, which become the messages of the history
CONVERSATION: Final = frozenset(
    {
        RecordKind.USER,
        RecordKind.ASSISTANT,
        RecordKind.TOOL_CALL,
        RecordKind.TOOL_RESULT,
        RecordKind.EVENT,
        RecordKind.REMINDER,
        RecordKind.SUMMARY,
    }
)
# Kinds of prompt texts that injection depths do not count as messages
BOOKKEEPING: Final = frozenset(
    {RecordKind.CONTEXT_BLOCK, RecordKind.NOTE_ANCHOR, RecordKind.COMPONENT_REV}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRecord:
    """A record that is not stored yet.

    `name` is the name of the speaker, or "". `meta` has further facts as JSON values. Characters
    that cannot be stored are replaced with U+FFFD when the object is created, so that prompts show
    what is stored.
    """

    kind: RecordKind
    role: Role
    name: str = ""
    body: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict)
    memo: Memo = field(default_factory=Memo, init=False, repr=False, compare=False)
    """A cache for values that are computed from the record."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", make_storable(self.name))
        object.__setattr__(self, "body", make_storable(self.body))


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One stored entry of a conversation's history, such as a line of speech or a tool call."""

    id: str
    conversation: int
    segment: int
    """The part of the conversation. A compaction or a builder's change begins a new one."""
    seq: int
    """The number of the record in its segment, counted from 1."""
    kind: RecordKind
    role: Role
    name: str
    body: str
    meta: Mapping[str, Any]
    """Further facts about the record, as JSON values by key."""
    content_sha256: str
    """The hash of the record's name, body and meta."""
    sha256: str
    """The hash of the record in the chain, which covers all earlier records."""
    created_at: float
    """The time of creation in epoch seconds."""
    memo: Memo = field(default_factory=Memo, repr=False, compare=False)
    """A cache for values that are computed from the record."""

    @property
    def place(self) -> str:
        """Return the place of the record in its conversation, the same in every database."""
        return f"{self.segment}.{self.seq}"

    @property
    def is_erased(self) -> bool:
        """True if the words of the record were erased on request."""
        return not self.body and not self.name and self.meta == ERASED


GUISE: Final = "guise"
"""The key in a record's meta for the disguise in which the NPC perceived the speaker."""


def speaker_known_in(record: NewRecord | Record) -> str:
    """Return the reference of the character that the NPC took for the speaker, or ""."""
    speaker, guise = str(record.meta.get("speaker", "")), str(record.meta.get(GUISE, ""))
    return in_guise(speaker, guise) if guise else speaker


def call_ids(record: NewRecord | Record) -> tuple[str, ...]:
    """Return the ids of the tool calls in a record, in order."""
    return tuple(str(call["id"]) for call in record.meta.get("tool_calls", ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageTotals:
    """The numbers of messages, user messages and replies that a history had so far.

    The counts continue through compactions: a summary has the index of the last message that it
    covers, and does not count as said by anyone. A message that calls tools is not a reply; the
    reply comes after it.
    """

    messages: int = 0
    users: int = 0
    replies: int = 0

    def after(self, record: NewRecord | Record) -> "MessageTotals":
        """Return the totals after this record is appended. A control record replaces the totals."""
        if record.kind is RecordKind.CONTROL and not record.meta.get("erased"):
            messages, users, replies = record.meta["totals"]
            return MessageTotals(messages=messages, users=users, replies=replies)
        if is_staying(record):
            return replace(self, messages=self.messages + 1)
        if record.kind not in CONVERSATION or "tail" in record.meta:
            return self
        return MessageTotals(
            messages=self.messages + 1,
            users=self.users + (record.role == "user"),
            replies=self.replies
            + (record.role == "assistant" and record.kind is not RecordKind.TOOL_CALL),
        )

    def without(self, records: "Iterable[Record]") -> "MessageTotals":
        """Return the totals without the messages of these records."""
        gone = MessageTotals()
        for record in records:
            gone = gone.after(record)
        return MessageTotals(
            messages=self.messages - gone.messages,
            users=self.users - gone.users,
            replies=self.replies - gone.replies,
        )


def is_staying(record: NewRecord | Record) -> bool:
    """True if a record is a text of a prompt that stays in the history."""
    return record.kind is RecordKind.CONTEXT_BLOCK and record.meta.get("stays") is True


def reply_record(text: str) -> NewRecord:
    """Return a record of an NPC's reply in the words of a model."""
    return NewRecord(kind=RecordKind.ASSISTANT, role="assistant", body=text)


def fallback_record(text: str, *, refused: str = "") -> NewRecord:
    """Return a record of a line that the game says in place of a reply.

    `refused` is the limit that did not allow asking a model.
    """
    meta = {"refused": refused} if refused else {}
    return NewRecord(kind=RecordKind.FALLBACK, role="assistant", body=text, meta=meta)


LORE: Final = "lore"
"""The key in a control record's meta for the timers of lore before the builder's change."""

Control = Literal["reset", "undo", "retry", "correct"]
"""A change of the history by a builder, named like the switch of the command `ai`."""
CONTROLS: Final[tuple[Control, ...]] = get_args(Control)


def control_record(
    what: Control,
    *,
    by: str,
    tail: Sequence[Record],
    totals: MessageTotals,
    lore: Mapping[str, Any],
    withdrawn: Sequence[Record] = (),
    hint: str = "",
) -> NewRecord:
    """Return a record of a builder's change of a history, such as a reset.

    The record begins a segment and is not a message.

    Args:
        what: The change.
        by: The builder.
        tail: The records that still count, as prompts show them. All other records stay readable.
        totals: The message counts of the tail.
        lore: The state of lore before the change, as JSON values.
        withdrawn: The records that the change removed from the history.
        hint: A request for the next answer.
    """
    meta = {
        "what": what,
        "by": by,
        "tail": [record.place for record in tail],
        "totals": [totals.messages, totals.users, totals.replies],
        LORE: dict(lore),
        **({"withdrawn": [record.place for record in withdrawn]} if withdrawn else {}),
    }
    return NewRecord(kind=RecordKind.CONTROL, role="system", body=hint, meta=meta)


def make_storable(text: str) -> str:
    """Return a text with each character that cannot be stored replaced by U+FFFD."""
    return _UNSTORABLE.sub("\ufffd", text)


SHARED_TEXTS: Final = 16_384
"""How many equal texts are kept once in memory; the least recently used ones are dropped."""
SHARED_CHARACTERS: Final = 2_000
"""How many characters a text that is kept once in memory may have."""


def share_text(text: str) -> str:
    """Return one shared object for equal texts, because fifty NPCs may record the same words.

    `sys.intern` is not used, because since Python 3.12 it keeps texts until the process ends.
    """
    return _known_text(text) if len(text) <= SHARED_CHARACTERS else text


@lru_cache(maxsize=SHARED_TEXTS)
def _known_text(text: str) -> str:
    return text


canonical_json: Final = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), allow_nan=False
).encode
"""Encode a JSON value in the canonical form that is stored and hashed."""


class Content(NamedTuple):
    """A record's meta and hash in the form that is stored."""

    meta: str
    """The meta as canonical JSON."""
    sha256: str
    """The hash of name, body and meta."""


_CONTENT: Final = Slot[Content]("content")


def record_content(said: NewRecord) -> Content:
    """Return the meta and hash of a new record as they are stored.

    They are computed only once, because fifty NPCs may record the same words.
    """
    known = said.memo.get(_CONTENT)
    if known is None:
        known = said.memo[_CONTENT] = _content(said)
    return known


def content_sha256(said: NewRecord | Record) -> str:
    """Return the hash of a record's name, body and meta."""
    return record_content(said).sha256 if isinstance(said, NewRecord) else _content(said).sha256


def _content(said: NewRecord | Record) -> Content:
    meta = canonical_json(dict(said.meta))
    # The hash covers the canonical JSON of a list: name, body and meta.
    content = f"[{canonical_json(said.name)},{canonical_json(said.body)},{meta}]"
    digest = sha256(content.encode()).hexdigest()
    return Content(meta=share_text(meta), sha256=share_text(digest))


def chain_sha256(previous: str, new: NewRecord | Record) -> str:
    """Return the chain hash of a record, which also covers all records before it.

    `previous` is the chain hash of the record before it, "" for the first record. For a stored
    record the stored content hash is used, so the result is the same after its words were erased.
    """
    content = new.content_sha256 if isinstance(new, Record) else content_sha256(new)
    return link_sha256(previous, kind=new.kind, role=new.role, content=content)


def link_sha256(previous: str, *, kind: str, role: str, content: str) -> str:
    """Return the chain hash of a record, from the previous one, its fields and its content hash."""
    link = canonical_json([str(kind), role, content])
    return sha256(f"{previous}\n{link}".encode()).hexdigest()


def find_broken(records: Iterable[Record], *, previous: str = "") -> Record | None:
    """Return the first record that does not match its hash; None if all match.

    The records must be successive. The content hash of an erased record is not checked, because its
    words are gone; its chain hash is.
    """
    for record in records:
        has_content = record.is_erased or record.content_sha256 == content_sha256(record)
        if record.sha256 != chain_sha256(previous, record) or not has_content:
            return record
        previous = record.sha256
    return None


def orphan_calls(records: Iterable[NewRecord | Record]) -> tuple[str, ...]:
    """Return the ids of the tool calls that have no result in consecutive records, in order."""
    open_calls: dict[str, None] = {}
    for record in records:
        open_calls.update((call["id"], None) for call in record.meta.get("tool_calls", ()))
        open_calls.pop(str(record.meta.get("tool_call_id")), None)
    return tuple(open_calls)


def closing_results(
    records: Iterable[NewRecord | Record], *, outcome: str
) -> tuple[NewRecord, ...]:
    """Return a result record for each tool call without one. `outcome` says how the turn ended.

    The key `closes` in the meta distinguishes such a result from a tool's own result.
    """
    body = f"There is no result: {outcome}. It is not known whether this was done."
    return tuple(
        NewRecord(
            kind=RecordKind.TOOL_RESULT,
            role="tool",
            body=body,
            meta={"tool_call_id": call, "closes": "orphan"},
        )
        for call in orphan_calls(records)
    )


def cut_short_reply(records: Iterable[NewRecord | Record], *, turn: int) -> tuple[NewRecord, ...]:
    """Return a record of the part of an interrupted reply that was said; () if nothing was.

    Words before a tool call are left out, because the record of the call contains them completely.
    """
    said: list[str] = []
    for record in records:
        if record.kind is RecordKind.SPOKEN and record.meta.get("turn") == turn:
            said.append(record.body)
        elif record.kind is RecordKind.TOOL_CALL:
            said.clear()
    if not said:
        return ()
    body = f"{' '.join(said)} —"
    meta = {"cut_short": True}
    return (NewRecord(kind=RecordKind.ASSISTANT, role="assistant", body=body, meta=meta),)
