"""The manifest of a turn: what is stored to rebuild its prompt byte for byte and explain it.

Each message is named by the record that holds it, so later edits of components, cards and lore do
not change past turns. Lore entries without an individual verdict are stored in groups, so a book of
10,000 entries adds only a few words. Manifests are made from drafts
(`evennia_ai.engine.history.turn.sending`). The record that ends a turn holds the hash of its
manifest (`evennia_ai.engine.history.turn.seals`). The manifest in a transcript may have been
written by anyone. So `wrong_field` names the first value that no turn would write, and
`transcripts` checks that the named records exist.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from types import GenericAlias
from typing import Annotated, Any, Final, NamedTuple, get_type_hints

from pydantic import Field, GetCoreSchemaHandler, TypeAdapter, ValidationError
from pydantic_core import CoreSchema
from pydantic_core.core_schema import no_info_after_validator_function

from evennia_ai.engine.errors import ReplayError
from evennia_ai.engine.foreign.fields import Count
from evennia_ai.engine.history.records import canonical_json, make_storable
from evennia_ai.engine.lorebook.book import Unmatched
from evennia_ai.engine.prompt.messages import Block
from evennia_ai.engine.prompt.placement import Anchor, Anchors
from evennia_ai.engine.prompt.prompt import PromptFigures
from evennia_ai.engine.prompt.trace import Verdict

FORMAT: Final = 4
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
    """A message of a past prompt: the record with its text, and how the prompt showed it.

    In JSON it is the list of its fields.
    """

    record: str
    block: Block
    injected: bool
    tokens: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnManifest(PromptFigures):
    """The stored description of everything that the prompt of one turn contained."""

    messages: tuple[RecordedMessage, ...]
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
    def record_ids(self) -> tuple[str, ...]:
        """Return the ids of the records from which the prompt's messages were made, in order."""
        return tuple(message.record for message in self.messages)

    @property
    def sent_ids(self) -> tuple[str, ...]:
        """Return the ids of all sent records: those of the messages and of the list of tools."""
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
        """Parse a manifest that `to_json` wrote.

        Raises:
            ReplayError: The format is not known.
        """
        return cls.from_plain(json.loads(text))

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
    return f"#{manifest.messages[index].record}"


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
        messages=tuple([RecordedMessage(name(one[0]), *one[1:]) for one in manifest.messages]),
        tools_record=None if tools is None else name(tools),
        inputs=inputs,
    )


def record_names(manifest: TurnManifest) -> tuple[str, ...]:
    """Return all names of records in a manifest: their ids, or their places."""
    return (*manifest.sent_ids, *input_record_names(manifest))


def input_record_names(manifest: TurnManifest) -> tuple[str, ...]:
    """Return the names of records in the inputs of a manifest, which may include unsent ones."""
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
    return tuple([name for name in found if name])


_VERDICT: Final = tuple(one.name for one in fields(Verdict))
_verdict_values: Final = attrgetter(*_VERDICT)


def anchors_from(stored: Mapping[str, Any]) -> Anchors:
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
        _READER.validate_json(text, strict=True)
    except ValidationError as error:
        return str(error.errors(include_url=False)[0]["loc"][0])
    return None


_READER: Final = TypeAdapter(TurnManifest)
