"""The manifest of a turn: what is stored to rebuild its prompt byte for byte and explain it.

Each message is named by the record that holds it, so later edits of components, cards and lore do
not change past turns. The messages are stored as columns, and the whole is compressed. Every row
can be read alone, so a row that was lost or erased makes no other turn unreadable.

Lore entries without an individual verdict are stored in groups, so a book of 10,000 entries adds
only a few words. Manifests are made from drafts (`evennia_ai.engine.history.turn.sending`). The
record that ends a turn holds the hash of its manifest (`evennia_ai.engine.history.turn.seals`). The
manifest in a transcript may have been written by anyone. So `wrong_field` names the first value
that no turn would write, and `transcripts` checks that the named records exist.
"""

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from itertools import accumulate, chain, groupby, pairwise, repeat
from operator import attrgetter
from types import GenericAlias
from typing import Annotated, Any, Final, NamedTuple, get_type_hints

from pydantic import Field, GetCoreSchemaHandler, TypeAdapter, ValidationError
from pydantic_core import CoreSchema
from pydantic_core.core_schema import no_info_after_validator_function

from evennia_ai.engine.errors import ReplayError
from evennia_ai.engine.foreign.fields import Count
from evennia_ai.engine.history.records import canonical_json, make_storable
from evennia_ai.engine.history.turn.manifest_words import MANIFEST_WORDS
from evennia_ai.engine.lorebook.book import Unmatched
from evennia_ai.engine.prompt.messages import Block
from evennia_ai.engine.prompt.placement import Anchor, Anchors
from evennia_ai.engine.prompt.prompt import PromptFigures
from evennia_ai.engine.prompt.trace import Verdict

FORMAT: Final = 5
MOST_MODEL: Final = 200
"""How many characters the name of a model may have at most."""


