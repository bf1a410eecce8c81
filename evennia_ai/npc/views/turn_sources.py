"""What a turn's prompt was made from, as JSON for its manifest, and the author of each text.

`npc/views/recomposing.py` reads the JSON back. Small values are in it in full. Components, cards,
presets, lorebooks, notes and memories have tables of revisions, so only their revision numbers are
in it. Of the history it has the first and the last record. Of card texts that lore may scan it has
only hashes, because the texts follow from the card, the values and the dice.

Facts of the moment have no author and no revisions. They are identified by the function that made
them and the hash of their words.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from hashlib import sha256
from math import isfinite
from typing import Any, Final

from evennia_ai.engine.errors import NotStoredError
from evennia_ai.engine.history.records import Record
from evennia_ai.engine.history.turn.manifest import TurnManifest
from evennia_ai.engine.inputs import Inputs
from evennia_ai.engine.knowledge.meta_prompt import TOOL as KNOWLEDGE_TOOL
from evennia_ai.engine.lorebook.entry import SourceName
from evennia_ai.engine.lorebook.rules import ActivationRules
from evennia_ai.engine.prompt.assembly.rules import PLAIN
from evennia_ai.engine.prompt.components import NO_GRANTS, Scope, of_npc
from evennia_ai.engine.prompt.conditions import Fact
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.language import VALUE as LANGUAGE_VALUE
from evennia_ai.formats.cards.card import card_from_text
from evennia_ai.formats.cards.components import CARD_KEYS
from evennia_ai.npc.views.presets import is_of_preset
from evennia_ai.npc.views.view import NPCView, language_sha256, policy_sha256
from evennia_ai.store.authored import cards, components, lorebooks, presets
from evennia_ai.store.authored.notes import NOTES
from evennia_ai.store.core.authoring import Change
from evennia_ai.store.core.snapshots import value_of

_OF_THE_WORLD: Final = ("persona", "room")


def recorded_turn(
    view: NPCView,
    inputs: Inputs,
    *,
    event: Record,
    joined: Sequence[Record],
    now: History,
    newest_record: int,
    reply_tokens: int,
    context: str,
    providers: Mapping[str, str],
) -> dict[str, Any]:
    """Return the values and sources of a turn of `view` that answers `event`, for its manifest.

    Args:
        joined: Earlier lines that the turn answers as well.
        now: The whole window of the conversation.
        newest_record: The number of the newest record of the conversation.
    """
    sources = _made_of(
        view, inputs, context=context, newest_record=newest_record, providers=providers
    )
    values = recorded_inputs(inputs, event=event, joined=joined, now=now, reply_tokens=reply_tokens)
    return {**values, "made_of": sources}


def recorded_inputs(
    inputs: Inputs,
    *,
    event: Record,
    joined: Sequence[Record] = (),
    now: History,
    reply_tokens: int,
) -> dict[str, Any]:
    """Return the values of `inputs` for a manifest.

    `now` is the whole window of the conversation.
    """
    rules = inputs.rules
    return {
        "values": dict(inputs.values),
        "dice": asdict(rules.dice),
        "facts": {name: _json(fact) for name, fact in inputs.facts.items()},
        "clock": asdict(inputs.clock),
        "lore_state": inputs.lore_state.to_plain(),
        "cut": inputs.cut,
        "anchors": dict(inputs.anchors),
        "layout": rules.layout,
        "blocks_mode": rules.blocks,
        "limit_tokens": rules.budget.limit_tokens,
        "keep_percent": rules.budget.keep_percent,
        "reply_tokens": reply_tokens,
        "lore": _changed_rules(rules.lore),
        "blocks": [[block.key, block.text] for block in inputs.blocks],
        "placed": {b.key: [b.depth, b.order] for b in inputs.blocks if b.depth is not None},
        "filled": {block.key: block.component for block in inputs.blocks if block.component},
        "sources": _sources(inputs.sources),
        "history": _range(inputs.history, now, event, joined),
        "event": event.id,
        "tools": [message.record for message in inputs.tools],
        "memories": _memories(inputs) if inputs.memories else None,
        "now": inputs.now,
        "guidance": inputs.guidance,
        "assembly": {} if rules.assembly is PLAIN else rules.assembly.changed,
    }


def _made_of(
    view: NPCView,
    inputs: Inputs,
    *,
    context: str,
    newest_record: int,
    providers: Mapping[str, str],
) -> dict[str, Any]:
    """Return the names and revisions of the sources of `inputs`.

    Args:
        newest_record: The number of the newest record of the segment.
        providers: The paths of the game's own providers, by the key of their block.
    """
    sources = view.sources
    told = {block.key for block in inputs.blocks}
    own = {key: path for key, path in providers.items() if key in told}
    return {
        "scopes": [[scope.kind, scope.ref] for scope in sources.scopes],
        "components": _components(view),
        "card": [sources.card.name, sources.card.revision] if sources.card else None,
        "preset": [sources.preset.name, sources.preset.revision] if sources.preset else None,
        "books": [[book.label, book.attach, book.revision] for book in inputs.books],
        "notes": [[note.key, note.revision] for note in sources.notes],
        "context": context,
        "off": sorted(inputs.components.off),
        "newest_record": newest_record,
        "post_history_depth": sources.conf.post_history_depth,
        "providers": own,
        "policy": policy_sha256() if KNOWLEDGE_TOOL in sources.tools else "",
        **({"scripts": [[s.name, s.revision] for s in sources.scripts]} if sources.scripts else {}),
        **({"language": language_sha256()} if LANGUAGE_VALUE in inputs.values else {}),
    }


def _components(view: NPCView) -> dict[str, dict[str, int]]:
    """Return the revisions of the components in the registry, by scope and key."""
    found: dict[str, dict[str, int]] = {}
    for component in view.sources.registry.resolved(view.sources.scopes):
        scope = component.scope
        found.setdefault(f"{scope.kind}:{scope.ref}", {})[component.key] = component.revision
    return found


def _memories(inputs: Inputs) -> dict[str, Any]:
    """Return the candidate memories with their revisions and when each was last recalled."""
    return {
        "rules": asdict(inputs.rules.memory),
        "moment": asdict(inputs.moment),
        "held": [[memory.id, memory.revision, memory.recalled_at] for memory in inputs.memories],
        "near": [[*one] for one in inputs.near],
    }


def _changed_rules(rules: ActivationRules) -> dict[str, Any]:
    """Return the lore rules that differ from the defaults."""
    usual = ActivationRules()
    names = (field.name for field in fields(rules))
    return {
        name: value for name in names if (value := getattr(rules, name)) != getattr(usual, name)
    }


def _sources(texts: Mapping[SourceName, str]) -> dict[str, Any]:
    """Return persona and room in full, and the card's texts as hashes."""
    return {
        name: text if name in _OF_THE_WORLD else {"sha256": _sha256(text)}
        for name, text in texts.items()
    }


