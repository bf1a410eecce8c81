"""Read a scenario from the values of its file, without guessing or ignoring anything.

Unknown keys and wrong types are errors that name their path. A feature that this version lacks is
an error that names the feature. Relative paths start from the folder of the scenario's file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import MAXYEAR, UTC, datetime, tzinfo
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import Field, PlainValidator

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import check_plain, read_document
from evennia_ai.engine.foreign.fields import Must
from evennia_ai.engine.lorebook.book import Lorebook
from evennia_ai.engine.lorebook.decorators import NO_ICONS
from evennia_ai.engine.lorebook.rules import ActivationRules, read_rules
from evennia_ai.engine.prompt.assembly.rules import AssemblyRules, read_assembly
from evennia_ai.engine.prompt.blocks import DynamicBlock
from evennia_ai.engine.prompt.components import (
    ALL_GRANTS,
    ALLOWS,
    NO_GRANTS,
    PLUGGABLE_IDS,
    Grants,
    PromptComponent,
)
from evennia_ai.engine.prompt.conditions import Fact, Facts
from evennia_ai.engine.prompt.fragments import Layout
from evennia_ai.engine.prompt.messages import Message, Role, event_message, said
from evennia_ai.engine.prompt.notes import AuthorsNote
from evennia_ai.engine.prompt.persistent_texts import BlocksMode
from evennia_ai.engine.prompt.tokens import TokenCounter
from evennia_ai.formats.cards.card import Card
from evennia_ai.formats.cards.components import DEFAULT_DEPTH
from evennia_ai.formats.presets.mapping import preset_assembly, preset_components
from evennia_ai.formats.presets.preset import Preset
from evennia_ai.formats.scenario.parts import Files, NoteRow, read_components
from evennia_ai.formats.scenario.tables import (
    KIND,
    MAX_NUMBER,
    Depth,
    Rows,
    Whole,
    list_items,
    one_of,
    read_row,
    read_rows,
    text_at,
    whole_from,
    wrong_value_error,
)
from evennia_ai.formats.scenario.tokenizers import counter_named


def _fact(path: str, value: object) -> Fact:
    if isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, list) and all(isinstance(text, str) for text in value):
        return tuple(value)
    raise wrong_value_error(path, value, "text, a number, true or false, or a list of texts")


def _facts(given: Any) -> Facts:
    """Read a scenario's facts, against which conditions of lore entries are tested."""
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise wrong_value_error("settings.facts", given, "a mapping of names")
    return {name: _fact(f"settings.facts.{name}", value) for name, value in given.items()}


def _lore(given: Any) -> ActivationRules:
    if given is not None and not isinstance(given, Mapping):
        raise wrong_value_error("settings.lore", given, "a mapping")
    return read_rules(dict(given or {}))


def _assembly(given: Any, lore: ActivationRules, preset: Preset | None) -> AssemblyRules:
    if given is not None and not isinstance(given, Mapping):
        raise wrong_value_error("settings.assembly", given, "a mapping")
    own = preset_assembly(preset) if preset is not None else None
    return read_assembly(given or {}, lore_rules=lore.rules, file_rules=own)


def _is_moment(text: str) -> bool:
    """True if the text is an ISO 8601 time whose year allows a conversion to any time zone.

    A conversion could leave the range of years in the first and the last year.
    """
    try:
        return not text or 1 < datetime.fromisoformat(text).year < MAXYEAR
    except ValueError:
        return False


def _zone(text: str) -> tzinfo:
    """Return the time zone with this name, or with an offset such as +05:30.

    Raises:
        ValueError, OSError, KeyError: there is no such zone.
    """
    if text == "UTC":  # UTC must work even if the system has no time zone database
        return UTC
    if text[:1] in ("+", "-"):
        zone = datetime.fromisoformat(f"2000-01-01T00:00{text}").tzinfo
        assert zone is not None  # the text ends with an offset, so a zone was parsed
        return zone
    return ZoneInfo(text)


