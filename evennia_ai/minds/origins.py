"""Origins: which revision of what a text of a past prompt came from, who made it, and when.

Facts of a moment have no author and no table of revisions: what tells them apart is the function
that told them and the hash of their words, which is the same as long as they say the same.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from evennia_ai.cards.components import CARD_KEYS
from evennia_ai.errors import NotStoredError
from evennia_ai.history.turn.manifest import TurnManifest
from evennia_ai.prompt.components import Scope
from evennia_ai.store.authored import card_revisions, components, lorebooks
from evennia_ai.store.authored.notes import note_change, note_then


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A revision of something authored."""

    what: str
    number: int
    changed_by: str
    changed_at: float
    """In epoch seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Where words that nobody stored came from."""

    by: str
    """A provider of facts, or this program."""
    revision: str
    """The start of the hash of the words."""


def told_by(origin: str, text: str, manifest: TurnManifest) -> Iterator[Told]:
    """What told a text of this origin: a block, blocks that fill a component, a text of ours.

    Nothing for what somebody stored or said.
    """
    kind, _, key = origin.partition(":")
    made_of = manifest.inputs.get("made_of") or {}
    providers = made_of.get("providers", {})
    if kind == "block":
        yield Told(by=f"provider {providers.get(key, key)}", revision=_revision(text))
    if kind != "component" or not made_of:
        return
    filled = manifest.inputs.get("filled", {})
    for block, words in manifest.inputs.get("blocks", ()):
        if filled.get(block) == key:
            by = f"block:{block}, provider {providers.get(block, block)}"
            yield Told(by=by, revision=_revision(words))
    if key not in CARD_KEYS and not any(key in keys for keys in made_of["components"].values()):
        yield Told(by="evennia_ai itself", revision=_revision(text))


def _revision(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def source_of(origin: str, manifest: TurnManifest, *, npc_ref: str) -> Source | None:
    """Where the text of this origin came from when the turn was; None where it is not kept.

    Facts of the moment, this program's own texts, the framing and what was said have none.
    """
    kind, _, key = origin.partition(":")
    made_of = manifest.inputs.get("made_of")
    if made_of is None or kind not in _KINDS:
        return None
    try:
        return _KINDS[kind](key, made_of, npc_ref)
    except NotStoredError:  # its revisions were taken out of the database
        return None


def _component(key: str, made_of: Mapping[str, Any], _: str) -> Source | None:
    for place, keys in made_of["components"].items():
        if key in keys:
            kind, _, ref = place.partition(":")
            scope = Scope(kind=kind, ref=ref)
            change = components.revision(key, keys[key], scope=scope)
            return _source(f"component {key} of {scope}", change)
    return _card(made_of) if key in CARD_KEYS else None


def _card(made_of: Mapping[str, Any]) -> Source | None:
    if made_of["card"] is None:
        return None
    name, number = made_of["card"]
    return _source(f"card {name}", card_revisions.revision(name, number)[0])


def _entry(key: str, made_of: Mapping[str, Any], _: str) -> Source | None:
    for label, attach, number in made_of["books"]:
        if key.startswith(f"{label}#"):
            if attach == "character":
                return _card(made_of)
            return _source(f"lorebook {label}", lorebooks.book_revision(label, number))
    return None


def _note(key: str, made_of: Mapping[str, Any], npc_ref: str) -> Source | None:
    """Notes are counted without those that say nothing."""
    said = [
        (position, number)
        for position, number in made_of["notes"]
        if note_then(npc_ref, position, number).content
    ]
    if not key.isdecimal() or int(key) >= len(said):
        return None
    position, number = said[int(key)]
    return _source(f"note {position}", note_change(npc_ref, position, number))


def _source(what: str, change: Any) -> Source:
    return Source(
        what=what,
        number=change.number,
        changed_by=change.changed_by,
        changed_at=change.changed_at,
    )


_KINDS: Final[Mapping[str, Callable[[str, Mapping[str, Any], str], Source | None]]] = {
    "component": _component,
    "lore": _entry,
    "note": _note,
}
