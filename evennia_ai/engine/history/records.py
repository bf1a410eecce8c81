"""Records: what happened in a conversation, one after the other, never changed.

Every record's hash covers the record before it, so a history that was tampered with shows where.
The chain covers the hash of what a record says, not the words: the words can be erased on request,
and the chain still holds.

What a turn that was cut short leaves open is closed by further records: a provider refuses a prompt
in which a call of a tool has no result, so each gets one that says what is known. The tool itself
is never run again: what it changes in the world may have been changed already. And the start of a
reply that was said before the rest came is what the NPC said.
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

# What no database stores or no encoding writes: the null character and halves of pairs.
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
ERASED: Final[Mapping[str, Any]] = MappingProxyType({"erased": True})
"""The meta of a record whose words were erased; it has neither name nor body."""


class RecordKind(StrEnum):
    """What a record is about.

    The first row is said or done in the conversation, the second holds the texts of prompts, the
    third says how a turn went and what became of the conversation: `spoken` is the start of a
    reply that was said before the rest of it came, `fallback` a line that the game let the NPC say
    where there was no reply. No model is ever shown one as words that it chose itself. `control`
    begins a segment: a builder said what of the history counts from there on (`control_record`).
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


# What was said and done: the messages of the history.
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
# Texts of a prompt that injection depth does not count.
BOOKKEEPING: Final = frozenset(
    {RecordKind.CONTEXT_BLOCK, RecordKind.NOTE_ANCHOR, RecordKind.COMPONENT_REV}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRecord:
    """A record that is not stored yet.

    `name` is the speaker's, "" where nobody speaks; `meta` holds JSON values. Characters that
    cannot be stored become U+FFFD here, so that what is stored is what every prompt shows.
    """

    kind: RecordKind
    role: Role
    name: str = ""
    body: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict)
    memo: Memo = field(default_factory=Memo, init=False, repr=False, compare=False)
    """What was worked out from it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", storable(self.name))
        object.__setattr__(self, "body", storable(self.body))


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A stored record."""

    id: str
    conversation: int
    segment: int
    seq: int
    """From 1 in its segment."""
    kind: RecordKind
    role: Role
    name: str
    body: str
    meta: Mapping[str, Any]
    content_sha256: str
    """The hash of name, body and meta."""
    sha256: str
    """The hash of the record in its chain."""
    created_at: float
    """In epoch seconds."""
    memo: Memo = field(default_factory=Memo, repr=False, compare=False)
    """What was worked out from it."""

    @property
    def place(self) -> str:
        """Where it stands in its conversation: what other records call it by, in every database."""
        return f"{self.segment}.{self.seq}"

    @property
    def is_erased(self) -> bool:
        """Whether its words were erased on request."""
        return not self.body and not self.name and self.meta == ERASED


GUISE: Final = "guise"
"""In the meta of a record: what hid from the NPC who spoke, beside "speaker", who it was."""


def speaker_known_in(record: NewRecord | Record) -> str:
    """The reference of whom the NPC took the one for who said or did it, "" for nobody."""
    speaker, guise = str(record.meta.get("speaker", "")), str(record.meta.get(GUISE, ""))
    return in_guise(speaker, guise) if guise else speaker


