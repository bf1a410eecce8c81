"""The inputs of a past turn, read back from its manifest, its records and the revisions of then.

Composed again they must give the bytes that were sent; what cannot be read back is named.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final

from evennia_ai.compose import ComposeRules, DynamicBlock, Inputs
from evennia_ai.conf import conf
from evennia_ai.game.view import NPCView, Sources, attached_book, own_book, view_of
from evennia_ai.history.errors import ReplayError
from evennia_ai.history.projection import record_of
from evennia_ai.history.records import canonical_json
from evennia_ai.history.turns import TurnManifest
from evennia_ai.lorebook.books import Lorebook
from evennia_ai.lorebook.conditions import Fact
from evennia_ai.lorebook.entries import SourceName
from evennia_ai.lorebook.rules import ActivationRules
from evennia_ai.lorebook.timers import Clock, state_from
from evennia_ai.prompt.anchoring import Anchor
from evennia_ai.prompt.components import GAME, STATIC_COMPONENTS, PromptComponent, Scope
from evennia_ai.prompt.contexts import CONVERSATION
from evennia_ai.prompt.dice import Dice
from evennia_ai.prompt.registry import ComponentRegistry
from evennia_ai.store import book_revisions, revisions
from evennia_ai.store.card_revisions import revision as card_revision
from evennia_ai.store.cards import StoredCard
from evennia_ai.store.errors import NotStoredError
from evennia_ai.store.lorebooks import StoredBook
from evennia_ai.store.notes import note_then
from evennia_ai.store.past_histories import PastHistories
from evennia_ai.store.turns import StoredTurn

CHARACTER: Final = "character"
MOST_KEPT: Final = 64
"""Sets of sources, and parts of them, that are kept read."""
_OF_THE_VIEW: Final = ("scopes", "components", "card", "notes")
_STATIC: Final = {component.key: component for component in STATIC_COMPONENTS}


@dataclass(frozen=True, slots=True, kw_only=True)
class PastInputs:
    """What a past turn was composed from, and the view of the NPC that was a part of it.

    `speaker_ref` is who spoke in its event, "" where nobody did.
    """

    npc_ref: str
    speaker_ref: str
    inputs: Inputs
    view: NPCView


class NotReadBackError(ReplayError):
    """Something that a past turn was made of cannot be read back; the text says what."""


def past_inputs(turn: StoredTurn, histories: PastHistories) -> PastInputs:
    """The inputs of a past turn; NotReadBackError says what of them is gone."""
    told = turn.manifest.inputs
    _check_told(turn.manifest)
    try:
        made_of = told["made_of"]
        view = _view(turn.npc_ref, canonical_json([made_of[name] for name in _OF_THE_VIEW]))
        inputs = _inputs(turn, view, histories)
    except NotStoredError as error:
        raise NotReadBackError(f"turn {turn.number}: {error}") from error
    except ReplayError as error:
        raise NotReadBackError(f"turn {turn.number}: {error}") from error
    return PastInputs(
        npc_ref=turn.npc_ref, speaker_ref=_speaker_ref(inputs), inputs=inputs, view=view
    )


def _speaker_ref(inputs: Inputs) -> str:
    record = record_of(inputs.event) if inputs.event else None
    return str(record.meta.get("speaker", "")) if record else ""


def _check_told(manifest: TurnManifest) -> None:
    if manifest.erased:
        raise NotReadBackError("the words of the turn were erased on request")
    if "made_of" not in manifest.inputs:
        raise NotReadBackError(
            "the turn was recorded by a version that did not keep what its prompt was made of;"
            " it can be replayed, but not composed again"
        )


def _inputs(turn: StoredTurn, view: NPCView, histories: PastHistories) -> Inputs:
    told = turn.manifest.inputs
    made_of, where = told["made_of"], turn.conversation.id
    dice = Dice(**told["dice"])
    return Inputs(
        components=view.components,
        rules=_rules(told, dice),
        history=histories.history(
            where,
            told["history"],
            event=told["event"],
            newest_record=made_of["newest_record"],
        ),
        event=replace(
            histories.event(where, told["history"]["segment"], told["event"]),
            block="event",
            origin="event",
        ),
        notes=view.notes,
        books=_books(made_of, view.sources.card),
        blocks=tuple(DynamicBlock(key=key, text=text) for key, text in told["blocks"]),
        values=told["values"],
        cut=told["cut"],
        anchors={origin: Anchor(*anchor) for origin, anchor in told["anchors"].items()},
        lore_state=state_from(told["lore_state"]),
        clock=Clock(**told["clock"]),
        facts={name: _fact(fact) for name, fact in told["facts"].items()},
        sources=_scanned(told, view, dice),
    )


def _rules(told: Mapping[str, Any], dice: Dice) -> ComposeRules:
    budget = replace(CONVERSATION.budget(told["limit_tokens"]), keep_percent=told["keep_percent"])
    return ComposeRules(
        budget=budget,
        layout=told["layout"],
        blocks=told["blocks_mode"],
        lore=ActivationRules(**told["lore"]),
        dice=dice,
    )


def _fact(told: Any) -> Fact:
    return tuple(told) if isinstance(told, list) else told


def _scanned(told: Mapping[str, Any], view: NPCView, dice: Dice) -> dict[SourceName, str]:
    """The texts lore could scan; those of the card are made again and must be the same."""
    texts: dict[SourceName, str] = {}
    for name, kept in told["sources"].items():
        texts[name] = kept if isinstance(kept, str) else ""
        if isinstance(kept, Mapping):
            template = view.texts.get(name)
            texts[name] = template.render(told["values"], dice) if template else ""
            found = sha256(texts[name].encode("utf-8", "surrogatepass")).hexdigest()
            if found != kept["sha256"]:
                raise NotReadBackError(f"the card's text {name} is not what it was")
    return texts


@lru_cache(maxsize=MOST_KEPT)
def _view(npc_ref: str, made_of: str) -> NPCView:
    """The view of an NPC from the revisions that are named; turns in a row share it."""
    scopes, components, card, notes = json.loads(made_of)
    sources = Sources(
        scopes=tuple(Scope(kind=kind, ref=ref) for kind, ref in scopes),
        facts={},
        registry=ComponentRegistry(tuple(_components(components))),
        card=_card(*card) if card else None,
        books=(),
        notes=tuple(note_then(npc_ref, position, number) for position, number in notes),
        conf=conf(),
    )
    return view_of("", sources)


def _components(told: Mapping[str, Mapping[str, int]]) -> list[PromptComponent]:
    found = []
    for place, keys in told.items():
        kind, _, ref = place.partition(":")
        scope = Scope(kind=kind, ref=ref)  # type: ignore[arg-type]
        found += [_component(scope, key, number) for key, number in keys.items()]
    return found


@lru_cache(maxsize=MOST_KEPT * 16)
def _component(scope: Scope, key: str, number: int) -> PromptComponent:
    if number == 0 and scope == GAME and key in _STATIC:
        return _STATIC[key]
    component = revisions.revision(key, number, scope=scope).new
    if component is None:
        raise NotReadBackError(f"revision {number} of component '{key}' removed it")
    return component


@lru_cache(maxsize=MOST_KEPT)
def _card(name: str, number: int) -> StoredCard:
    change, file = card_revision(name, number)
    return StoredCard(
        name=name,
        source=file.source,
        sha256=change.sha256,
        revision=number,
        grants=change.grants,
        carrier=file.carrier,
    )


def _books(made_of: Mapping[str, Any], card: StoredCard | None) -> tuple[Lorebook, ...]:
    books: list[Lorebook] = []
    for label, attach, number in made_of["books"]:
        if attach == CHARACTER:
            own = own_book(card) if card else None
            if own is None or own.label != label:
                raise NotReadBackError(f"the lorebook {label} of the card is not what it was")
            books.append(own)
        else:
            books.append(attached_book(_book(label, attach, number)))
    return tuple(books)


@lru_cache(maxsize=MOST_KEPT)
def _book(name: str, attach: str, number: int) -> StoredBook:
    """The book as this revision left it, attached to a scope of this kind."""
    source = book_revisions.revision(name, number).source
    if source is None:
        raise NotReadBackError(f"revision {number} of lorebook '{name}' removed it")
    return StoredBook(
        name=name,
        source=source,
        sha256=sha256(source.encode()).hexdigest(),
        revision=number,
        scope=Scope(kind=attach) if attach != "global" else None,  # type: ignore[arg-type]
    )
