"""The manifest of a turn: enough to rebuild its prompt byte for byte, and to say why it was so.

A message that stands in the records is named by its id; every other one is kept with its exact
rendered text, so later edits of components, cards and lore change no past turn. Entries of lore
that nothing concerned are told in bulk: a book of 10,000 costs a turn a few words.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from evennia_ai.history.errors import ReplayError
from evennia_ai.history.projection import message_of
from evennia_ai.history.records import Record, canonical_json
from evennia_ai.lorebook.silence import Silence
from evennia_ai.prompt.breakpoints import CacheAccount
from evennia_ai.prompt.expansion import Layout
from evennia_ai.prompt.messages import Block, Message, Part, Role, ToolCall
from evennia_ai.prompt.prompt import Prompt, digest
from evennia_ai.prompt.report import Report, reported
from evennia_ai.prompt.trace import Verdict

FORMAT: Final = 2
# Format 1 had a verdict of its own for every entry.
READ_FORMATS: Final = (1, FORMAT)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedMessage:
    """A message that is in the records; the record must show exactly what the prompt showed."""

    record: str
    block: Block
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedMessage:
    """A message that only the prompt has, with its exact text."""

    role: Role
    content: str
    block: Block
    tokens: int
    name: str | None = None
    injected: bool = False
    parts: tuple[Part, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnManifest:
    """What one prompt consisted of.

    `silent` are the entries of lore without a verdict of their own, by the reason they share.
    `revisions` says which version of each card, book and component took part, by origin;
    `counter` names the token counter; `sha256` is the prompt's own, `sent_sha256` that of the
    messages as the provider's adapter sent them. `shared_tokens` is what the prompt had in common
    with the conversation's prompt before, None where there was none.
    """

    messages: tuple[RecordedMessage | RenderedMessage, ...]
    verdicts: tuple[Verdict, ...]
    silent: tuple[Silence, ...] = ()
    tokens: int
    limit_tokens: int
    by_origin: Mapping[str, int]
    breakpoints: tuple[int, ...]
    stable_tokens: int
    cut: int
    layout: Layout
    counter: str
    sha256: str
    shared_tokens: int | None = None
    broken_by: str | None = None
    model: str = ""
    sent_sha256: str = ""
    revisions: Mapping[str, str] = field(default_factory=dict)

    @property
    def record_ids(self) -> tuple[str, ...]:
        """Ids of the records the prompt shows, in its order."""
        return tuple(m.record for m in self.messages if isinstance(m, RecordedMessage))

    def to_json(self) -> str:
        """The manifest as one canonical JSON text."""
        told = {name: getattr(self, name) for name in _PLAIN}
        told["by_origin"] = dict(self.by_origin)
        told["revisions"] = dict(self.revisions)
        told["messages"] = [_told(message) for message in self.messages]
        told["verdicts"] = [list(_verdict_fields(verdict)) for verdict in self.verdicts]
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
        told["verdicts"] = tuple(_verdict_from(fields) for fields in told["verdicts"])
        told["silent"] = tuple(Silence(*fields) for fields in told.get("silent", ()))
        told["breakpoints"] = tuple(told["breakpoints"])
        return cls(**told)


_PLAIN: Final = (
    "tokens",
    "limit_tokens",
    "breakpoints",
    "stable_tokens",
    "cut",
    "layout",
    "counter",
    "sha256",
    "shared_tokens",
    "broken_by",
    "model",
    "sent_sha256",
)


_RENDERED: Final = ("role", "content", "block", "tokens", "name", "injected", "tool_call_id")


def manifest_of(
    prompt: Prompt,
    *,
    model: str = "",
    revisions: Mapping[str, str] | None = None,
    account: CacheAccount | None = None,
    sent_sha256: str = "",
    silent: Sequence[Silence] = (),
) -> TurnManifest:
    """The manifest of a prompt that is about to be sent to `model`.

    A message with a `record` is trusted to say what the record says; an adapter that changes a
    message's text takes its record away. `revisions` adds cards and books by origin; `account`
    is what the prompt shares with the one before; `silent` is what its activation of lore tells in
    bulk.
    """
    return TurnManifest(
        messages=tuple(_kept(message, prompt) for message in prompt.messages),
        verdicts=prompt.told,
        silent=tuple(silent),
        tokens=prompt.tokens,
        limit_tokens=prompt.limit_tokens,
        by_origin=prompt.by_origin,
        breakpoints=prompt.breakpoints,
        stable_tokens=prompt.stable_tokens,
        cut=prompt.cut,
        layout=prompt.layout,
        counter=prompt.counter.name,
        sha256=prompt.sha256,
        shared_tokens=account.shared_tokens if account else None,
        broken_by=account.broken_by if account else None,
        model=model,
        sent_sha256=sent_sha256,
        revisions={**_revisions(prompt), **(revisions or {})},
    )


def messages_of(manifest: TurnManifest, records: Iterable[Record]) -> tuple[Message, ...]:
    """The messages of a past turn, the same bytes as then.

    ReplayError: a record is missing, or the result does not have the hash of the prompt that was
    sent.
    """
    by_id = {record.id: record for record in records}
    messages = tuple(_rebuilt(message, by_id) for message in manifest.messages)
    found = digest(messages)
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
            reported(message, kept.tokens)
            for message, kept in zip(rebuilt, manifest.messages, strict=True)
        ),
        verdicts=_all_verdicts(manifest),
        tokens=manifest.tokens,
        limit=manifest.limit_tokens,
        by_origin=manifest.by_origin,
        breakpoints=manifest.breakpoints,
        stable_tokens=manifest.stable_tokens,
        sha256=manifest.sha256,
        layout=manifest.layout,
        counter=manifest.counter,
        shared_tokens=manifest.shared_tokens,
        broken_by=manifest.broken_by,
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


def _kept(message: Message, prompt: Prompt) -> RecordedMessage | RenderedMessage:
    tokens = message.tokens(prompt.counter)
    if message.record is not None:
        return RecordedMessage(record=message.record, block=message.block, tokens=tokens)
    return RenderedMessage(
        role=message.role,
        content=message.content,
        block=message.block,
        tokens=tokens,
        name=message.name,
        injected=message.injected,
        parts=message.parts,
        tool_calls=message.tool_calls,
        tool_call_id=message.tool_call_id,
    )


def _revisions(prompt: Prompt) -> dict[str, str]:
    parts = (part for message in prompt.messages for part in message.parts)
    return {part.origin: str(part.revision) for part in parts if part.revision}


def _rebuilt(message: RecordedMessage | RenderedMessage, by_id: Mapping[str, Record]) -> Message:
    if isinstance(message, RenderedMessage):
        return Message(
            role=message.role,
            content=message.content,
            name=message.name,
            block=message.block,
            injected=message.injected,
            joined=message.parts,
            tool_calls=message.tool_calls,
            tool_call_id=message.tool_call_id,
        )
    record = by_id.get(message.record)
    said = message_of(record) if record is not None else None
    if said is None:
        raise ReplayError(f"record {message.record} of the turn is not there")
    if message.block == "history":
        return said
    return replace(said, block=message.block, origin=message.block)


def _told(message: RecordedMessage | RenderedMessage) -> dict[str, Any]:
    """The message as JSON values; what is empty is left out."""
    if isinstance(message, RecordedMessage):
        return {"record": message.record, "block": message.block, "tokens": message.tokens}
    told: dict[str, Any] = {name: getattr(message, name) for name in _RENDERED}
    told["parts"] = [[p.origin, p.start, p.end, p.revision] for p in message.parts]
    told["tool_calls"] = [asdict(call) for call in message.tool_calls]
    return {name: value for name, value in told.items() if value not in (None, False, [])}


def _message_from(told: Mapping[str, Any]) -> RecordedMessage | RenderedMessage:
    if "record" in told:
        return RecordedMessage(**told)
    fields = dict(told)
    fields["parts"] = tuple(
        Part(origin=origin, start=start, end=end, revision=revision)
        for origin, start, end, revision in told.get("parts", ())
    )
    fields["tool_calls"] = tuple(ToolCall(**call) for call in told.get("tool_calls", ()))
    return RenderedMessage(**fields)


def _verdict_fields(verdict: Verdict) -> tuple[object, ...]:
    return (
        verdict.stage,
        verdict.item,
        verdict.kept,
        verdict.reason,
        verdict.tokens,
        verdict.cause,
    )


def _verdict_from(fields: list[Any]) -> Verdict:
    stage, item, kept, reason, tokens, cause = fields
    return Verdict(stage=stage, item=item, kept=kept, reason=reason, tokens=tokens, cause=cause)
