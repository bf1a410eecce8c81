"""Edits that somebody thinks of making, applied to what past turns were made of; nothing is stored.

A component or a lorebook that is there is changed by its key or name, another one is added; a card
and a list of notes stand in for the ones there were.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from evennia_ai.cards.card import Card
from evennia_ai.cards.components import card_components, character_book
from evennia_ai.compose import ComposeRules, Inputs
from evennia_ai.lorebook.book import Lorebook
from evennia_ai.lorebook.entry import SourceName
from evennia_ai.minds.parse_cache import parsed_card
from evennia_ai.minds.past_inputs import CHARACTER, MOST_KEPT, PastInputs
from evennia_ai.minds.view import (
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
from evennia_ai.prompt.blocks import BlocksMode
from evennia_ai.prompt.components import NO_GRANTS, Grants, PromptComponent
from evennia_ai.prompt.expansion import ComponentSet, Layout, check_settled
from evennia_ai.prompt.memo import Memo
from evennia_ai.prompt.notes import Notes
from evennia_ai.prompt.registry import PromptContext
from evennia_ai.settings.conf import conf

Made = TypeVar("Made")


class PerView(Generic[Made]):
    """What was made for each of the last views; turns in a row share a view."""

    def __init__(self) -> None:
        self._made: OrderedDict[tuple[int, Hashable], tuple[NPCView, Made]] = OrderedDict()

    def get(self, view: NPCView, make: Callable[[], Made], *, key: Hashable = None) -> Made:
        """What `make` gave for this very view, and for `key` where that matters."""
        wanted = (id(view), key)
        if wanted not in self._made:
            self._made[wanted] = (view, make())  # with the view, whose id stays taken so
            while len(self._made) > MOST_KEPT:
                self._made.popitem(last=False)
        return self._made[wanted][1]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProposedEdit:
    """What a file wants to be otherwise."""

    components: tuple[PromptComponent, ...] = ()
    fields: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What each component names, by its key."""
    card: Card | None = None
    grants: Grants | None = None
    """Those of the card, None where it keeps the ones of the card before."""
    books: tuple[Lorebook, ...] = ()
    notes: Notes | None = None
    rules: Mapping[str, Any] = field(default_factory=dict)
    """The lore rules it names, with their values."""
    layout: Layout | None = None
    blocks: BlocksMode | None = None
    notices: tuple[str, ...] = ()
    """What its author should know."""
    _sets: PerView[ComponentSet] = field(default_factory=PerView)
    _own_books: PerView[Lorebook | None] = field(default_factory=PerView)
    _hung: dict[tuple[str, str], Lorebook] = field(default_factory=dict)

    def __call__(self, past: PastInputs) -> Inputs:
        """The inputs of a past turn with the edit made."""
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
            sources=inputs.sources if texts is None else _scanned(inputs, texts, values),
        )

    def _components(self, past: PastInputs) -> ComponentSet:
        if not self.components and self.card is None:
            return past.inputs.components
        before = past.inputs.components
        context = PromptContext(name=before.context, off=before.off)
        key = (context.name, context.off)
        return self._sets.get(
            past.view,
            lambda: ComponentSet(
                context.applied(self._edited(past)), context=context.name, off=context.off
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
            check_settled(component)
        return [*(changed.get(one.key, one) for one in known), *new]

    def _known(self, past: PastInputs) -> list[PromptComponent]:
        """The components there were, those of the card in the edit among them."""
        sources = past.view.sources
        if self.card is None:
            return components_of(sources, parsed_card(sources.card) if sources.card else None)
        own = components_of(sources, None)
        taken = {component.key for component in own}
        of_card = card_components(
            self.card,
            grants=self._grants(past),
            post_history_depth=sources.conf.post_history_depth,
        )
        plugged = [component for component in of_card if component.key not in taken]
        for component in plugged:
            check_settled(component)
        return [*own, *plugged]

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
            books = [*([own] if own else []), *(b for b in books if b.attach != CHARACTER)]
        kept = {book.label for book in books}
        edited = {book.label: book for book in self.books}
        here = [
            self._hung_like(book, edited[book.label]) if book.label in edited else book
            for book in books
        ]
        return (*here, *(book for book in self.books if book.label not in kept))

    def _own_book(self, past: PastInputs) -> Lorebook | None:
        return character_book(self.card, grants=self._grants(past)) if self.card else None

    def _hung_like(self, book: Lorebook, edited: Lorebook) -> Lorebook:
        """The edited book where the book hung, without what is remembered of it elsewhere."""
        place = (book.label, book.attach)
        if place not in self._hung:
            self._hung[place] = replace(edited, attach=book.attach, memo=Memo())
        return self._hung[place]


class AsOfToday:
    """The edit that lets count what is in force today: components, card, books, notes, settings."""

    def __init__(self) -> None:
        self._views: PerView[NPCView] = PerView()

    def __call__(self, past: PastInputs) -> Inputs:
        """The inputs of a past turn with the sources of today."""
        inputs = past.inputs
        view = self._views.get(past.view, lambda: self._view(past))
        values = {**inputs.values, "char": view.char_name}
        lore = replace(view.rules.lore, greeting_index=inputs.rules.lore.greeting_index)
        return replace(
            inputs,
            components=view.components,
            rules=replace(view.rules, dice=inputs.rules.dice, lore=lore),
            notes=view.notes,
            books=books_with(view, player_ref=past.speaker_ref),
            values=values,
            facts={**inputs.facts, **view.facts},
            sources=_scanned(inputs, view.texts, values),
        )

    def _view(self, past: PastInputs) -> NPCView:
        scopes = past.view.sources.scopes
        tools = past.view.sources.tools
        sources = sources_of(past.npc_ref, scopes, facts={}, conf=conf(), tools=tools)
        return view_of(past.inputs.values.get("char", ""), sources)


def _scanned(inputs: Inputs, texts: CardTexts, values: Mapping[str, str]) -> dict[SourceName, str]:
    """The texts that lore may scan, with those of another card."""
    room = inputs.sources.get("room", "")
    return scanned_texts(texts, values=values, dice=inputs.rules.dice, room=room)
