"""A scenario file's values -> Scenario. Nothing is guessed and nothing is ignored.

Unknown keys and wrong types are errors that name their path; what this version does not do yet is
refused by name. Paths count from the folder of the scenario's file.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from evennia_ai.cards.card import Card
from evennia_ai.cards.components import DEFAULT_DEPTH
from evennia_ai.errors import FormatError, NotYetError
from evennia_ai.foreign.documents import read_document
from evennia_ai.foreign.strict_json import check_plain
from evennia_ai.lorebook.book import Lorebook
from evennia_ai.lorebook.conditions import Fact, Facts
from evennia_ai.lorebook.decorators import NO_ICONS
from evennia_ai.lorebook.rules import ActivationRules, read_rules
from evennia_ai.prompt.blocks import DynamicBlock
from evennia_ai.prompt.components import ALL_GRANTS, ALLOWS, NO_GRANTS, Grants, PromptComponent
from evennia_ai.prompt.expansion import LAYOUTS, Layout
from evennia_ai.prompt.messages import ROLES, TEXT_ROLES, Message, pending, said
from evennia_ai.prompt.notes import NOTE_MODES, AuthorsNote
from evennia_ai.prompt.persisted import BLOCKS_MODES, BlocksMode
from evennia_ai.prompt.tokens import ESTIMATE, TokenCounter, ratio_counter
from evennia_ai.scenario.parts import Files, read_components
from evennia_ai.scenario.tables import KIND, Table, brief, one_of, text_at, wrong

KEYS: Final = (
    *("card", "lorebooks", "components", "notes", "dynamic_context", "persona"),
    *("history", "event", "settings", "turns"),
)
SETTINGS: Final = (
    *(
        "user",
        "user_icon",
        "layout",
        "blocks",
        "context_tokens",
        "reply_tokens",
        "tokenizer",
        "seed",
    ),
    *("greeting", "greeting_index", "group", "language", "system_prompt"),
    *("post_history_instructions", "post_history_depth", "card_system_prompt"),
    *("card_trust", "card_grants", "facts", "lore"),
)
NOTE_KEYS: Final = ("content", "depth", "role", "every", "mode", "scanned")
TURN_KEYS: Final = ("history", "event", "dynamic_context")
CARD_TRUSTS: Final = ("author", "imported")
_RATIO: Final = re.compile(r"chars/([0-9]{1,4}(?:\.[0-9]{1,6})?)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`settings` of a scenario, defaults filled in."""

    user: str | None
    layout: Layout
    blocks: BlocksMode
    limit_tokens: int
    counter: TokenCounter
    seed: int
    greeting: bool
    greeting_index: int
    group: bool
    language: str
    system_prompt: str
    post_history_instructions: str
    post_history_depth: int
    card_system_prompt: str
    card_grants: Grants
    facts: Facts
    lore: ActivationRules


@dataclass(frozen=True, slots=True, kw_only=True)
class Persona:
    """Who the partner is."""

    name: str | None
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnText:
    """What was said up to one turn, the event that is answered in it, and the facts then."""

    history: tuple[Message, ...]
    event: Message | None
    blocks: tuple[DynamicBlock, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A prompt described by one file; `several` says that the file has `turns`."""

    settings: Settings
    card: Card | None
    books: tuple[Lorebook, ...]
    components: tuple[PromptComponent, ...]
    notes: tuple[AuthorsNote, ...]
    persona: Persona | None
    turns: tuple[TurnText, ...]
    several: bool
    notices: tuple[str, ...]


def read_scenario(data: object, *, folder: Path | None = None) -> Scenario:
    """The scenario that `data` describes; `folder` is where its paths count from.

    FormatError: it cannot be read as a scenario, or its card or a book cannot be read.
    """
    check_plain(data, kind=KIND, where="the scenario")
    table = Table(data, path="", known=KEYS)
    settings = _settings(table)
    files = Files(
        folder or Path.cwd(),
        card_grants=settings.card_grants,
        post_history_depth=settings.post_history_depth,
        absent={} if settings.lore.user_icon is not None else NO_ICONS,
    )
    card = files.card(table.data["card"]) if table.has("card") else None
    books = files.books(card, table.rows("lorebooks"), rules=settings.lore.rules)
    if settings.greeting and card is None:
        files.notices.append("settings.greeting: there is no card whose greeting could open it")
    return Scenario(
        settings=settings,
        card=card,
        books=books,
        components=read_components(table.rows("components")),
        notes=tuple(_note(path, row) for path, row in table.rows("notes")),
        persona=_persona(table),
        turns=_turns(table),
        several=table.has("turns"),
        notices=tuple(files.notices),
    )


def read_scenario_file(path: Path) -> Scenario:
    """The scenario in a YAML or JSON file; its paths count from the file's folder."""
    data = read_document(path, kind=KIND)
    return read_scenario({} if data is None else data, folder=path.parent)


def _settings(table: Table) -> Settings:
    given = table.data["settings"] if table.has("settings") else {}
    settings = Table(given, path="settings", known=SETTINGS)
    greeting_index = settings.whole("greeting_index", 0)
    return Settings(
        user=settings.text_or_none("user") or None,
        layout=settings.choice("layout", LAYOUTS, "cache"),
        blocks=settings.choice("blocks", BLOCKS_MODES, "latest"),
        limit_tokens=_limit(settings),
        counter=_counter(settings),
        seed=settings.whole("seed", 1, low=-(10**9)),
        greeting=settings.flag("greeting", False),
        greeting_index=greeting_index,
        group=settings.flag("group", False),
        language=settings.text("language", "en"),
        system_prompt=settings.text("system_prompt", ""),
        post_history_instructions=settings.text("post_history_instructions", ""),
        post_history_depth=settings.depth("post_history_depth", DEFAULT_DEPTH),
        card_system_prompt=settings.text("card_system_prompt", ""),
        card_grants=_grants(settings),
        facts=_facts(settings),
        lore=replace(
            _lore(settings),
            greeting_index=greeting_index,
            user_icon=settings.text_or_none("user_icon") or None,
        ),
    )


def _grants(settings: Table) -> Grants:
    """What the card may do: everything where the author vouches for it, else what is granted."""
    vouched = settings.choice("card_trust", CARD_TRUSTS, "author") == "author"
    if not settings.has("card_grants"):
        return ALL_GRANTS if vouched else NO_GRANTS
    rows = settings.rows("card_grants")
    return frozenset(one_of(path, text_at(path, row), tuple(ALLOWS)) for path, row in rows)


def _facts(settings: Table) -> Facts:
    """What is true in the scene, for entries that ask."""
    given = settings.data["facts"] if settings.has("facts") else {}
    if not isinstance(given, dict):
        raise wrong(settings.at("facts"), given, "a mapping of names")
    return {name: _fact(f"{settings.at('facts')}.{name}", value) for name, value in given.items()}


def _fact(path: str, value: object) -> Fact:
    if isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, list) and all(isinstance(text, str) for text in value):
        return tuple(value)
    raise wrong(path, value, "text, a number, true or false, or a list of texts")


