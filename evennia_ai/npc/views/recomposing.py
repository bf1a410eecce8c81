"""Composes past turns again, from inputs read back from manifests, records and revisions.

Without an edit, a turn must give the same bytes that were sent. If something cannot be read back,
an error names it. With an edit, the result shows what the edit would have changed. Each turn is
composed by itself, with the history, timers and cut that it had.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Any, Final, Literal, TypeVar

from evennia_ai.engine.compose import compose
from evennia_ai.engine.errors import EvenniaAIError, NotStoredError, ReplayError
from evennia_ai.engine.history.projection import record_of
from evennia_ai.engine.history.records import canonical_json, speaker_known_in
from evennia_ai.engine.history.turn.replay import Difference, message_differences, shared_messages
from evennia_ai.engine.history.turn.sending import storable_messages
from evennia_ai.engine.inputs import ComposeRules, Inputs
from evennia_ai.engine.knowledge.meta_prompt import TOOL as KNOWLEDGE_TOOL
from evennia_ai.engine.lorebook.activation.timers import Clock, state_from
from evennia_ai.engine.lorebook.book import Lorebook
from evennia_ai.engine.lorebook.entry import SourceName
from evennia_ai.engine.lorebook.rules import ActivationRules
from evennia_ai.engine.lorebook.same_book import with_label
from evennia_ai.engine.memory.recalling import Moment, RecallRules
from evennia_ai.engine.prompt.assembly.rules import assembly_rules
from evennia_ai.engine.prompt.blocks import DynamicBlock
from evennia_ai.engine.prompt.components import (
    GAME,
    STATIC_COMPONENTS,
    PromptComponent,
    Scope,
    of_npc,
)
from evennia_ai.engine.prompt.contexts import CONVERSATION, PromptContext
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.messages import Message, messages_sha256
from evennia_ai.engine.prompt.placement import Anchor
from evennia_ai.engine.prompt.prompt import Prompt
from evennia_ai.engine.prompt.registry import ComponentRegistry
from evennia_ai.engine.prompt.templates.clock import clock_values
from evennia_ai.npc.views.parse_cache import attached_book, own_book
from evennia_ai.npc.views.view import (
    NPCView,
    Sources,
    language_sha256,
    policy_sha256,
    scanned_texts,
    view_of,
)
from evennia_ai.services.settings.conf import conf
from evennia_ai.services.settings.game import Conf
from evennia_ai.store.authored.cards import CARDS, StoredCard
from evennia_ai.store.authored.components import COMPONENTS
from evennia_ai.store.authored.lorebooks import LOREBOOKS, StoredBook
from evennia_ai.store.authored.notes import NOTES
from evennia_ai.store.authored.presets import PRESETS
from evennia_ai.store.authored.regex_scripts import SCRIPTS
from evennia_ai.store.history.branches import npc_of
from evennia_ai.store.history.past_turns import PastHistories
from evennia_ai.store.history.turns import StoredTurn
from evennia_ai.store.memories import memories_then

K = TypeVar("K")
V = TypeVar("V")
CHARACTER: Final = "character"
MOST_KEPT: Final = 64
"""The most views and the most books that a reader caches."""
_OF_THE_VIEW: Final = ("scopes", "components", "card", "preset", "notes")
_STATIC: Final = {component.key: component for component in STATIC_COMPONENTS}


@dataclass(frozen=True, slots=True, kw_only=True)
class PastInputs:
    """What a past turn was composed from, with its view of the NPC."""

    npc_ref: str
    speaker_ref: str
    """The reference of the speaker to whom the turn answered, "" for nobody."""
    context: str
    """The name of the turn's context, such as "whisper"."""
    inputs: Inputs
    view: NPCView
    hidden: tuple[str, ...] = ()
    """Descriptions of what was removed from the inputs, because the viewer may not see it."""


class NotReadBackError(ReplayError):
    """Some input of a past turn cannot be read back. The message says which."""