class _AsRow:
    """A pydantic hook that reads a dataclass from the list of its fields."""

    def __get_pydantic_core_schema__(
        self, source: type[Verdict | Unmatched], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        hints = get_type_hints(source, include_extras=True)
        row = GenericAlias(tuple, tuple(hints[one.name] for one in fields(source)))
        return no_info_after_validator_function(
            lambda values: source(*values), handler.generate_schema(row)
        )


class RecordedMessage(NamedTuple):
    """A message of a past prompt: the record with its text, and how the prompt showed it."""

    record: str
    block: Block
    injected: bool
    tokens: Count


class Run(NamedTuple):
    """Successive messages of a past prompt that it showed in the same way.

    In JSON it is the list of its fields.
    """

    block: Block
    injected: bool
    messages: Annotated[int, Field(ge=1)]
    """The number of messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedMessages:
    """The messages of a past prompt, as columns with one value for each message.

    A prompt has hundreds of messages, most of which differ only in the record and the tokens.
    """

    records: tuple[str, ...]
    runs: tuple[Run, ...]
    """How the prompt showed the messages. Neighbours that it showed alike are one run."""
    tokens: tuple[Count, ...]

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[RecordedMessage]:
        ways = (repeat((run.block, run.injected), run.messages) for run in self.runs)
        shown = chain.from_iterable(ways)
        for record, way, tokens in zip(self.records, shown, self.tokens, strict=True):
            yield RecordedMessage(record, *way, tokens)


NO_MESSAGES: Final = RecordedMessages(records=(), runs=(), tokens=())


def runs_of(ways: Iterable[tuple[Block, bool]]) -> tuple[Run, ...]:
    """Return the runs of messages, given the block of each and whether it was injected."""
    return tuple(Run(*way, len([*alike])) for way, alike in groupby(ways))


def _messages_from(columns: Mapping[str, Any]) -> RecordedMessages:
    """Parse the columns of messages.

    Raises:
        ValueError: The columns are not as a turn writes them.
    """
    runs = tuple(Run(*run) for run in columns["runs"])
    made = RecordedMessages(
        records=tuple(columns["records"]), runs=runs, tokens=tuple(columns["tokens"])
    )
    if not len(made.records) == len(made.tokens) == sum(run.messages for run in runs):
        raise ValueError("the columns of the messages have different lengths")
    if any(one[:2] == next_[:2] for one, next_ in pairwise(runs)):
        raise ValueError("two neighbouring runs of messages are of one kind; join them")
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnManifest(PromptFigures):
    """The stored description of everything that the prompt of one turn contained."""

    messages: RecordedMessages
    verdicts: tuple[Annotated[Verdict, _AsRow()], ...]
    silent: tuple[Annotated[Unmatched, _AsRow()], ...] = ()
    """Lore entries without a verdict of their own, grouped by reason."""
    cut: Count
    model: Annotated[str, Field(max_length=MOST_MODEL)] = ""
    sent_sha256: str = ""
    """The hash of the messages in the form that was sent to the provider."""
    revisions: Mapping[str, str] = field(default_factory=dict)
    """The version of each card, book and component in the prompt, by its origin."""
    segment: Count = 1
    """The number of the part of the conversation to which the turn belongs."""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    """The small values from which the prompt was made, as JSON."""
    anchors: Anchors = field(default_factory=dict)
    """The places of anchored author's notes in the prompt."""
    tools_record: str | None = None
    """The id of the record with the list of tools that was sent with the messages."""
    request: Mapping[str, Any] = field(default_factory=dict)
    """Other parameters of the request to the model, without secrets, as JSON."""
    erased: bool = False
    """True if the words of the turn's records, inputs and verdicts were erased on request."""
    erased_blocks: tuple[str, ...] = ()
    """The keys of blocks with facts whose text was erased on request."""

    @property
    def has_erasures(self) -> bool:
        """True if words of the turn were erased on request."""
        return self.erased or bool(self.erased_blocks)

    @property
    def record_ids(self) -> tuple[str, ...]:
        """Return the ids of the records from which the prompt's messages were made, in order."""
        return self.messages.records

    @property
    def sent_ids(self) -> tuple[str, ...]:
        """Return the ids of all sent records: those of the messages and of the list of tools."""
        return (*self.record_ids, *(() if self.tools_record is None else (self.tools_record,)))

    def to_plain(self) -> dict[str, Any]:
        """Return the manifest as JSON values."""
        plain = dict(zip(_FIELDS, _field_values(self), strict=True))
        plain["format"] = FORMAT
        for name in _MAPPINGS:
            value = plain[name]
            plain[name] = dict(value) if isinstance(value, Mapping) else value
        messages = self.messages
        plain["messages"] = {
            "records": messages.records,
            "runs": messages.runs,
            "tokens": messages.tokens,
        }
        plain["verdicts"] = [_verdict_values(verdict) for verdict in self.verdicts]
        plain["silent"] = [[one.book, one.reason, one.uids] for one in self.silent]
        return plain

    def to_json(self) -> str:
        """Return the manifest as the canonical JSON text in the row of its turn.

        The records are the steps from one id to the next, which compress well.
        """
        plain = self.to_plain()
        ids = [*map(int, self.messages.records)]
        steps = [later - earlier for earlier, later in pairwise([0, *ids])]
        plain["messages"]["records"] = steps
        return canonical_json(plain)

    @classmethod
    def from_json(cls, text: str) -> "TurnManifest":
        """Parse a manifest that `to_json` wrote.

        Raises:
            ReplayError: The format is not known.
        """
        plain = json.loads(text)
        columns = plain["messages"]
        ids = [*map(str, accumulate(columns["records"]))]
        return cls.from_plain({**plain, "messages": {**columns, "records": ids}})

    def to_row(self) -> bytes:
        """Return the manifest as the row of its turn stores it: compressed JSON."""
        packer = zlib.compressobj(_LEVEL, zdict=MANIFEST_WORDS)
        return packer.compress(self.to_json().encode()) + packer.flush()

    @classmethod
    def from_row(cls, row: bytes) -> "TurnManifest":
        """Parse a manifest that `to_row` wrote.

        Raises:
            ReplayError: It cannot be read.
        """
        try:
            return cls.from_json(text_in_row(row))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ReplayError("its manifest cannot be read") from error

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> "TurnManifest":
        """Parse a manifest that `to_plain` wrote.

        Raises:
            ReplayError: The format is not known.
        """
        values = dict(plain)
        found = values.pop("format", None)
        if found != FORMAT:
            raise ReplayError(f"the manifest has format {found}, this version reads {FORMAT}")
        values["messages"] = _messages_from(values["messages"])
        values["verdicts"] = tuple(
            Verdict(**dict(zip(_VERDICT, one, strict=True))) for one in values["verdicts"]
        )
        values["silent"] = tuple(Unmatched(*one) for one in values["silent"])
        values["breakpoints"] = tuple(values["breakpoints"])
        values["erased_blocks"] = tuple(values["erased_blocks"])
        values["anchors"] = _anchors_from(values["anchors"])
        return cls(**values)


def record_ids_in_row(row: bytes) -> tuple[str, ...]:
    """Return the ids of the records of a turn's messages, in order, from the row of the turn.

    It is faster than to parse the whole manifest.

    Raises:
        ReplayError: The row cannot be read.
    """
    return tuple(map(str, accumulate(json.loads(text_in_row(row))["messages"]["records"])))


_LEVEL: Final = 4
"""How hard zlib tries. Higher levels take longer and save little here."""


def text_in_row(row: bytes) -> str:
    """Return the JSON text of a manifest from the row of its turn.

    Raises:
        ReplayError: The row has no compressed text, or something after it.
    """
    reader = zlib.decompressobj(zdict=MANIFEST_WORDS)
    try:
        text = reader.decompress(row).decode()
    except (ValueError, zlib.error) as error:
        raise ReplayError("its manifest cannot be read") from error
    if not reader.eof or reader.unused_data:
        raise ReplayError("its manifest cannot be read")
    return text


def request_in_words(manifest: TurnManifest) -> str:
    """Render the parameters of a request, for example "profile default, temperature 0.7".

    The result is "" if the words of the turn were erased.
    """
    # The JSON body of a request contains further parameters, which are shown like the others.
    request = dict(manifest.request)
    values = {**request, **request.pop("body", {})}
    values.pop("body", None)
    return ", ".join(
        f"{name} {value if isinstance(value, str) else canonical_json(value)}"
        for name, value in values.items()
    )


def number_in(manifest: TurnManifest, index: int) -> str:
    """Return the name that screens show for a message, for example `#12`, from its record."""
    return f"#{manifest.messages.records[index]}"


def with_record_names(manifest: TurnManifest, name: Callable[[str], str]) -> TurnManifest:
    """Return a copy of the manifest, with `name` applied to each record id in it.

    The game names records by their ids. Transcripts and seals name records by their places, which
    are the same in every database.
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
        for several in ("left_out", "joined"):
            if several in held:
                held[several] = [name(one) for one in held[several]]
        inputs["history"] = held
    tools = manifest.tools_record
    return replace(
        manifest,
        messages=replace(manifest.messages, records=tuple(map(name, manifest.messages.records))),
        tools_record=None if tools is None else name(tools),
        inputs=inputs,
    )


def record_names(manifest: TurnManifest) -> tuple[str, ...]:
    """Return all names of records in a manifest: their ids, or their places.

    The inputs may name records that were not sent.
    """
    inputs = manifest.inputs
    history = inputs.get("history", {"first": None, "last": None, "left_out": ()})
    found = (
        inputs.get("event"),
        *inputs.get("tools", ()),
        history["first"],
        history["last"],
        *history["left_out"],
        *history.get("joined", ()),
    )
    return (*manifest.sent_ids, *[name for name in found if name])


_FIELDS: Final = tuple(one.name for one in fields(TurnManifest))
_field_values: Final = attrgetter(*_FIELDS)
_MAPPINGS: Final = ("by_origin", "revisions", "inputs", "anchors", "request")
_VERDICT: Final = tuple(one.name for one in fields(Verdict))
_verdict_values: Final = attrgetter(*_VERDICT)


def _anchors_from(stored: Mapping[str, Any]) -> Anchors:
    """Return the places of anchored notes from stored lists of [index, hash], by origin."""
    return {origin: Anchor(*anchor) for origin, anchor in stored.items()}


def without_words(manifest: TurnManifest) -> TurnManifest:
    """Return the manifest without words: only token counts, hashes and record ids remain."""
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
    """Return the manifest without the text of one block of facts and of one scanned source."""
    inputs = dict(manifest.inputs)
    blocks = [[k, "" if k == key else text] for k, text in inputs.get("blocks", ())]
    sources = {name: text for name, text in inputs.get("sources", {}).items() if name != source}
    return replace(
        manifest,
        inputs={**inputs, "blocks": blocks, "sources": sources},
        erased_blocks=tuple(dict.fromkeys((*manifest.erased_blocks, key))),
    )


def wrong_field(manifest: TurnManifest) -> str | None:
    """Return the name of the first field with a value that no turn would write, or None."""
    # Pydantic refuses lone surrogates, which a turn may have recorded, so they are replaced first.
    text = make_storable(json.dumps(manifest.to_plain(), ensure_ascii=False))
    try:
        _reader().validate_json(text, strict=True)
    except ValidationError as error:
        return str(error.errors(include_url=False)[0]["loc"][0])
    return None


@cache
def _reader() -> TypeAdapter[TurnManifest]:
    return TypeAdapter(TurnManifest)