def _lore(settings: Table) -> ActivationRules:
    given = settings.data.get("lore")
    if given is not None and not isinstance(given, Mapping):
        raise wrong(settings.at("lore"), given, "a mapping")
    return read_rules(dict(given or {}))


def _limit(settings: Table) -> int:
    """Tokens of the context without the reply's reserve."""
    context = settings.whole("context_tokens", 8192, low=1)
    reply = settings.whole("reply_tokens", 512)
    if reply >= context:
        raise FormatError(
            KIND,
            f"settings: reply_tokens {reply} leaves nothing of context_tokens {context}; it must be"
            " less",
        )
    return context - reply


def _counter(settings: Table) -> TokenCounter:
    name = settings.text("tokenizer", "estimate")
    if name == ESTIMATE.name:
        return ESTIMATE
    ratio = _RATIO.fullmatch(name)
    if ratio is None:
        where = settings.at("tokenizer")
        raise NotYetError(f"{brief(name)} (there are estimate and chars/R)", where)
    per_token = float(ratio[1])
    if not (math.isfinite(per_token) and per_token > 0):
        raise wrong(settings.at("tokenizer"), name, "chars/R with R above 0")
    return ratio_counter(per_token)


def _note(path: str, row: Any) -> AuthorsNote:
    table = Table(row, path=path, known=NOTE_KEYS)
    return AuthorsNote(
        content=table.text("content"),
        depth=table.depth("depth", 4),
        role=table.choice("role", TEXT_ROLES, "system"),
        every=table.whole("every", 1),
        mode=table.choice("mode", NOTE_MODES, "floating"),
        scanned=table.flag("scanned", False),
        trust="author",
    )


def _persona(table: Table) -> Persona | None:
    if not table.has("persona"):
        return None
    persona = Table(table.data["persona"], path="persona", known=("name", "description"))
    return Persona(
        name=persona.text_or_none("name") or None,
        description=persona.text_or_none("description") or "",
    )


def _turns(table: Table) -> tuple[TurnText, ...]:
    blocks = _blocks(table)
    if not table.has("turns"):
        return (_turn(table, blocks),)
    for key in ("history", "event"):
        if table.has(key):
            raise FormatError(KIND, f"{key}: with turns it belongs to each turn")
    rows = [Table(row, path=path, known=TURN_KEYS) for path, row in table.rows("turns")]
    return tuple(_turn(row, _blocks(row) if row.has("dynamic_context") else blocks) for row in rows)


def _blocks(table: Table) -> tuple[DynamicBlock, ...]:
    return tuple(
        DynamicBlock(key=str(index), text=text_at(path, text))
        for index, (path, text) in enumerate(table.rows("dynamic_context"))
    )


def _turn(table: Table, blocks: tuple[DynamicBlock, ...]) -> TurnText:
    return TurnText(
        blocks=blocks,
        history=tuple(_message(path, row) for path, row in table.rows("history")),
        event=_event(table),
    )


def _message(path: str, row: Any) -> Message:
    table = Table(row, path=path, known=("role", "name", "content"))
    return said(
        table.choice("role", ROLES), table.text("content"), name=table.text_or_none("name") or None
    )


def _event(table: Table) -> Message | None:
    if not table.has("event"):
        return None
    event = Table(table.data["event"], path=table.at("event"), known=("name", "content"))
    return pending(event.text("content"), name=event.text_or_none("name") or None)