class PastReader:
    """Reads the inputs of past turns. Consecutive turns share views and books."""

    def __init__(self) -> None:
        self._histories = PastHistories()
        self._views: OrderedDict[tuple[str, str], NPCView] = OrderedDict()
        self._books: OrderedDict[tuple[str, str, int], StoredBook] = OrderedDict()

    def forget_histories(self) -> None:
        """Drop the cached histories, because words in them may have been erased meanwhile."""
        self._histories = PastHistories()

    def inputs(self, turn: StoredTurn) -> PastInputs:
        """Return the inputs of a past turn.

        Raises:
            NotReadBackError: Part of the inputs is gone.
        """
        if turn.manifest.erased:
            raise NotReadBackError("the words of the turn were erased on request")
        try:
            view = self._view(turn)
            inputs = self._inputs(turn, view)
        except (NotStoredError, ReplayError) as error:
            raise NotReadBackError(f"turn {turn.number}: {error}") from error
        except KeyError as error:  # for example in a transcript of another program
            raise NotReadBackError(
                f"turn {turn.number} does not say what its prompt was made of ({error} is missing);"
                " it can be replayed, but not composed again"
            ) from error
        return PastInputs(
            npc_ref=npc_of(turn.npc_ref),
            speaker_ref=_speaker_ref(inputs),
            context=turn.manifest.inputs["made_of"]["context"],
            inputs=inputs,
            view=view,
        )

    def _view(self, turn: StoredTurn) -> NPCView:
        """Return the view of the NPC, made from the revisions that the manifest names."""
        made_of = turn.manifest.inputs["made_of"]
        told, policy = {name: made_of[name] for name in _OF_THE_VIEW}, made_of["policy"]
        told["scripts"] = made_of.get("scripts", ())  # only in manifests of turns with scripts
        depth, ref = made_of["post_history_depth"], npc_of(turn.npc_ref)
        assembly = {"rules": "evennia_ai", **turn.manifest.inputs["assembly"]}
        key = (ref, canonical_json([told, policy, depth, assembly]))
        then = replace(conf(), post_history_depth=depth, assembly=assembly)
        return _get_or_make(
            self._views, key, lambda: _view_from_revisions(ref, **told, policy=policy, then=then)
        )

    def _attached_books(
        self, made_of: Mapping[str, Any], card: StoredCard | None
    ) -> Iterator[Lorebook]:
        """Yield the books of the turn in order, each with the attachment that it had."""
        for label, attach, number in made_of["books"]:
            if attach == CHARACTER:
                own = own_book(card) if card else None
                # If another book had the same name, the label of the card's book was longer.
                is_same = own is not None and f"{label} (card".startswith(f"{own.label} (card")
                if own is None or not is_same:
                    raise NotReadBackError(f"the card's lorebook '{label}' has changed since")
                yield with_label(own, label)
            else:
                key = (label, attach, number)
                yield attached_book(_get_or_make(self._books, key, partial(_book, *key)))

    def _inputs(self, turn: StoredTurn, view: NPCView) -> Inputs:
        told = turn.manifest.inputs
        made_of, where = told["made_of"], turn.conversation.id
        dice = Dice(**told["dice"])
        return Inputs(
            components=view.components_in(_context(made_of), _values(told)),
            rules=_rules(told, dice),
            history=self._histories.history(
                where,
                told["history"],
                event=told["event"],
                newest_record=made_of["newest_record"],
            ),
            event=replace(
                self._histories.event(where, told["history"]["segment"], told["event"]),
                block="event",
                origin="event",
            ),
            tools=tuple(self._tool_message(where, told, one) for one in told["tools"]),
            notes=view.notes,
            books=tuple(self._attached_books(made_of, view.sources.card)),
            blocks=tuple(_blocks(told)),
            values=told["values"],
            cut=told["cut"],
            anchors={origin: Anchor(*anchor) for origin, anchor in told["anchors"].items()},
            lore_state=state_from(told["lore_state"]),
            clock=Clock(**told["clock"]),
            facts={
                name: tuple(fact) if isinstance(fact, list) else fact
                for name, fact in told["facts"].items()
            },
            sources=_scanned(told, view, dice),
            now=told["now"],
            scripts=view.scripts,
            guidance=told["guidance"],
            **_past_memories(told["memories"]),
        )

    def _tool_message(self, where: int, told: Mapping[str, Any], record_id: str) -> Message:
        """Return the message of a tool's call or result from an earlier round of the turn."""
        message = self._histories.event(where, told["history"]["segment"], record_id)
        return replace(message, block="tool", origin="tool")


def _speaker_ref(inputs: Inputs) -> str:
    record = record_of(inputs.event) if inputs.event else None
    return speaker_known_in(record) if record else ""