def _is_zone(text: str) -> bool:
    try:
        return bool(_zone(text))
    except (ValueError, OSError, KeyError):
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The values under the key `settings` of a scenario."""

    user: str | None = None
    user_icon: str | None = None
    layout: Layout = "cache"
    blocks: BlocksMode = "latest"
    context_tokens: Annotated[
        int, whole_from(1), Must(f"a whole number from 1 to {MAX_NUMBER}")
    ] = 8192
    reply_tokens: Whole = 512
    tokenizer: str = "estimate"
    seed: Annotated[
        int, whole_from(-MAX_NUMBER), Must(f"a whole number from -{MAX_NUMBER} to {MAX_NUMBER}")
    ] = 1
    greeting: bool = False
    greeting_index: Whole = 0
    group: bool = False
    language: str = "en"
    system_prompt: str = ""
    post_history_instructions: str = ""
    post_history_depth: Depth = DEFAULT_DEPTH
    card_system_prompt: str = ""
    card_trust: Literal["author", "imported"] = "author"
    card_grants: Rows = None
    now: Annotated[str, Must("a date and time such as 2026-11-28T15:04:05", _is_moment)] = ""
    zone: Annotated[str, Must("a time zone such as UTC, Europe/Oslo or +05:30", _is_zone)] = "UTC"
    """The time zone of the scenario.

    If `now` has no offset, it is a time in this zone; else it is converted to this zone.
    """
    facts: Annotated[Facts, PlainValidator(_facts), Must("a mapping of names")] = field(
        default_factory=dict
    )
    lore: Annotated[ActivationRules, PlainValidator(_lore), Must("a mapping")] = field(
        default_factory=ActivationRules
    )
    assembly: Annotated[Any, Must("a mapping")] = None
    """The raw assembly rules.

    They can be parsed only after `lore`; the parsed rules are in `Scenario.assembly`.
    """

    @property
    def limit_tokens(self) -> int:
        """The token limit of the prompt: the context size minus the tokens for the reply."""
        return self.context_tokens - self.reply_tokens

    @property
    def moment(self) -> str:
        """The time that macros use, in ISO 8601 with an offset; "" without a clock."""
        if not self.now:
            return ""
        now, zone = datetime.fromisoformat(self.now), _zone(self.zone)
        now = now.replace(tzinfo=zone) if now.tzinfo is None else now.astimezone(zone)
        return now.isoformat()

    @property
    def counter(self) -> TokenCounter:
        """The token counter that the setting `tokenizer` names."""
        return counter_named(self.tokenizer)

    @property
    def grants(self) -> Grants:
        """The card's grants: those in the settings, else all if the author vouches for the card."""
        if self.card_grants is None:
            return ALL_GRANTS if self.card_trust == "author" else NO_GRANTS
        rows = list_items(self.card_grants, path="settings.card_grants")
        return frozenset(one_of(path, text_at(path, row), tuple(ALLOWS)) for path, row in rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Persona:
    """The persona of a scenario's user, who speaks with the character."""

    name: str | None
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnText:
    """The input of one turn of a scenario: history, event to answer, and dynamic context."""

    history: tuple[Message, ...]
    event: Message | None
    blocks: tuple[DynamicBlock, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A scenario after reading and validation."""

    settings: Settings
    assembly: AssemblyRules
    preset: Preset | None
    card: Card | None
    books: tuple[Lorebook, ...]
    components: tuple[PromptComponent, ...]
    notes: tuple[AuthorsNote, ...]
    persona: Persona | None
    turns: tuple[TurnText, ...]
    several: bool
    """True if the file has the key `turns`, so that its result is a list."""
    notices: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """The top-level keys of a scenario file, with raw values."""

    card: Annotated[Any, Must("a path to a card's file, or the card itself")] = None
    lorebooks: Rows = None
    components: Rows = None
    notes: Rows = None
    dynamic_context: Rows = None
    persona: Annotated[Any, Must("a mapping")] = None
    history: Rows = None
    event: Annotated[Any, Must("a mapping")] = None
    settings: Annotated[Any, Must("a mapping")] = None
    turns: Rows = None
    preset: Annotated[Any, Must("a path to a preset's file, or the preset itself")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _NoteRow(NoteRow):
    key: Annotated[
        str,
        Field(pattern=r"^([a-z][a-z0-9_]{0,39})?$"),
        Must("a small letter, then small letters, digits or _, at most 40"),
    ] = ""
    scanned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _PersonaRow:
    name: str | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _TurnRow:
    history: Rows = None
    event: Annotated[Any, Must("a mapping")] = None
    dynamic_context: Rows = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _MessageRow:
    role: Role
    name: str | None = None
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _EventRow:
    name: str | None = None
    content: str


def read_scenario(data: object, *, folder: Path | None = None) -> Scenario:
    """Read a scenario from the values of its file.

    Args:
        folder: the folder that relative paths start from; by default the current folder.

    Raises:
        FormatError: the scenario, its card or a book cannot be read.
    """
    check_plain(data, kind=KIND, where="the scenario")
    file = read_row(_File, data, path="")
    settings = _read_settings(file.settings)
    files = Files(
        folder or Path.cwd(),
        card_grants=settings.grants,
        post_history_depth=settings.post_history_depth,
        absent={} if settings.lore.user_icon is not None else NO_ICONS,
    )
    preset = None if file.preset is None else files.preset(file.preset)
    card = None if file.card is None else files.card(file.card)
    lorebooks = list_items(file.lorebooks, path="lorebooks")
    books = files.books(card, lorebooks, rules=settings.lore.rules)
    if settings.greeting and card is None:
        files.notices.append(
            "settings.greeting: there is no card with a greeting; add one, or remove the setting"
        )
    return Scenario(
        settings=settings,
        assembly=_assembly(settings.assembly, settings.lore, preset),
        preset=preset,
        card=card,
        books=books,
        components=read_components(
            list_items(file.components, path="components"), placed=_ids_by_key(preset)
        ),
        notes=_read_notes(list_items(file.notes, path="notes")),
        persona=_read_persona(file.persona),
        turns=_read_turns(file),
        several=file.turns is not None,
        notices=tuple(files.notices),
    )


def _ids_by_key(preset: Preset | None) -> Mapping[str, int]:
    """Return a dict of reserved component IDs by component key.

    The keys are the engine's and, if there is a preset, those of its components.
    """
    if preset is None:
        return PLUGGABLE_IDS
    made = preset_components(preset, grants=ALL_GRANTS)
    return {**PLUGGABLE_IDS, **{one.key: one.id for one in made if not one.is_static}}


def read_scenario_file(path: Path) -> Scenario:
    """Read a scenario from a YAML or JSON file; relative paths start from the folder of the file.

    Raises:
        FormatError: the scenario, its card or a book cannot be read.
    """
    data = read_document(path, kind=KIND)
    return read_scenario({} if data is None else data, folder=path.parent)


def _read_settings(given: Any) -> Settings:
    read = read_row(Settings, {} if given is None else given, path="settings")
    if read.reply_tokens >= read.context_tokens:
        raise FormatError(
            KIND,
            f"settings: reply_tokens {read.reply_tokens} leaves nothing of context_tokens"
            f" {read.context_tokens}; it must be less",
        )
    counter_named(read.tokenizer)  # an unknown name raises its error here, not in the first turn
    lore = replace(read.lore, greeting_index=read.greeting_index, user_icon=read.user_icon or None)
    return replace(read, user=read.user or None, lore=lore)


def _read_notes(rows: Sequence[tuple[str, Any]]) -> tuple[AuthorsNote, ...]:
    notes = tuple(
        AuthorsNote(**asdict(read_row(_NoteRow, row, path=path)), trust="author")
        for path, row in rows
    )
    keys = [note.key for note in notes]
    for (path, _), key in zip(rows, keys, strict=True):
        if key and keys.count(key) > 1:
            raise FormatError(KIND, f"{path}.key: {key!r} is the key of another note, too")
    return notes


def _read_persona(given: Any) -> Persona | None:
    if given is None:
        return None
    read = read_row(_PersonaRow, given, path="persona")
    return Persona(name=read.name or None, description=read.description or "")


def _read_turns(file: _File) -> tuple[TurnText, ...]:
    blocks = _read_blocks(file.dynamic_context, path="dynamic_context")
    if file.turns is None:
        return (_read_turn(file.history, file.event, blocks, path=""),)
    for key in ("history", "event"):
        if getattr(file, key) is not None:
            raise FormatError(
                KIND, f"{key}: a scenario with turns has this key in each turn; move it there"
            )
    rows = [
        (path, read_row(_TurnRow, row, path=path))
        for path, row in list_items(file.turns, path="turns")
    ]
    return tuple(
        _read_turn(
            row.history,
            row.event,
            blocks
            if row.dynamic_context is None
            else _read_blocks(row.dynamic_context, path=f"{path}.dynamic_context"),
            path=f"{path}.",
        )
        for path, row in rows
    )


def _read_blocks(given: list[Any] | None, *, path: str) -> tuple[DynamicBlock, ...]:
    return tuple(
        DynamicBlock(key=str(index), text=text_at(at, text))
        for index, (at, text) in enumerate(list_items(given, path=path))
    )


def _read_turn(
    history: list[Any] | None, event: Any, blocks: tuple[DynamicBlock, ...], *, path: str
) -> TurnText:
    """Read one turn of a scenario.

    `path` is the prefix of paths in errors: "" or a text that ends with a dot.
    """
    rows = read_rows(_MessageRow, history, path=f"{path}history")
    message = None
    if event is not None:
        read = read_row(_EventRow, event, path=f"{path}event")
        message = event_message(read.content, name=read.name or None)
    return TurnText(
        blocks=blocks,
        history=tuple(said(row.role, row.content, name=row.name or None) for row in rows),
        event=message,
    )
