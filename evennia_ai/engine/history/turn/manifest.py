"""The manifest of a turn: enough to rebuild its prompt byte for byte, and to say why it was so.

Every message is named by the record that holds it, so later edits of components, cards and lore
change no past turn. Entries of lore that nothing concerned are told in bulk: a book of 10,000 costs
a turn a few words. Manifests are made from drafts (`evennia_ai.engine.history.turn.sending`). The
record that ends a turn holds the hash of its manifest (`evennia_ai.engine.history.turn.seals`).
Anybody may have written the manifest in a transcript: `wrong_field` names the first value that no
turn writes, and `transcripts` checks that the records it names exist.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import Any, Final, NamedTuple

from evennia_ai.engine.errors import ReplayError
from evennia_ai.engine.history.records import canonical_json
from evennia_ai.engine.lorebook.book import Unmatched
from evennia_ai.engine.prompt.cache_account import REASONS
from evennia_ai.engine.prompt.compiled import LAYOUTS
from evennia_ai.engine.prompt.messages import Block
from evennia_ai.engine.prompt.placement import Anchor, Anchors
from evennia_ai.engine.prompt.prompt import PromptFigures
from evennia_ai.engine.prompt.trace import Verdict

FORMAT: Final = 4


class RecordedMessage(NamedTuple):
    """A message that is in the records; the record must show exactly what the prompt showed.

    As JSON it is the list of its fields.
    """

    record: str
    block: Block
    injected: bool
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnManifest(PromptFigures):
    """What one prompt consisted of."""

    messages: tuple[RecordedMessage, ...]
    verdicts: tuple[Verdict, ...]
    silent: tuple[Unmatched, ...] = ()
    """Entries of lore without a verdict of their own, by the reason they share."""
    cut: int
    model: str = ""
    sent_sha256: str = ""
    """Of the messages as the provider's adapter sent them."""
    revisions: Mapping[str, str] = field(default_factory=dict)
    """Which version of each card, book and component took part, by origin."""
    segment: int = 1
    """The part of the conversation it stands in."""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    """The small values it was made from, as JSON."""
    anchors: Anchors = field(default_factory=dict)
    """Where its anchored notes stand."""
    tools_record: str | None = None
    """The record of the list of tools that was sent beside the messages."""
    request: Mapping[str, Any] = field(default_factory=dict)
    """How the model was asked beside the messages and tools, without secrets, as JSON values."""
    erased: bool = False
    """Whether the words of its records, inputs and verdicts were erased on request."""
    erased_blocks: tuple[str, ...] = ()
    """Keys of the blocks of facts whose text was erased on request."""

    @property
    def record_ids(self) -> tuple[str, ...]:
        """Ids of the records the prompt shows, in its order."""
        return tuple(message.record for message in self.messages)

    @property
    def sent_ids(self) -> tuple[str, ...]:
        """Ids of all records that were sent: those of the prompt, and the list of tools."""
        return (*self.record_ids, *(() if self.tools_record is None else (self.tools_record,)))

    def to_plain(self) -> dict[str, Any]:
        """Return the manifest as JSON values."""
        plain: dict[str, Any] = {"format": FORMAT}
        for one in fields(self):
            value = getattr(self, one.name)
            plain[one.name] = dict(value) if isinstance(value, Mapping) else value
        plain["verdicts"] = [_verdict_values(verdict) for verdict in self.verdicts]
        plain["silent"] = [[one.book, one.reason, one.uids] for one in self.silent]
        return plain

    def to_json(self) -> str:
        """Return the manifest as one canonical JSON text."""
        return canonical_json(self.to_plain())

    @classmethod
    def from_json(cls, text: str) -> "TurnManifest":
        """Read the manifest that `to_json` wrote. ReplayError: it has another format."""
        return cls.from_plain(json.loads(text))

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> "TurnManifest":
        """Read the manifest that `to_plain` wrote. ReplayError: it has another format."""
        values = dict(plain)
        found = values.pop("format", None)
        if found != FORMAT:
            raise ReplayError(f"the manifest has format {found}, this version reads {FORMAT}")
        values["messages"] = tuple(RecordedMessage(*one) for one in values["messages"])
        values["verdicts"] = tuple(
            Verdict(**dict(zip(_VERDICT, one, strict=True))) for one in values["verdicts"]
        )
        values["silent"] = tuple(Unmatched(*one) for one in values["silent"])
        values["breakpoints"] = tuple(values["breakpoints"])
        values["erased_blocks"] = tuple(values["erased_blocks"])
        values["anchors"] = anchors_from(values["anchors"])
        return cls(**values)


def request_in_words(manifest: TurnManifest) -> str:
    """Render how the model was asked, for example "profile default, temperature 0.7".

    Empty if the words of the turn were erased.
    """
    beside = dict(manifest.request)
    values = {**beside, **beside.pop("body", {})}
    values.pop("body", None)
    return ", ".join(
        f"{name} {value if isinstance(value, str) else canonical_json(value)}"
        for name, value in values.items()
    )


