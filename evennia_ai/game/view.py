"""NPCView: everything about an NPC that does not change from turn to turn, resolved once.

Scopes, components, card, lorebooks and notes become the compiled values a turn is composed from.
A view stays until the store's snapshots change or the NPC stands somewhere else; what was parsed
and counted for it stays with it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

from evennia.utils import logger

from evennia_ai.cards.card import Card
from evennia_ai.cards.components import card_components, character_book
from evennia_ai.cards.reading import card_from_text
from evennia_ai.compose import ComposeRules
from evennia_ai.conf import Conf
from evennia_ai.errors import FormatError
from evennia_ai.game.facts import FACTION, ZONE, card_facts
from evennia_ai.game.greeting import NOT_CHOSEN, Chosen, chosen
from evennia_ai.game.lore_sources import CardSources, card_sources
from evennia_ai.game.parsed import Parsed
from evennia_ai.knowledge.templates import POLICY, RESTRICTED_POLICY
from evennia_ai.knowledge.templates import TOOL as KNOWLEDGE_TOOL
from evennia_ai.lorebook.books import Lorebook, read_book
from evennia_ai.lorebook.conditions import Facts
from evennia_ai.prompt.components import GAME, PromptComponent, Scope
from evennia_ai.prompt.contexts import CONVERSATION, PromptContext
from evennia_ai.prompt.expansion import ComponentSet
from evennia_ai.prompt.names import bounded, short
from evennia_ai.prompt.notes import AuthorsNote, Notes
from evennia_ai.prompt.registry import ComponentRegistry
from evennia_ai.store.card_assignments import assignment_of, card_of
from evennia_ai.store.cards import StoredCard
from evennia_ai.store.components import registry
from evennia_ai.store.lorebooks import StoredBook, books_for
from evennia_ai.store.notes import StoredNote, notes_for

KNOWLEDGE_POLICY: Final = PromptComponent(
    id=1400,
    key="knowledge_policy",
    name="Knowledge policy",
    description="How an NPC uses what it can look up; there where it has the tool.",
    content=f"{POLICY}\n\n{RESTRICTED_POLICY}",
)
"""The same bytes in every prompt, whatever bases there are; a builder's own of this key wins."""

