"""Edits that a builder tries out on past turns. Nothing is stored.

A component or lorebook in the edit changes the one with the same key or name. If there is none, it
is added. A card or a list of notes in the edit replaces the earlier one.

The file of an edit has some of the keys of a scenario file. An unknown key or wrong value raises an
error that names its path. Paths of files are relative to the folder of the edit file.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from evennia_ai.engine.errors import FormatError, TemplateError
from evennia_ai.engine.foreign.documents import check_plain, read_document
from evennia_ai.engine.inputs import ComposeRules, Inputs
from evennia_ai.engine.lorebook.book import Lorebook
from evennia_ai.engine.lorebook.entry import SourceName
from evennia_ai.engine.lorebook.rules import PRESETS, ActivationRules, read_rules
from evennia_ai.engine.lorebook.same_book import linked_world, with_own_book
from evennia_ai.engine.prompt.assembly.formats import apply_formats
from evennia_ai.engine.prompt.components import ALLOWS, NO_GRANTS, Grants, PromptComponent
from evennia_ai.engine.prompt.contexts import PromptContext
from evennia_ai.engine.prompt.expansion import ComponentSet
from evennia_ai.engine.prompt.fragments import Layout
from evennia_ai.engine.prompt.memo import Memo
from evennia_ai.engine.prompt.messages import Trust
from evennia_ai.engine.prompt.notes import AuthorsNote, Notes
from evennia_ai.engine.prompt.persistent_texts import BlocksMode
from evennia_ai.engine.prompt.prefix_rules import check_before_history
from evennia_ai.engine.prompt.templates.clock import clock_values
from evennia_ai.engine.prompt.templates.template import compile_template
from evennia_ai.engine.regex_scripts import RegexScript
from evennia_ai.formats.cards.card import Card
from evennia_ai.formats.cards.components import CARD_KEYS, character_book
from evennia_ai.formats.regex_scripts import running_scripts, scripts_in
from evennia_ai.formats.scenario.parts import COPIED, Files, NoteRow, read_components
from evennia_ai.formats.scenario.tables import (
    Rows,
    list_items,
    one_of,
    read_row,
    text_at,
    wrong_value_error,
)
from evennia_ai.npc.views.parse_cache import parsed_card
from evennia_ai.npc.views.recomposing import CHARACTER, MOST_KEPT, PastInputs
from evennia_ai.npc.views.regex_scripts import GRANT, scripts_for
from evennia_ai.npc.views.view import (
    CardTexts,
    NPCView,
    books_with,
    card_facts,
    card_texts,
    components_of,
    scanned_texts,
    sources_of,
    view_of,
)
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.authored import contexts

Made = TypeVar("Made")


class PerView(Generic[Made]):
    """A small cache of values made for views. Consecutive turns share a view."""

    def __init__(self) -> None:
        self._made: OrderedDict[tuple[int, Hashable], tuple[NPCView, Made]] = OrderedDict()

    def get(self, view: NPCView, make: Callable[[], Made], *, key: Hashable = None) -> Made:
        """Return the value for this view and `key`, made by `make` if needed."""
        wanted = (id(view), key)
        if wanted not in self._made:
            self._made[wanted] = (view, make())  # keep the view too, so that its id is not reused
            while len(self._made) > MOST_KEPT:
                self._made.popitem(last=False)
        return self._made[wanted][1]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProposedEdit:
    """The changes that a file describes."""

    components: tuple[PromptComponent, ...] = ()
    fields: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The changed fields of each component, by the component's key."""
    card: Card | None = None
    grants: Grants | None = None
    """The grants of the edit's card; None keeps the grants of the earlier card."""
    books: tuple[Lorebook, ...] = ()
    notes: Notes | None = None
    rules: Mapping[str, Any] = field(default_factory=dict)
    """The changed lore rules with their values."""
    layout: Layout | None = None
    blocks: BlocksMode | None = None
    notices: tuple[str, ...] = ()
    """Notices about the files that the edit names, for the author of the edit."""
    _sets: PerView[ComponentSet] = field(default_factory=PerView)
    _own_books: PerView[Lorebook | None] = field(default_factory=PerView)
    _hung: dict[tuple[str, str], Lorebook] = field(default_factory=dict)

    def __call__(self, past: PastInputs) -> Inputs:
        """Return the inputs of a past turn with the edit applied."""
        inputs = past.inputs
        values = {**inputs.values, "char": self.card.char} if self.card else inputs.values
        texts = card_texts(self.card) if self.card else None
        return replace(
            inputs,
            components=self._components(past),
            rules=self._rules(inputs.rules),
            notes=inputs.notes if self.notes is None else self.notes,
            books=self._books(past),
            values=values,
            facts={**inputs.facts, **card_facts(self.card)},
            sources=inputs.sources if texts is None else _texts_to_scan(inputs, texts, values),
            scripts=inputs.scripts if self.card is None else self._scripts(past, self.card),
        )

    def _scripts(self, past: PastInputs, card: Card) -> tuple[RegexScript, ...]:
        """Return the regex scripts with those of the edit's card instead of the earlier card's."""
        before = past.view.sources
        others = scripts_for(before.scripts, before.preset, None)
        own = running_scripts(scripts_in(card.extensions), f"card {card.name}")
        return (*others, *own) if GRANT in self._grants(past) else others

    def _components(self, past: PastInputs) -> ComponentSet:
        if not self.components and self.card is None:
            return past.inputs.components
        before = past.inputs.components
        context = PromptContext(name=before.context, off=before.off)
        key = (context.name, context.off)
        return self._sets.get(
            past.view,
            lambda: ComponentSet(
                context.applied(apply_formats(self._edited(past), past.inputs.rules.assembly)),
                context=context.name,
                off=context.off,
            ),
            key=key,
        )

    def _edited(self, past: PastInputs) -> list[PromptComponent]:
        known = self._known(past)
        keys = {component.key for component in known}
        changed = {
            one.key: one.changed(**self.fields[one.key]) for one in known if one.key in self.fields
        }
        new = [one for one in self.components if one.key not in keys]
        for component in (*changed.values(), *new):
            check_before_history(component)
        return [*(changed.get(one.key, one) for one in known), *new]

    def _known(self, past: PastInputs) -> list[PromptComponent]:
        """Return the turn's components. If the edit has a card, they include that card's texts."""
        sources = past.view.sources
        if self.card is None:
            return components_of(sources, parsed_card(sources.card) if sources.card else None)
        known = components_of(sources, self.card, grants=self._grants(past))
        for component in known:
            if component.key in CARD_KEYS:
                check_before_history(component)
        return known

    def _grants(self, past: PastInputs) -> Grants:
        if self.grants is not None:
            return self.grants
        card = past.view.sources.card
        return card.grants if card else NO_GRANTS

    def _rules(self, rules: ComposeRules) -> ComposeRules:
        lore = replace(rules.lore, **self.rules)
        return replace(
            rules,
            lore=lore,
            layout=self.layout or rules.layout,
            blocks=self.blocks or rules.blocks,
        )

    def _books(self, past: PastInputs) -> tuple[Lorebook, ...]:
        books = list(past.inputs.books)
        if self.card is not None:
            own = self._own_books.get(past.view, lambda: self._own_book(past))
            books = [book for book in books if book.attach != CHARACTER]
            if own is not None:
                books = [*with_own_book(own, books, world=linked_world(self.card.extensions))]
        kept = {book.label for book in books}
        edited = {book.label: book for book in self.books}
        here = [
            self._attached_like(book, edited[book.label]) if book.label in edited else book
            for book in books
        ]
        return (*here, *(book for book in self.books if book.label not in kept))

    def _own_book(self, past: PastInputs) -> Lorebook | None:
        return character_book(self.card, grants=self._grants(past)) if self.card else None

    def _attached_like(self, book: Lorebook, edited: Lorebook) -> Lorebook:
        """Return the edited book with the attachment of the original one, and an empty cache."""
        place = (book.label, book.attach)
        if place not in self._hung:
            self._hung[place] = replace(edited, attach=book.attach, memo=Memo())
        return self._hung[place]