def calls_of(record: NewRecord | Record) -> tuple[str, ...]:
    """The ids of the tool calls that a record makes."""
    return tuple(str(call["id"]) for call in record.meta.get("tool_calls", ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageTotals:
    """How many messages a history has so far, and how many of them of role user and replies.

    They go on through compactions: a summary stands at the index of the last message in it, and
    nobody said it. A message that calls tools is no reply: the reply comes after it.
    """

    messages: int = 0
    users: int = 0
    replies: int = 0

    def after(self, record: NewRecord | Record) -> "MessageTotals":
        """The totals when this record was appended; a control says which it leaves."""
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
            replies=self.replies + _is_reply(record),
        )

    def without(self, records: "Iterable[Record]") -> "MessageTotals":
        """The totals of the history without these records, which are in it."""
        gone = MessageTotals()
        for record in records:
            gone = gone.after(record)
        return MessageTotals(
            messages=self.messages - gone.messages,
            users=self.users - gone.users,
            replies=self.replies - gone.replies,
        )


def _is_reply(record: NewRecord | Record) -> bool:
    return record.role == "assistant" and record.kind is not RecordKind.TOOL_CALL


def is_staying(record: NewRecord | Record) -> bool:
    """Whether the record is a text of a prompt that remains in the history."""
    return record.kind is RecordKind.CONTEXT_BLOCK and record.meta.get("stays") is True


def reply_record(text: str) -> NewRecord:
    """What an NPC said in answer, in a model's words."""
    return NewRecord(kind=RecordKind.ASSISTANT, role="assistant", body=text)


def fallback_record(text: str, *, refused: str = "") -> NewRecord:
    """What an NPC said because there was no reply; `refused` is the limit that forbade asking."""
    meta = {"refused": refused} if refused else {}
    return NewRecord(kind=RecordKind.FALLBACK, role="assistant", body=text, meta=meta)


LORE: Final = "lore"
"""In the meta of a control: what lore remembered before it."""

Control = Literal["reset", "undo", "retry", "correct"]
"""What a builder may do to a history: the switch of `ai` that did it."""
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
    """What a builder (`by`) did to a history; it begins a segment and is itself no message.

    `tail` is what counts from here on, as prompts show it, and `totals` are those of it; all else
    stays readable. `lore` is what lore remembered until then, as JSON values; `withdrawn` is what
    it took out, `hint` what is asked of the next answer.
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


def storable(text: str) -> str:
    """`text` with what cannot be stored replaced by U+FFFD."""
    return _UNSTORABLE.sub("\ufffd", text)


SHARED_TEXTS: Final = 16_384
"""Texts of which one object is known, those that were asked for last."""
SHARED_CHARACTERS: Final = 2_000
"""A longer text is an object of its own each time: what is known for nobody costs little."""


def one_text(text: str) -> str:
    """The text as the one object that all records share who say it: fifty may have heard it.

    Not `sys.intern`: what that knows stays for as long as the process, from Python 3.12 on.
    """
    return _known_text(text) if len(text) <= SHARED_CHARACTERS else text


@lru_cache(maxsize=SHARED_TEXTS)
def _known_text(text: str) -> str:
    return text


canonical_json: Final = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), allow_nan=False
).encode
"""A value as the one JSON text that is stored and hashed."""


class Content(NamedTuple):
    """What a record says, as it is stored and hashed."""

    meta: str
    """Canonical JSON."""
    sha256: str
    """The hash of name, body and meta."""


_CONTENT: Final = Slot[Content]("content")


def content_of(said: NewRecord) -> Content:
    """What a new record says, worked out once: fifty may hear it."""
    known = said.memo.get(_CONTENT)
    if known is None:
        known = said.memo[_CONTENT] = _content(said)
    return known


def content_sha256(said: NewRecord | Record) -> str:
    """The hash of what a record says: its name, body and meta."""
    return content_of(said).sha256 if isinstance(said, NewRecord) else _content(said).sha256


def _content(said: NewRecord | Record) -> Content:
    meta = canonical_json(dict(said.meta))
    # The canonical JSON of the three as one list.
    content = f"[{canonical_json(said.name)},{canonical_json(said.body)},{meta}]"
    digest = sha256(content.encode()).hexdigest()
    return Content(meta=one_text(meta), sha256=one_text(digest))


def chain_sha256(previous: str, new: NewRecord | Record) -> str:
    """The hash of a record after one with the hash `previous`, "" for a conversation's first.

    A stored record counts with the hash of its content that is stored with it.
    """
    content = new.content_sha256 if isinstance(new, Record) else content_sha256(new)
    return linked_sha256(previous, kind=new.kind, role=new.role, content=content)


def linked_sha256(previous: str, *, kind: str, role: str, content: str) -> str:
    """The same from the parts: `content` is the hash of name, body and meta."""
    link = canonical_json([str(kind), role, content])
    return sha256(f"{previous}\n{link}".encode()).hexdigest()


def first_broken(records: Iterable[Record], *, previous: str = "") -> Record | None:
    """The first of successive records that does not say what its hash covers.

    That of an erased one is taken at its word: what it said is gone, its place in the chain stays.
    """
    for record in records:
        if record.sha256 != chain_sha256(previous, record) or not _says_its_content(record):
            return record
        previous = record.sha256
    return None


def _says_its_content(record: Record) -> bool:
    return record.is_erased or record.content_sha256 == content_sha256(record)


def orphan_calls(records: Iterable[NewRecord | Record]) -> tuple[str, ...]:
    """The ids of the calls in successive records that have no result among them, in order."""
    open_calls: dict[str, None] = {}
    for record in records:
        open_calls.update((call["id"], None) for call in record.meta.get("tool_calls", ()))
        open_calls.pop(str(record.meta.get("tool_call_id")), None)
    return tuple(open_calls)


def closing_results(
    records: Iterable[NewRecord | Record], *, outcome: str
) -> tuple[NewRecord, ...]:
    """A result for each call in successive records that has none; `outcome` is how the turn ended.

    `closes` in its meta tells it from what a tool returned.
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


def cut_short(records: Iterable[NewRecord | Record], *, turn: int) -> tuple[NewRecord, ...]:
    """The reply of a turn of which only the start was said, and nothing more will be.

    A reply that called tools is in the record of the calls, all of it.
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
