"""Replay: a past prompt rebuilt from its manifest and its records alone, and what is wrong if not.

Nothing else is asked: components, cards, books and names may all have changed since.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from evennia_ai.history.errors import ReplayError
from evennia_ai.history.records import Record, content_sha256
from evennia_ai.history.turns import RecordedMessage, TurnManifest, messages_of
from evennia_ai.prompt.messages import Message


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
    problem: str = ""
    faults: tuple[Fault, ...] = ()

    @property
    def is_same(self) -> bool:
        """Whether these are the bytes that were sent."""
        return not self.problem


def replay(manifest: TurnManifest, records: Iterable[Record]) -> Replay:
    """The prompt of a past turn from the records that its manifest names."""
    kept = tuple(records)
    try:
        messages = messages_of(manifest, kept)
    except ReplayError as error:
        by_id = {record.id: record for record in kept}
        return Replay(
            sha256=manifest.sha256, problem=str(error), faults=tuple(_faults(manifest, by_id))
        )
    return Replay(sha256=manifest.sha256, messages=messages)


def _faults(manifest: TurnManifest, by_id: Mapping[str, Record]) -> Iterator[Fault]:
    for index, message in enumerate(manifest.messages):
        if isinstance(message, RecordedMessage):
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
