"""The manifest of a turn: enough to rebuild its prompt byte for byte, and to say why it was so.

Every message is named by the record that holds it, so later edits of components, cards and lore
change no past turn. Entries of lore that nothing concerned are told in bulk: a book of 10,000 costs
a turn a few words. Manifests are made from drafts (`evennia_ai.history.turn.sending`).
One in a transcript may have been written by anybody: `wrong_field` says which value of it is not of
the kind that a turn writes; that it names records which are there is looked at in `transcripts`.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import Any, Final, NamedTuple

from evennia_ai.errors import ReplayError
from evennia_ai.history.projection import parts_from
from evennia_ai.history.records import canonical_json
from evennia_ai.lorebook.book import Unmatched
from evennia_ai.prompt.cache_account import REASONS
from evennia_ai.prompt.compiled import LAYOUTS
from evennia_ai.prompt.messages import Block, Message, ToolCall
from evennia_ai.prompt.placement import Anchor, Anchors
from evennia_ai.prompt.prompt import PromptFigures
from evennia_ai.prompt.trace import Verdict

FORMAT: Final = 3
# Format 1 had a verdict of its own for every entry; formats 1 and 2 held rendered texts themselves.
READ_FORMATS: Final = (1, 2, FORMAT)


class RecordedMessage(NamedTuple):
    """A message that is in the records; the record must show exactly what the prompt showed.

    As JSON it is the list of its fields.
    """

    record: str
    block: Block
    injected: bool
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedMessage:
    """A message that only the manifest has, as formats 1 and 2 kept it."""

    message: Message
    tokens: int

    @property
    def block(self) -> Block:
        return self.message.block


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnManifest(PromptFigures):
    """What one prompt consisted of."""

    messages: tuple[RecordedMessage | RenderedMessage, ...]
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
    erased: bool = False
    """Whether the words of its records, inputs and verdicts were erased on request."""

    @property
    def record_ids(self) -> tuple[str, ...]:
        """Ids of the records the prompt shows, in its order."""
        return tuple(m.record for m in self.messages if isinstance(m, RecordedMessage))

    def to_json(self) -> str:
        """The manifest as one canonical JSON text."""
        told: dict[str, Any] = {}
        for one in fields(self):
            value = getattr(self, one.name)
            told[one.name] = dict(value) if isinstance(value, Mapping) else value
        if any(isinstance(message, RenderedMessage) for message in self.messages):
            raise ReplayError(
                "a manifest that holds texts itself is read and never written;"
                " commit them as records"
            )
        told["verdicts"] = [_verdict_values(verdict) for verdict in self.verdicts]
        told["silent"] = [[one.book, one.reason, one.uids] for one in self.silent]
        return canonical_json({"format": FORMAT, **told})

    @classmethod
    def from_json(cls, text: str) -> "TurnManifest":
        """The manifest that `to_json` wrote; ReplayError for one of another format."""
        told = json.loads(text)
        found = told.pop("format", None)
        if found not in READ_FORMATS:
            known = " and ".join(map(str, READ_FORMATS))
            raise ReplayError(f"the manifest has format {found}, this version reads {known}")
        told["messages"] = tuple(_message_from(message) for message in told["messages"])
        told["verdicts"] = tuple(
            Verdict(**dict(zip(_VERDICT, values, strict=True))) for values in told["verdicts"]
        )
        told["silent"] = tuple(Unmatched(*fields) for fields in told.get("silent", ()))
        told["breakpoints"] = tuple(told["breakpoints"])
        told["anchors"] = anchors_from(told.get("anchors", {}))
        return cls(**told)


def number_in(manifest: TurnManifest, index: int) -> str:
    """What a message of the prompt is called on every screen: `#12` by its record."""
    message = manifest.messages[index]
    return f"#{message.record}" if isinstance(message, RecordedMessage) else str(index)


_VERDICT: Final = tuple(one.name for one in fields(Verdict))
_verdict_values: Final = attrgetter(*_VERDICT)


def anchors_from(told: Mapping[str, Any]) -> Anchors:
    """The anchors of notes, from [index, hash] by origin."""
    return {origin: Anchor(*anchor) for origin, anchor in told.items()}


def without_words(manifest: TurnManifest) -> TurnManifest:
    """The manifest of a turn whose words were erased: what it cost, its hashes and its records."""
    recorded = (m for m in manifest.messages if isinstance(m, RecordedMessage))
    return replace(
        manifest,
        messages=tuple(recorded),
        verdicts=(),
        silent=(),
        by_origin={},
        revisions={},
        inputs={},
        anchors={},
        broken_by=None,
        break_reason=None,
        erased=True,
    )


def without_block(manifest: TurnManifest, key: str, *, source: str) -> TurnManifest:
    """The manifest without the text of one block of facts, and of what lore could scan with it."""
    inputs = dict(manifest.inputs)
    blocks = [[k, "" if k == key else text] for k, text in inputs.get("blocks", ())]
    sources = {name: text for name, text in inputs.get("sources", {}).items() if name != source}
    return replace(manifest, inputs={**inputs, "blocks": blocks, "sources": sources})


def _message_from(told: Any) -> RecordedMessage | RenderedMessage:
    if isinstance(told, list):
        return RecordedMessage(*told)
    if "record" in told:
        return RecordedMessage(**{"injected": False, **told})
    given = dict(told)
    tokens, parts = given.pop("tokens"), given.pop("parts", ())
    given["tool_calls"] = tuple(ToolCall(**call) for call in told.get("tool_calls", ()))
    return RenderedMessage(message=Message(joined=parts_from(parts), **given), tokens=tokens)


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
    ("breakpoints", lambda value: all(map(_is_count, value))),
    ("by_origin", _mapping_of(_is_count)),
    ("revisions", _mapping_of(_is_text)),
    ("inputs", lambda value: isinstance(value, Mapping)),
    ("anchors", _mapping_of(lambda a: _is_count(a.at) and _is_text(a.digest))),
    ("verdicts", lambda value: all(map(_is_verdict, value))),
    ("silent", lambda value: all(map(_is_silence, value))),
    ("messages", lambda value: all(_is_count(message.tokens) for message in value)),
)