class AsOfToday:
    """An edit that uses today's components, card, books, notes and settings."""

    def __init__(self) -> None:
        self._views: PerView[NPCView] = PerView()

    def __call__(self, past: PastInputs) -> Inputs:
        """Return the inputs of a past turn with today's sources."""
        view = self._views.get(past.view, lambda: self._view(past))
        return with_texts_of(view, past.inputs, context=past.context, speaker_ref=past.speaker_ref)

    def _view(self, past: PastInputs) -> NPCView:
        scopes = past.view.sources.scopes
        tools = past.view.sources.tools
        sources = sources_of(past.npc_ref, scopes, facts={}, conf=conf(), tools=tools)
        return view_of(past.inputs.values.get("char", ""), sources)


def with_texts_of(view: NPCView, inputs: Inputs, *, context: str, speaker_ref: str) -> Inputs:
    """Return inputs with the components, card, books, notes and settings of this view.

    Everything else stays: the conversation, facts of the moment, memories, dice and the time.

    Args:
        context: The name of the context, which decides what the prompt leaves out.
        speaker_ref: The reference of the person who is answered, whose own books count too.
    """
    values = {**inputs.values, "char": view.char_name}
    lore = replace(view.rules.lore, greeting_index=inputs.rules.lore.greeting_index)
    return replace(
        inputs,
        components=view.components_in(contexts.context(context), values),
        rules=replace(view.rules, dice=inputs.rules.dice, lore=lore),
        notes=view.notes,
        books=books_with(view, player_ref=speaker_ref),
        values=values,
        facts={**inputs.facts, **view.facts},
        sources=_texts_to_scan(inputs, view.texts, values),
        scripts=view.scripts,
    )