MOST_PARSED: Final = 256
"""Cards, books and players' books that are kept parsed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What the store has for an NPC in its scopes; the same objects until they are changed.

    `facts` are names, tags and zones of the NPC and its place; `greeting` is the index of the
    card's greeting that the builder wants, None for none. `limit_tokens` is what the model that
    the NPC speaks with leaves its prompts, None for that of the game. `tools` are the names of
    those that it has.
    """

    scopes: tuple[Scope, ...]
    facts: Facts
    registry: ComponentRegistry
    card: StoredCard | None
    books: tuple[StoredBook, ...]
    notes: tuple[StoredNote, ...]
    conf: Conf
    greeting: int | None = None
    limit_tokens: int | None = None
    tools: tuple[str, ...] = ()

    def is_same(self, other: "Sources") -> bool:
        """Whether nothing was changed between the two readings."""
        return (
            self.registry is other.registry
            and self.card is other.card
            and self.notes is other.notes
            and self.conf is other.conf
            and self.limit_tokens == other.limit_tokens
            and self.tools == other.tools
            and self.greeting == other.greeting
            and self.scopes == other.scopes
            and self.facts == other.facts
            and len(self.books) == len(other.books)
            and all(a is b for a, b in zip(self.books, other.books, strict=True))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NPCView:
    """What turns of one NPC in one place are composed from.

    `char_name` is the name the card gives it where it may, else its own; `facts` are those that
    stand still and `texts` those of the card that lore may scan; `greetings` are what it opens
    conversations with; `problems` say what of its sources cannot be read or said, for its builder.
    """

    sources: Sources
    char_name: str
    components: ComponentSet
    books: tuple[Lorebook, ...]
    notes: Notes
    rules: ComposeRules
    revisions: Mapping[str, str]
    facts: Facts
    texts: CardSources
    greetings: Chosen = NOT_CHOSEN
    problems: tuple[str, ...] = ()
    _in_context: dict[tuple[str, frozenset[str]], ComponentSet] = field(
        default_factory=dict, repr=False, compare=False
    )

    def components_in(self, context: PromptContext) -> ComponentSet:
        """The components as this context wants them; without switches the same for all contexts."""
        if not context.off:
            return self.components
        key = (context.name, context.off)
        if key not in self._in_context:
            members = (one.component for one in self.components.compiled.members)
            made = ComponentSet(context.applied(members), context=context.name, off=context.off)
            kept = {k: v for k, v in self._in_context.items() if k[0] != context.name}
            self._in_context.clear()
            self._in_context.update(kept | {key: made})
        return self._in_context[key]


def scopes_of(npc: Any) -> tuple[Scope, ...]:
    """The scopes that apply to `npc` where it is: game, zones, factions, room, NPC."""
    room = npc.location
    factions = sorted(npc.tags.get(category=FACTION, return_list=True))
    own = (
        *(Scope(kind="faction", ref=faction) for faction in factions),
        Scope(kind="npc", ref=str(npc.id)),
    )
    if room is None:
        return (GAME, *own)
    zones = sorted(room.tags.get(category=ZONE, return_list=True))
    named = (Scope(kind="zone", ref=zone) for zone in zones)
    return (GAME, *named, Scope(kind="room", ref=str(room.id)), *own)


def sources_of(
    npc_ref: str,
    scopes: tuple[Scope, ...],
    *,
    facts: Facts,
    conf: Conf,
    limit_tokens: int | None = None,
    tools: tuple[str, ...] = (),
) -> Sources:
    """What the store has now; a warm read makes no query."""
    assigned = assignment_of(npc_ref)
    return Sources(
        scopes=scopes,
        facts=facts,
        registry=registry(),
        card=card_of(npc_ref),
        books=books_for(scopes),
        notes=notes_for(npc_ref),
        conf=conf,
        limit_tokens=limit_tokens,
        tools=tools,
        greeting=None if assigned is None else assigned.greeting,
    )


def view_of(npc_name: str, sources: Sources) -> NPCView:
    """The view of an NPC for these sources."""
    card, problems = _card(sources.card)
    books, refused = _books(sources, card)
    greetings, unsaid = _greetings(sources, card, npc_name)
    return NPCView(
        sources=sources,
        char_name=_char_name(npc_name, sources, card),
        components=ComponentSet(components_of(sources, card)),
        books=books,
        notes=Notes([_note(note) for note in sources.notes if note.content]),
        rules=_rules(sources),
        revisions=_revisions(sources),
        facts={**sources.facts, **card_facts(card)},
        texts=card_sources(card),
        greetings=greetings,
        problems=(*problems, *refused, *unsaid),
    )


def books_with(view: NPCView, *, player_ref: str) -> tuple[Lorebook, ...]:
    """The books of a turn that answers this player: theirs, then those of the view.

    A book counts once, in its narrowest scope. Warm, this makes no query.
    """
    stored = books_for([Scope(kind="player", ref=player_ref)]) if player_ref else ()
    if not stored:
        return view.books
    own = _readable(stored)
    taken = {book.name for book in stored}
    # A card's book may be called like a player's; it is another one, and stays.
    return (*own, *(b for b in view.books if b.label not in taken or b.attach == "character"))


def revisions_of(view: NPCView, books: Sequence[Lorebook]) -> dict[str, str]:
    """Which version of the card and of each book a turn is made with, for its manifest.

    A card's own book has the card's.
    """
    attached = (book for book in books if book.attach != "character")
    return {**view.revisions, **{f"book:{book.label}": str(book.revision) for book in attached}}


def components_of(sources: Sources, card: Card | None) -> list[PromptComponent]:
    """The components of the scopes and of the card; a builder's own wins over the card's key."""
    own = [*sources.registry.resolved(sources.scopes)]
    if KNOWLEDGE_TOOL in sources.tools and all(one.key != KNOWLEDGE_POLICY.key for one in own):
        own.append(KNOWLEDGE_POLICY)
    if card is None or sources.card is None:
        return own
    taken = {component.key for component in own}
    of_card = card_components(
        card,
        grants=sources.card.grants,
        post_history_depth=sources.conf.post_history_depth,
    )
    return [*own, *(component for component in of_card if component.key not in taken)]


def _char_name(npc_name: str, sources: Sources, card: Card | None) -> str:
    """What `{{char}}` stands for, in the game's own system texts too.

    So the name that a card gives counts where its fields may stand there; else the NPC's own does,
    short and plain where it holds more than words: a game may let players name it.
    """
    may = sources.card is not None and "fields" in sources.card.grants
    if card is not None and may:
        return card.char
    return npc_name if bounded(npc_name) == npc_name else short(npc_name)


def _card(stored: StoredCard | None) -> tuple[Card | None, tuple[str, ...]]:
    if stored is None:
        return None, ()
    try:
        return parsed_card(stored), ()
    except FormatError as error:
        return None, (_told(f"card '{stored.name}' is left out: {error}"),)


def _greetings(
    sources: Sources, card: Card | None, npc_name: str
) -> tuple[Chosen, tuple[str, ...]]:
    """What the NPC opens with, and what keeps it from opening as its builder wants."""
    made = chosen(card, sources.greeting, npc_name=npc_name)
    name = sources.card.name if sources.card else ""
    return made, tuple(_told(f"card '{name}': {problem}") for problem in made.problems)


def _books(sources: Sources, card: Card | None) -> tuple[tuple[Lorebook, ...], tuple[str, ...]]:
    """The attached books and the card's own; those that cannot be read as problems."""
    books: list[Lorebook] = []
    problems: list[str] = []
    if sources.card is not None and card is not None:
        try:
            own = own_book(sources.card)
            books += [own] if own else []
        except FormatError as error:
            problems.append(_told(f"the lorebook of card '{card.name}' is left out: {error}"))
    attached, refused = _parsed(sources.books)
    return (*books, *attached), (*problems, *refused)


def _parsed(stored: tuple[StoredBook, ...]) -> tuple[tuple[Lorebook, ...], tuple[str, ...]]:
    """The books that can be read, and what is wrong with the others."""
    books: list[Lorebook] = []
    problems: list[str] = []
    for book in stored:
        try:
            books.append(attached_book(book))
        except FormatError as error:
            problems.append(_told(f"lorebook '{book.name}' is left out: {error}"))
    return tuple(books), tuple(problems)


def read_ahead(stored: StoredCard) -> None:
    """Parse a card and its book, so that the next turn need not; another thread may do it."""
    parsed_card(stored)
    own_book(stored)


# Parsed once for each revision and shared by all NPCs, with all that is remembered about them.
_cards: Final = Parsed[StoredCard, Card](
    lambda stored: card_from_text(stored.source), most=MOST_PARSED
)


def parsed_card(stored: StoredCard) -> Card:
    """The card; FormatError: it cannot be read."""
    return _cards(stored)


def own_book(stored: StoredCard) -> Lorebook | None:
    """The lorebook in a card, None where it has none; FormatError: it cannot be read."""
    return _own_books(stored)


_own_books: Final = Parsed[StoredCard, Lorebook | None](
    lambda stored: character_book(
        parsed_card(stored), grants=stored.grants, revision=stored.revision
    ),
    most=MOST_PARSED,
)


def attached_book(stored: StoredBook) -> Lorebook:
    """The book; where it hangs is told by the kind of scope alone, so all rooms share it.

    FormatError: it cannot be read.
    """
    scope = stored.scope and Scope(kind=stored.scope.kind)
    return _parsed_book(replace(stored, scope=scope))


@lru_cache(maxsize=MOST_PARSED)
def _parsed_book(stored: StoredBook) -> Lorebook:
    attach = stored.scope.kind if stored.scope else "global"
    return read_book(
        json.loads(stored.source),
        label=stored.name,
        attach=attach,
        revision=stored.revision,
    )


@lru_cache(maxsize=MOST_PARSED)
def _readable(stored: tuple[StoredBook, ...]) -> tuple[Lorebook, ...]:
    """A player's books, without those that cannot be read, which is told once."""
    books, _ = _parsed(stored)
    return books


def _note(note: StoredNote) -> AuthorsNote:
    return AuthorsNote(
        content=note.content,
        depth=note.depth,
        role=note.role,
        every=note.every,
        mode=note.mode,
        revision=note.revision,
    )


def _rules(sources: Sources) -> ComposeRules:
    conf, limit_tokens = sources.conf, sources.limit_tokens
    if limit_tokens is None:
        limit_tokens = conf.limit_tokens
    return ComposeRules(
        budget=CONVERSATION.budget(limit_tokens),
        layout=conf.layout,
        blocks=conf.dynamic_block,
        lore=conf.lore,
        memory=conf.memory.recall,
    )


def _revisions(sources: Sources) -> dict[str, str]:
    books = _book_revisions(sources.books)
    if sources.card is None:
        return books
    return {f"card:{sources.card.name}": str(sources.card.revision), **books}


def _book_revisions(stored: tuple[StoredBook, ...]) -> dict[str, str]:
    return {f"book:{book.name}": str(book.revision) for book in stored}


def _told(problem: str) -> str:
    logger.log_warn(f"evennia_ai: {problem}")
    return problem
