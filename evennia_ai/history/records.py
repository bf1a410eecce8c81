"""Records: what happened in a conversation, one after the other, never changed.

Every record's hash covers the record before it, so a history that was tampered with shows where.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final

from evennia_ai.prompt.messages import Role

# What no database stores or no encoding writes: the null character and halves of pairs.
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")


class RecordKind(StrEnum):
    """What a record is about.

    The first row is said or done in the conversation, the second keeps the books of a prompt, the
    third says how a turn went.
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

    INVOKE = "invoke"
    RUN_END = "run_end"
    USAGE = "usage"


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

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", storable(self.name))
        object.__setattr__(self, "body", storable(self.body))


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A stored record; `seq` counts from 1 in its segment, `created_at` is in epoch seconds."""

    id: str
    conversation: int
    segment: int
    seq: int
    kind: RecordKind
    role: Role
    name: str
    body: str
    meta: Mapping[str, Any]
    sha256: str
    created_at: float


def storable(text: str) -> str:
    """`text` with what cannot be stored replaced by U+FFFD."""
    return _UNSTORABLE.sub("\ufffd", text)


def canonical_json(value: object) -> str:
    """`value` as the one JSON text that is stored and hashed."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def chain_sha256(previous: str, new: NewRecord | Record) -> str:
    """The hash of a record after one with the hash `previous`, "" for a segment's first."""
    said = [new.kind.value, new.role, new.name, new.body, dict(new.meta)]
    return sha256(f"{previous}\n{canonical_json(said)}".encode()).hexdigest()


def first_broken(records: Iterable[Record], *, previous: str = "") -> Record | None:
    """The first of successive records whose hash does not follow from the one before it."""
    for record in records:
        if record.sha256 != chain_sha256(previous, record):
            return record
        previous = record.sha256
    return None
