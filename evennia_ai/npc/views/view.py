"""NPCView: everything about an NPC that stays the same from turn to turn.

A view has the compiled values of scopes, components, preset, card, lorebooks and notes, from which
turns are composed. It is used until something in the store changes or the NPC moves. Its parsed
texts and token counts are cached with it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Final

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.inputs import ComposeRules
from evennia_ai.engine.knowledge.meta_prompt import POLICY, RESTRICTED_POLICY
from evennia_ai.engine.knowledge.meta_prompt import TOOL as KNOWLEDGE_TOOL
from evennia_ai.engine.lorebook.book import Lorebook
from evennia_ai.engine.lorebook.entry import SourceName
from evennia_ai.engine.lorebook.same_book import linked_world, with_own_book
from evennia_ai.engine.prompt.assembly.formats import apply_formats
from evennia_ai.engine.prompt.assembly.rules import read_assembly
from evennia_ai.engine.prompt.components import NO_GRANTS, Grants, PromptComponent, Scope
from evennia_ai.engine.prompt.conditions import CHARACTER_NAME, CHARACTER_TAGS, Fact, Facts
from evennia_ai.engine.prompt.contexts import CONVERSATION, PromptContext
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.expansion import ComponentSet
from evennia_ai.engine.prompt.language import LANGUAGE
from evennia_ai.engine.prompt.language import VALUE as LANGUAGE_VALUE
from evennia_ai.engine.prompt.names import quote_name, shorten_name
from evennia_ai.engine.prompt.notes import AuthorsNote, Notes
from evennia_ai.engine.prompt.registry import ComponentRegistry
from evennia_ai.engine.prompt.templates.template import Template, compile_template, fill_each
from evennia_ai.engine.prompt.templates.work import SCANNED_WORK, Meter
from evennia_ai.engine.regex_scripts import RegexScript
from evennia_ai.formats.cards.card import Card, creator_notes_for
from evennia_ai.formats.presets.preset import Preset
from evennia_ai.npc.views.greeting import NOT_CHOSEN, Chosen, choose_greetings
from evennia_ai.npc.views.parse_cache import own_book, parsed_card, players_books, read_books
from evennia_ai.npc.views.presets import (
    assembly_with,
    combine_components,
    parsed_preset,
    plugged_components,
    triggered_off,
)
from evennia_ai.npc.views.regex_scripts import scripts_for
from evennia_ai.services.settings.game import Conf
from evennia_ai.store.authored.cards import StoredCard, assignment_of, card_of
from evennia_ai.store.authored.components import registry
from evennia_ai.store.authored.lorebooks import StoredBook, books_for
from evennia_ai.store.authored.notes import NOTE, StoredNote, notes_for
from evennia_ai.store.authored.presets import StoredPreset, preset_for
from evennia_ai.store.authored.regex_scripts import StoredScript, game_scripts

KNOWLEDGE_POLICY: Final = PromptComponent(
    id=1400,
    key="knowledge_policy",
    name="Knowledge policy",
    description="How an NPC uses its knowledge bases. Only for NPCs with the search tool.",
    content=f"{POLICY}\n\n{RESTRICTED_POLICY}",
)
"""A component with the same bytes in every prompt. A builder's component with its key replaces
it."""

CardTexts = Mapping[SourceName, Template]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What the store has for an NPC in its scopes.

    Parts that did not change are the same objects.
    """

    scopes: tuple[Scope, ...]
    """The scopes that apply where the NPC is."""
    facts: Facts
    """Names, tags and zones of the NPC and its place."""
    registry: ComponentRegistry
    card: StoredCard | None
    books: tuple[StoredBook, ...]
    """The books that are assigned to the scopes."""
    notes: tuple[StoredNote, ...]
    conf: Conf
    preset: StoredPreset | None = None
    """The preset of the narrowest scope that has one."""
    greeting: int | None = None
    """The index of the greeting that a builder chose, None if no builder chose one."""
    limit_tokens: int | None = None
    """The prompt limit of the NPC's model, None for the limit of the game."""
    tools: tuple[str, ...] = ()
    """The names of the NPC's tools."""
    scripts: Sequence[StoredScript] = ()
    """The regex scripts of the game."""
    stand_ins: Mapping[str, Lorebook] = field(default_factory=dict)
    """By name of a book that is still being parsed: the book to use until then."""

    def is_same(self, other: "Sources") -> bool:
        """True if both sources have the same parts, so that the view of one fits the other."""
        return (
            self.registry is other.registry
            and self.card is other.card
            and self.preset is other.preset
            and self.notes is other.notes
            and self.scripts is other.scripts
            and self.conf is other.conf
            and self.limit_tokens == other.limit_tokens
            and self.tools == other.tools
            and self.greeting == other.greeting
            and self.stand_ins == other.stand_ins
            and self.scopes == other.scopes
            and self.facts == other.facts
            and len(self.books) == len(other.books)
            and all(a is b for a, b in zip(self.books, other.books, strict=True))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NPCView:
    """The compiled values from which the turns of one NPC in one place are composed."""

    sources: Sources
    char_name: str
    """The card's name for the NPC if the card's grants allow that, else the NPC's own name."""
    components: ComponentSet
    books: tuple[Lorebook, ...]
    notes: Notes
    rules: ComposeRules
    revisions: Mapping[str, str]
    """The revisions of card, preset and attached books, also of unreadable ones."""
    facts: Facts
    """The standing facts, which are the same in every turn."""
    texts: CardTexts
    """The card's texts that lore may scan."""
    scripts: tuple[RegexScript, ...] = ()
    """The regex scripts that run for the NPC."""
    greetings: Chosen = NOT_CHOSEN
    """The greetings with which the NPC opens conversations."""
    triggered_off: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By name of a context: the keys of the preset's prompts that its triggers leave out. Empty
    without a preset. A context that is missing here uses the value of the context conversation."""
    problems: tuple[str, ...] = ()
    """Problems with cards, presets, books and greetings, for builders."""
    _in_context: dict[tuple[str, bool, frozenset[str]], ComponentSet] = field(
        default_factory=dict, repr=False, compare=False
    )

    def components_in(self, context: PromptContext, values: Mapping[str, str]) -> ComponentSet:
        """Return the components of a context, without those that switches or triggers leave out.

        If nothing is left out or added, all contexts share the same object.

        Args:
            values: The values of the prompt. If they name a language, the component about it is
                added.
        """
        by_trigger = self.triggered_off.get(context.name, self.triggered_off.get(CONVERSATION.name))
        off = context.off | (by_trigger or frozenset())
        has_language = LANGUAGE_VALUE in values
        if not off and not has_language:
            return self.components
        key = (context.name, has_language, off)
        if key not in self._in_context:
            members = [one.component for one in self.components.compiled.members]
            if has_language and all(one.key != LANGUAGE.key for one in members):
                members.append(LANGUAGE)
            applied = replace(context, off=off).applied(members)
            made = ComponentSet(applied, context=context.name, off=off)
            kept = {k: v for k, v in self._in_context.items() if k[:2] != key[:2]}
            self._in_context.clear()
            self._in_context.update(kept | {key: made})
        return self._in_context[key]


def sources_of(
    npc_ref: str,
    scopes: tuple[Scope, ...],
    *,
    facts: Facts,
    conf: Conf,
    limit_tokens: int | None = None,
    tools: tuple[str, ...] = (),
) -> Sources:
    """Read the sources of an NPC from the store. Makes no query once cached."""
    assigned = assignment_of(npc_ref)
    return Sources(
        scopes=scopes,
        facts=facts,
        registry=registry(),
        card=card_of(npc_ref),
        preset=preset_for(scopes),
        books=books_for(scopes),
        notes=notes_for(npc_ref),
        scripts=game_scripts(),
        conf=conf,
        limit_tokens=limit_tokens,
        tools=tools,
        greeting=None if assigned is None else assigned.greeting,
    )


def view_of(npc_name: str, sources: Sources) -> NPCView:
    """Return the view of an NPC for these sources."""
    card, problems = _card(sources.card)
    preset, unread = _preset(sources.preset)
    books, refused = _books(sources, card)
    greetings, unsaid = _greetings(sources, card, npc_name)
    rules = _rules(sources, preset)
    return NPCView(
        sources=sources,
        char_name=_char_name(npc_name, sources.card, card),
        components=ComponentSet(apply_formats(components_of(sources, card), rules.assembly)),
        books=books,
        notes=Notes([_note(note, npc_name) for note in sources.notes if note.content]),
        rules=rules,
        revisions=_revisions(sources),
        facts={**sources.facts, **card_facts(card)},
        texts=card_texts(card),
        scripts=scripts_for(
            sources.scripts,
            sources.preset if preset is not None else None,
            sources.card if card is not None else None,
        ),
        greetings=greetings,
        triggered_off=triggered_off(preset) if preset else {},
        problems=(*problems, *unread, *refused, *unsaid),
    )


def books_with(view: NPCView, *, player_ref: str) -> tuple[Lorebook, ...]:
    """Return the books of a turn that answers this player: the player's, then those of the view.

    A book that is attached twice counts once, in its narrowest scope. Makes no query once cached.
    """
    stored = books_for([Scope(kind="player", ref=player_ref)]) if player_ref else ()
    if not stored:
        return view.books
    own = players_books(stored)
    taken = {book.name for book in stored}
    in_card = [book for book in view.books if book.attach == "character"]
    others = [b for b in view.books if b.attach != "character" and b.label not in taken]
    # A card's book stays, even if a player's book has the same name: they are different books.
    for book in in_card:
        counted = with_own_book(book, (*own, *others))
        in_card = [one for one in counted if one.attach == "character"]
        attached = counted[len(in_card) :]
        own, others = attached[: len(own)], [*attached[len(own) :]]
    return (*own, *in_card, *others)


def revisions_of(view: NPCView, books: Sequence[Lorebook]) -> dict[str, str]:
    """Return the revisions of card, preset and books for the manifest.

    A card's own book is left out, because it has the revision of the card.
    """
    attached = (book for book in books if book.attach != "character")
    return {**view.revisions, **_book_revisions((book.label, book.revision) for book in attached)}


def components_of(
    sources: Sources, card: Card | None, *, grants: Grants | None = None
) -> list[PromptComponent]:
    """Return the components of scopes, preset and `card`.

    A builder's replace those with their keys.

    Args:
        grants: The grants for `card`. None: the grants of the card that the NPC plays.
    """
    own = [*sources.registry.resolved(sources.scopes)]
    if KNOWLEDGE_TOOL in sources.tools and all(one.key != KNOWLEDGE_POLICY.key for one in own):
        own.append(KNOWLEDGE_POLICY)
    if grants is None:
        grants = sources.card.grants if sources.card else NO_GRANTS
    made = plugged_components(
        _preset(sources.preset)[0],
        card,
        preset_grants=sources.preset.grants if sources.preset else NO_GRANTS,
        card_grants=grants,
        post_history_depth=sources.conf.post_history_depth,
    )
    return combine_components(own, made)


def policy_sha256() -> str:
    """Return the hash of the knowledge policy, whose text may differ between versions."""
    return sha256(KNOWLEDGE_POLICY.content.encode()).hexdigest()


def language_sha256() -> str:
    """Return the hash of the text about the language, which may differ between versions."""
    return sha256(LANGUAGE.content.encode()).hexdigest()


def card_facts(card: Card | None) -> dict[str, Fact]:
    """Return name and tags of the card as facts. Empty without a card."""
    return {} if card is None else {CHARACTER_NAME: card.name, CHARACTER_TAGS: card.tags}


def card_texts(card: Card | None) -> dict[SourceName, Template]:
    """Return the card's texts that lore may scan, compiled. Empty texts are left out."""
    if card is None:
        return {}
    written: dict[SourceName, str] = {
        "char_description": card.description,
        "char_personality": card.personality,
        "char_depth_prompt": _depth_prompt(card),
        "scenario": card.scenario,
        "creator_notes": creator_notes_for(card),
    }
    return {
        name: compile_template(text, trust="imported")
        for name, text in written.items()
        if text.strip()
    }


def scanned_texts(
    texts: CardTexts, *, values: Mapping[str, str], dice: Dice, room: str
) -> dict[SourceName, str]:
    """Return the texts that lore may scan in this turn. `room` is the room's description."""
    of_card = fill_each(texts, values, dice, Meter(SCANNED_WORK)) if texts else {}
    return {**of_card, "room": room} if room else of_card


def _depth_prompt(card: Card) -> str:
    found = card.extensions.get("depth_prompt")
    text = found.get("prompt") if isinstance(found, dict) else None
    return text if isinstance(text, str) else ""


def char_name_of(npc_name: str, npc_ref: str) -> str:
    """Return the `char_name` of an NPC's view without making the view.

    Makes no query once cached.
    """
    stored = card_of(npc_ref)
    return _char_name(npc_name, stored, _card(stored)[0])


def _char_name(npc_name: str, stored: StoredCard | None, card: Card | None) -> str:
    """Return the value of `{{char}}`. The system texts of this package use it too.

    The card's name is used only if the card has the grant "fields". Otherwise it is the NPC's own
    name. A game may let players choose that name, so it is shortened and quoted if it contains more
    than words.
    """
    if card is not None and stored is not None and "fields" in stored.grants:
        return card.char
    return npc_name if quote_name(npc_name) == npc_name else shorten_name(npc_name)


def _card(stored: StoredCard | None) -> tuple[Card | None, tuple[str, ...]]:
    if stored is None:
        return None, ()
    try:
        return parsed_card(stored), ()
    except FormatError as error:
        return None, (f"card '{stored.name}' is left out: {error}",)


def _preset(stored: StoredPreset | None) -> tuple[Preset | None, tuple[str, ...]]:
    if stored is None:
        return None, ()
    try:
        return parsed_preset(stored), ()
    except FormatError as error:
        return None, (f"preset '{stored.name}' is left out: {error}",)


def _greetings(
    sources: Sources, card: Card | None, npc_name: str
) -> tuple[Chosen, tuple[str, ...]]:
    """Return the NPC's greetings, and the problems with the chosen one."""
    made = choose_greetings(card, sources.greeting, npc_name=npc_name)
    name = sources.card.name if sources.card else ""
    return made, tuple(f"card '{name}': {problem}" for problem in made.problems)


def _books(sources: Sources, card: Card | None) -> tuple[tuple[Lorebook, ...], tuple[str, ...]]:
    """Return the attached books and the card's own book, with a problem for each unreadable one."""
    books: list[Lorebook] = []
    problems: list[str] = []
    own: Lorebook | None = None
    if sources.card is not None and card is not None:
        try:
            own = own_book(sources.card)
        except FormatError as error:
            problems.append(f"the lorebook of card '{card.name}' is left out: {error}")
    for stored in sources.books:
        attached, refused = _attached(stored, sources.stand_ins)
        books += attached
        problems += refused
    if own is not None and card is not None:
        books = [*with_own_book(own, books, world=linked_world(card.extensions))]
    return tuple(books), tuple(problems)


def _attached(
    stored: StoredBook, stand_ins: Mapping[str, Lorebook]
) -> tuple[tuple[Lorebook, ...], tuple[str, ...]]:
    stand_in = stand_ins.get(stored.name)
    return read_books((stored,)) if stand_in is None else ((stand_in,), ())


def _note(note: StoredNote, npc_name: str) -> AuthorsNote:
    called = npc_name if note.key == NOTE else f"{npc_name}/{note.key}"
    return AuthorsNote(
        key=note.key,
        content=note.content,
        depth=note.depth,
        order=note.order,
        role=note.role,
        every=note.every,
        mode=note.mode,
        place=note.place,
        when=note.when,
        revision=note.revision,
        off="" if note.enabled else f"off: note/on {called} turns it on",
    )


def _rules(sources: Sources, preset: Preset | None) -> ComposeRules:
    conf, limit_tokens = sources.conf, sources.limit_tokens
    if limit_tokens is None:
        limit_tokens = conf.limit_tokens
    assembly = read_assembly(conf.assembly, lore_rules=conf.lore.rules)
    if preset is not None and sources.preset is not None:
        assembly = assembly_with(assembly, preset, grants=sources.preset.grants)
    return ComposeRules(
        budget=CONVERSATION.budget(limit_tokens),
        layout=conf.layout,
        blocks=conf.dynamic_block,
        assembly=assembly,
        lore=conf.lore,
        memory=conf.memory.recall,
    )


def _revisions(sources: Sources) -> dict[str, str]:
    books = _book_revisions((book.name, book.revision) for book in sources.books)
    kinds = (("card", sources.card), ("preset", sources.preset))
    named = {f"{kind}:{one.name}": str(one.revision) for kind, one in kinds if one is not None}
    scripts = {f"regex:{one.name}": str(one.revision) for one in sources.scripts}
    return {**named, **books, **scripts}


def _book_revisions(books: Iterable[tuple[str, int]]) -> dict[str, str]:
    return {f"book:{name}": str(revision) for name, revision in books}