def number_in(manifest: TurnManifest, index: int) -> str:
    """Return what every screen calls a message of the prompt: `#12` by its record."""
    return f"#{manifest.messages[index].record}"


def with_record_names(manifest: TurnManifest, name: Callable[[str], str]) -> TurnManifest:
    """Return the manifest with `name` applied to each id of a record in it.

    The game calls records by their ids. Transcripts and seals call them by their places, which are
    the same in every database.
    """
    inputs = dict(manifest.inputs)
    if inputs.get("event") is not None:
        inputs["event"] = name(inputs["event"])
    if "tools" in inputs:
        inputs["tools"] = [name(one) for one in inputs["tools"]]
    if "history" in inputs:
        held = dict(inputs["history"])
        for end in ("first", "last"):
            held[end] = held[end] and name(held[end])
        held["left_out"] = [name(one) for one in held["left_out"]]
        inputs["history"] = held
    tools = manifest.tools_record
    return replace(
        manifest,
        messages=tuple(one._replace(record=name(one.record)) for one in manifest.messages),
        tools_record=None if tools is None else name(tools),
        inputs=inputs,
    )


def record_names(manifest: TurnManifest) -> tuple[str, ...]:
    """Return all names of records that `with_record_names` would replace."""
    found: list[str] = []

    def noted(record: str) -> str:
        found.append(record)
        return record

    with_record_names(manifest, noted)
    return tuple(found)


_VERDICT: Final = tuple(one.name for one in fields(Verdict))
_verdict_values: Final = attrgetter(*_VERDICT)


def anchors_from(told: Mapping[str, Any]) -> Anchors:
    """The anchors of notes, from [index, hash] by origin."""
    return {origin: Anchor(*anchor) for origin, anchor in told.items()}


def without_words(manifest: TurnManifest) -> TurnManifest:
    """The manifest of a turn whose words were erased: what it cost, its hashes and its records."""
    return replace(
        manifest,
        verdicts=(),
        silent=(),
        by_origin={},
        revisions={},
        inputs={},
        anchors={},
        broken_by=None,
        break_reason=None,
        request={},
        erased=True,
    )


def without_block(manifest: TurnManifest, *, key: str, source: str) -> TurnManifest:
    """Return the manifest without the text of one block of facts, and without a scanned source."""
    inputs = dict(manifest.inputs)
    blocks = [[k, "" if k == key else text] for k, text in inputs.get("blocks", ())]
    sources = {name: text for name, text in inputs.get("sources", {}).items() if name != source}
    return replace(
        manifest,
        inputs={**inputs, "blocks": blocks, "sources": sources},
        erased_blocks=tuple(dict.fromkeys((*manifest.erased_blocks, key))),
    )


MOST_COUNT: Final = 2**31 - 1
"""What every database stores as a whole number."""

MOST_MODEL: Final = 200


def wrong_field(manifest: TurnManifest) -> str | None:
    """The name of the first field that has a value of another kind, None where all are right."""
    return next((name for name, is_right in _FIELDS if not is_right(getattr(manifest, name))), None)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_COUNT


def _is_model(value: Any) -> bool:
    return _is_text(value) and len(value) <= MOST_MODEL


def _maybe(is_right: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or is_right(value)


def _mapping_of(is_right: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, Mapping) and all(map(is_right, value.values()))


def _is_verdict(value: Any) -> bool:
    texts = (value.stage, value.item, value.reason)
    return (
        all(map(_is_text, texts))
        and isinstance(value.kept, bool)
        and _is_count(value.tokens)
        and _maybe(_is_text)(value.cause)
    )


def _is_silence(value: Any) -> bool:
    return all(map(_is_text, (value.book, value.reason, value.uids)))


_FIELDS: Final[tuple[tuple[str, Callable[[Any], bool]], ...]] = (
    *((name, _is_count) for name in ("tokens", "limit_tokens", "stable_tokens", "cut", "segment")),
    *((name, _is_text) for name in ("counter", "sha256", "sent_sha256")),
    ("model", _is_model),
    ("layout", lambda value: value in LAYOUTS),
    ("break_reason", _maybe(lambda value: value in REASONS)),
    ("broken_by", _maybe(_is_text)),
    ("shared_tokens", _maybe(_is_count)),
    ("erased", lambda value: isinstance(value, bool)),
    ("erased_blocks", lambda value: all(map(_is_text, value))),
    ("request", lambda value: isinstance(value, Mapping)),
    ("breakpoints", lambda value: all(map(_is_count, value))),
    ("by_origin", _mapping_of(_is_count)),
    ("revisions", _mapping_of(_is_text)),
    ("inputs", lambda value: isinstance(value, Mapping)),
    ("anchors", _mapping_of(lambda a: _is_count(a.at) and _is_text(a.digest))),
    ("verdicts", lambda value: all(map(_is_verdict, value))),
    ("silent", lambda value: all(map(_is_silence, value))),
    ("messages", lambda value: all(_is_count(message.tokens) for message in value)),
)