def _texts_to_scan(
    inputs: Inputs, texts: CardTexts, values: Mapping[str, str]
) -> dict[SourceName, str]:
    """Return the texts that lore may scan, with the card's texts replaced by `texts`."""
    room = inputs.sources.get("room", "")
    values = {**values, **clock_values(inputs.now)}
    made = scanned_texts(texts, values=values, dice=inputs.rules.dice, room=room)
    persona = inputs.sources.get("persona", "")
    return {**made, "persona": persona} if persona else made


KIND: Final = "edit"


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """The keys of an edit file."""

    components: Rows = None
    card: Any = None
    lorebooks: Rows = None
    notes: Rows = None
    settings: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settings:
    lore: Any = None
    layout: Layout | None = None
    blocks: BlocksMode | None = None
    card_grants: Rows = None


def read_edit_file(path: Path) -> ProposedEdit:
    """Parse the edit in a YAML or JSON file. Its paths are relative to the file's folder.

    Raises:
        FormatError: It is not an edit.
    """
    data = read_document(path, kind=KIND)
    try:
        return read_edit({} if data is None else data, folder=path.parent)
    except FormatError as error:
        shown = error.message if error.message.startswith(str(path)) else f"{path}: {error.message}"
        raise FormatError(KIND, shown) from error


def read_edit(data: object, *, folder: Path) -> ProposedEdit:
    """Parse an edit from plain data. Its paths are relative to `folder`."""
    check_plain(data, kind=KIND, where="the edit")
    file = read_row(_File, data, path="")
    keys = [one.name for one in fields(_File)]
    if all(getattr(file, key) is None for key in keys):
        raise FormatError(KIND, f"changes nothing; name one of {', '.join(keys)}")
    settings = read_row(_Settings, file.settings or {}, path="settings")
    rows = list_items(file.components, path="components")
    components = tuple(map(_of_a_builder, read_components(rows), (row for _, row in rows)))
    for component, (path, _) in zip(components, rows, strict=True):
        where = f"{path}: component '{component.key}'"
        _check_text(component.content, trust=component.trust, where=where)
    files = Files(folder, card_grants=NO_GRANTS)
    return ProposedEdit(
        components=components,
        fields={
            component.key: {name: row[name] for name in COPIED if name in row}
            for component, (_, row) in zip(components, rows, strict=True)
        },
        card=None if file.card is None else files.card(file.card),
        grants=_grants(settings),
        books=files.books(None, list_items(file.lorebooks, path="lorebooks"), rules="evennia_ai"),
        notes=None if file.notes is None else Notes(_notes(file.notes)),
        rules=_lore(settings),
        blocks=settings.blocks,
        layout=settings.layout,
        notices=tuple(notice for notice in files.notices if not notice.startswith("the card has")),
    )


def _of_a_builder(component: PromptComponent, row: Mapping[str, Any]) -> PromptComponent:
    """Return the component with a builder's trust, unless the edit names another trust."""
    return component if "trust" in row else component.changed(trust="builder")


def _check_text(text: str, *, trust: Trust, where: str) -> None:
    """Check the text of a component or note as the game does before it saves one.

    Raises:
        FormatError: The game would refuse the text.
    """
    try:
        compile_template(text, trust=trust)
    except TemplateError as error:
        raise FormatError(KIND, f"{where}: {error}") from error


def _grants(settings: _Settings) -> Grants | None:
    if settings.card_grants is None:
        return None
    rows = list_items(settings.card_grants, path="settings.card_grants")
    return frozenset(one_of(path, text_at(path, row), tuple(ALLOWS)) for path, row in rows)


def _notes(given: list[Any]) -> tuple[AuthorsNote, ...]:
    return tuple(_note(path, row) for path, row in list_items(given, path="notes"))


def _note(path: str, row: Any) -> AuthorsNote:
    read = read_row(NoteRow, row, path=path)
    _check_text(read.content, trust="builder", where=f"{path}: the author's note")
    return AuthorsNote(**asdict(read))


def _lore(settings: _Settings) -> dict[str, Any]:
    """Return the lore rules that the edit changes.

    If it names a preset, these are all its rules.
    """
    given = settings.lore
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise wrong_value_error("settings.lore", given, "a mapping")
    read: ActivationRules = read_rules(given)
    preset = PRESETS[read.rules] if "rules" in given else {}
    return {name: getattr(read, name) for name in (*preset, *given)}