def _rules(told: Mapping[str, Any], dice: Dice) -> ComposeRules:
    budget = replace(CONVERSATION.budget(told["limit_tokens"]), keep_percent=told["keep_percent"])
    memory = RecallRules()
    if told["memories"]:
        recall = told["memories"]["rules"]
        memory = RecallRules(**{**recall, "languages": tuple(recall["languages"])})
    return ComposeRules(
        budget=budget,
        layout=told["layout"],
        blocks=told["blocks_mode"],
        assembly=assembly_rules(told["assembly"]),
        lore=ActivationRules(**told["lore"]),
        memory=memory,
        dice=dice,
    )


def _past_memories(told: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the memories that the turn could recall, as fields of `Inputs`.

    Raises:
        NotStoredError: The words of a memory were erased.
    """
    if not told:
        return {}
    wanted = {memory: (revision, recalled_at) for memory, revision, recalled_at in told["held"]}
    near = tuple((memory, cosine) for memory, cosine in told["near"])
    return {"memories": memories_then(wanted), "moment": Moment(**told["moment"]), "near": near}


def _values(told: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the values of the turn.

    Raises:
        NotReadBackError: The component about the language had another text.
    """
    if told["made_of"].get("language", language_sha256()) != language_sha256():
        raise NotReadBackError("the text about the language of NPCs was another one then")
    values: Mapping[str, str] = told["values"]
    return values


def _context(made_of: Mapping[str, Any]) -> PromptContext:
    """Return the context of the turn, with the components that were off in it."""
    return PromptContext(name=made_of["context"], off=frozenset(made_of["off"]))


def _blocks(told: Mapping[str, Any]) -> Iterator[DynamicBlock]:
    """Yield the blocks with the turn's facts of the moment."""
    for key, text in told["blocks"]:
        depth, order = told["placed"].get(key, (None, 100))
        fills = told["filled"].get(key, "")
        yield DynamicBlock(key=key, text=text, component=fills, depth=depth, order=order)


def _scanned(told: Mapping[str, Any], view: NPCView, dice: Dice) -> dict[SourceName, str]:
    """Return the texts that lore could scan in the turn.

    The manifest has only hashes of the card's texts. They are expanded again and compared with the
    hashes.
    """
    values = {**told["values"], **clock_values(told["now"])}
    of_card = scanned_texts(view.texts, values=values, dice=dice, room="")
    texts: dict[SourceName, str] = {}
    for name, kept in told["sources"].items():
        texts[name] = kept if isinstance(kept, str) else ""
        if isinstance(kept, Mapping):
            texts[name] = of_card.get(name, "")
            found = sha256(texts[name].encode("utf-8", "surrogatepass")).hexdigest()
            if found != kept["sha256"]:
                raise NotReadBackError(f"the card's text {name} has changed since")
    return texts


def _components(told: Mapping[str, Mapping[str, int]]) -> list[PromptComponent]:
    found = []
    for place, keys in told.items():
        kind, _, ref = place.partition(":")
        scope = Scope(kind=kind, ref=ref)  # type: ignore[arg-type]
        found += [_component(scope, key, number) for key, number in keys.items()]
    return found


def _component(scope: Scope, key: str, number: int) -> PromptComponent:
    if number == 0 and scope == GAME and key in _STATIC:
        return _STATIC[key]
    revision = COMPONENTS.revision(key, number, scope=scope)
    if not revision.takes_effect:
        raise NotReadBackError(f"component '{key}' was removed by its revision {number}")
    return revision.value


def _view_from_revisions(
    npc_ref: str,
    *,
    scopes: Sequence[Sequence[Any]],
    components: Mapping[str, Mapping[str, int]],
    card: Sequence[Any] | None,
    preset: Sequence[Any] | None,
    notes: Sequence[Sequence[Any]],
    scripts: Sequence[Sequence[Any]],
    policy: str,
    then: Conf,
) -> NPCView:
    sources = Sources(
        scopes=tuple(Scope(kind=kind, ref=ref) for kind, ref in scopes),
        facts={},
        registry=ComponentRegistry(tuple(_components(components))),
        card=CARDS.then(*card) if card else None,
        preset=PRESETS.then(*preset) if preset else None,
        books=(),
        notes=tuple(NOTES.then(key, number, scope=of_npc(npc_ref)) for key, number in notes),
        scripts=tuple(SCRIPTS.then(name, number) for name, number in scripts),
        conf=then,
        tools=_tools(policy),
    )
    return view_of("", sources)


def _tools(policy: str) -> tuple[str, ...]:
    """Return the tools that the prompt explained to the NPC."""
    if policy not in ("", policy_sha256()):
        raise NotReadBackError("the instructions for knowledge searches had another text then")
    return (KNOWLEDGE_TOOL,) if policy else ()


def _book(name: str, attach: str, number: int) -> StoredBook:
    """Return this revision of a book, attached to a scope of this kind."""
    revision = LOREBOOKS.revision(name, number)
    if not revision.takes_effect:
        raise NotReadBackError(f"lorebook '{name}' was removed by its revision {number}")
    scope = Scope(kind=attach) if attach != "global" else None  # type: ignore[arg-type]
    return replace(LOREBOOKS.whole(revision.value), scope=scope)


def _get_or_make(kept: "OrderedDict[K, V]", key: K, make: Callable[[], V]) -> V:
    """Return the cached value. Make it if it is missing, and drop the least recently used one."""
    if key not in kept:
        kept[key] = make()
        while len(kept) > MOST_KEPT:
            kept.popitem(last=False)
    kept.move_to_end(key)
    return kept[key]


Outcome = Literal["unchanged", "changed", "unknown"]
Edit = Callable[[PastInputs], Inputs]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What an edit would have changed in one past turn."""

    number: int
    outcome: Outcome
    """`unknown`: the turn cannot be composed again exactly, or the edit does not fit it."""
    problem: str = ""
    """Why the outcome is unknown."""
    tokens_before: int = 0
    tokens: int = 0
    shared_messages: int = 0
    shared_tokens: int = 0
    """The tokens of the unchanged start of the prompt, which a provider's cache would have
    covered."""
    sha256: str = ""
    differences: tuple[Difference, ...] = ()
    before: tuple[Message, ...] = ()
    """The prompt without the edit; empty if the outcome is unknown."""
    after: tuple[Message, ...] = ()
    """The prompt with the edit; empty if the outcome is unknown."""


def compose_again(turn: StoredTurn, reader: PastReader) -> Prompt:
    """Compose a past turn from the inputs that it had.

    Raises:
        NotReadBackError: Part of the inputs is gone.
    """
    return compose(reader.inputs(turn).inputs)


def compare_turn(
    turn: StoredTurn, edit: Edit, reader: PastReader, as_seen: Callable[[PastInputs], PastInputs]
) -> Comparison:
    """Return what the edit would have changed in the prompt of this turn.

    Args:
        as_seen: Removes what is hidden from the viewer, before the prompts with and without the
            edit are composed.
    """
    try:
        past = reader.inputs(turn)
        seen = as_seen(past)
        edited = compose(edit(seen))
    except EvenniaAIError as error:
        return _unknown(turn, str(error))
    sent = storable_messages(edited.messages)
    if not seen.hidden and messages_sha256(sent) == turn.manifest.sha256:
        return _unchanged(turn, turn.manifest.tokens, sent)
    again = compose(past.inputs)
    if messages_sha256(storable_messages(again.messages)) != turn.manifest.sha256:
        return _unknown(
            turn, "composed again without the edit, the prompt differs from the one that was sent"
        )
    prompt = compose(seen.inputs) if seen.hidden else again
    before = storable_messages(prompt.messages)
    if messages_sha256(before) == messages_sha256(sent):
        return _unchanged(turn, prompt.tokens, sent)
    shared = shared_messages(before, sent)
    return Comparison(
        number=turn.number,
        outcome="changed",
        tokens_before=prompt.tokens,
        tokens=edited.tokens,
        shared_messages=shared,
        shared_tokens=sum(message.tokens(edited.counter) for message in sent[:shared]),
        sha256=messages_sha256(sent),
        differences=message_differences(before, sent),
        before=tuple(before),
        after=tuple(sent),
    )


def see_all(past: PastInputs) -> PastInputs:
    """Return the inputs unchanged, for a viewer who may see everything."""
    return past


def _unchanged(turn: StoredTurn, tokens: int, messages: Sequence[Message]) -> Comparison:
    return Comparison(
        number=turn.number,
        outcome="unchanged",
        tokens_before=tokens,
        tokens=tokens,
        shared_messages=len(messages),
        shared_tokens=tokens,
        sha256=turn.manifest.sha256,
        before=tuple(messages),
        after=tuple(messages),
    )


def _unknown(turn: StoredTurn, problem: str) -> Comparison:
    tokens = turn.manifest.tokens
    return Comparison(
        number=turn.number, outcome="unknown", problem=problem, tokens_before=tokens, tokens=tokens
    )