def _range(
    history: History, now: History, event: Record, joined: Sequence[Record]
) -> dict[str, Any]:
    """Return which records the history had: the first, the last, and those left out between.

    Lines that joined the event are named apart, because the history has them at its end.
    """
    ids = [message.record for message in history]
    left: list[str | None] = []
    if len(now) != len(history) + 1:
        held = {*ids, event.id}
        left = [message.record for message in now if message.record not in held]
    lines = {one.id for one in joined}
    moved = [one for one in ids if one in lines]
    kept = ids[: len(ids) - len(moved)]
    return {
        "segment": history.segment,
        "first": kept[0] if kept else None,
        "last": kept[-1] if kept else None,
        "left_out": left,
        "earlier": [history.earlier, history.earlier_users, history.earlier_replies],
        **({"joined": moved} if moved else {}),
    }


def _json(fact: Fact) -> Any:
    """Return the fact as JSON. An infinite number or NaN becomes a text."""
    if isinstance(fact, tuple):
        return list(fact)
    return fact if not isinstance(fact, float) or isfinite(fact) else str(fact)


@lru_cache(maxsize=1024)
def _sha256(text: str) -> str:
    """Return the hash of a text. Cached, since card texts are the same in most turns."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A revision of an authored text."""

    what: str
    number: int
    changed_by: str
    changed_at: float
    """In epoch seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The origin of words that nobody wrote or said: a provider of facts, or this program."""

    by: str
    """The name of the provider, or "evennia_ai itself"."""
    revision: str
    """The first characters of the hash of the words, in place of a revision number."""


def origins_of_text(origin: str, text: str, manifest: TurnManifest) -> Iterator[Told]:
    """Yield the origins of a text that a provider of facts or this program made.

    If blocks fill a component, yield one origin for each block. Yield nothing for a text that
    somebody stored or said.
    """
    kind, _, key = origin.partition(":")
    made_of = _sources_named(manifest)
    providers = {} if made_of is None else made_of["providers"]
    if kind == "block":
        yield Told(by=f"provider {providers.get(key, key)}", revision=_revision(text))
    if kind != "component" or made_of is None:
        return
    filled = manifest.inputs.get("filled", {})
    for block, words in manifest.inputs.get("blocks", ()):
        if filled.get(block) == key:
            by = f"block:{block}, provider {providers.get(block, block)}"
            yield Told(by=by, revision=_revision(words))
    known = key in CARD_KEYS or any(key in keys for keys in made_of["components"].values())
    if not known and not _is_of_preset(key, made_of):
        yield Told(by="evennia_ai itself", revision=_revision(text))


_NAMED: Final = frozenset({"components", "card", "preset", "books", "notes", "providers"})


def _sources_named(manifest: TurnManifest) -> Mapping[str, Any] | None:
    """Return the sources in a manifest, None if the manifest does not have all kinds of them.

    They may be missing because the turn was erased, or because it comes from an imported
    transcript.
    """
    made_of = manifest.inputs.get("made_of")
    is_whole = isinstance(made_of, Mapping) and made_of.keys() >= _NAMED
    return made_of if is_whole else None


def _revision(text: str) -> str:
    return _sha256(text)[:12]


def source_of(origin: str, manifest: TurnManifest, *, npc_ref: str) -> Source | None:
    """Return the revision from which the text with this origin came, None if it has no revision.

    Facts of the moment, this program's own texts and spoken words have no revisions.
    """
    kind, _, key = origin.partition(":")
    made_of = _sources_named(manifest)
    if made_of is None or kind not in _KINDS:
        return None
    try:
        return _KINDS[kind](key, made_of, npc_ref)
    except NotStoredError:  # the revision was removed from the database
        return None


def _component(key: str, made_of: Mapping[str, Any], _: str) -> Source | None:
    for place, keys in made_of["components"].items():
        if key in keys:
            kind, _, ref = place.partition(":")
            scope = Scope(kind=kind, ref=ref)
            change = components.COMPONENTS.revision(key, keys[key], scope=scope)
            return _source(f"component {key} of {scope}", change)
    if _is_of_preset(key, made_of):
        return _preset(made_of)
    return _card(made_of) if key in CARD_KEYS else None


def _is_of_preset(key: str, made_of: Mapping[str, Any]) -> bool:
    """True if a component that no builder made came from the preset and not from the card."""
    if made_of["preset"] is None:
        return False
    card = cards.CARDS.then(*made_of["card"]) if made_of["card"] else None
    read = card_from_text(card.source) if card else None
    return is_of_preset(key, read, grants=card.grants if card else NO_GRANTS)


def _card(made_of: Mapping[str, Any]) -> Source | None:
    if made_of["card"] is None:
        return None
    name, number = made_of["card"]
    return _source(f"card {name}", cards.CARDS.revision(name, number))


def _preset(made_of: Mapping[str, Any]) -> Source:
    name, number = made_of["preset"]
    return _source(f"preset {name}", presets.PRESETS.revision(name, number))


def _entry(key: str, made_of: Mapping[str, Any], _: str) -> Source | None:
    for label, attach, number in made_of["books"]:
        if key.startswith(f"{label}#"):
            if attach == "character":
                return _card(made_of)
            return _source(f"lorebook {label}", lorebooks.LOREBOOKS.revision(label, number))
    return None


def _note(key: str, made_of: Mapping[str, Any], npc_ref: str) -> Source | None:
    for name, number in made_of["notes"]:
        if name == key:
            return _source(f"note {key}", NOTES.revision(key, number, scope=of_npc(npc_ref)))
    return None


def _source(what: str, change: Change) -> Source:
    return value_of(Source, change, what=what)


_KINDS: Final[Mapping[str, Callable[[str, Mapping[str, Any], str], Source | None]]] = {
    "component": _component,
    "lore": _entry,
    "note": _note,
}
