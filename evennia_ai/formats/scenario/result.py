"""Describe a composed turn of a scenario as plain values that can be written as JSON."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Any, Final

from evennia_ai.engine.lorebook.activation.candidate import ActiveEntry
from evennia_ai.engine.lorebook.activation.placed_entries import outlets_of
from evennia_ai.engine.lorebook.book import decorators_of, label_of
from evennia_ai.engine.lorebook.entry import AT_MENTION, IN_HISTORY
from evennia_ai.engine.prompt.fragments import Fragment, fragments_sharing, merge_fragments
from evennia_ai.engine.prompt.messages import Message
from evennia_ai.engine.prompt.notes import note_origin
from evennia_ai.engine.prompt.templates.value_names import ALWAYS_KNOWN, CLOCKED, FIELDS, SAID_LAST
from evennia_ai.engine.prompt.trace import Verdict
from evennia_ai.formats.scenario.running import ComposedTurn

POSITIONS: Final = (
    *("before", "after", "note_top", "note_bottom", "examples_before", "examples_after"),
)

AROUND_NOTE: Final = frozenset({"note_top", "note_bottom"})


def result_of(turn: ComposedTurn) -> dict[str, Any]:
    """Return the result of one turn as a dict of plain values (docs/reference/scenarios.md)."""
    prompt, lore = turn.made.prompt, turn.made.lore
    follow = _messages_after(prompt.messages)
    return {
        "messages": [_message(message) for message in prompt.messages],
        "activated": [_activated(entry, lore.causes, follow) for entry in lore.entries],
        "placed": _lore_by_position(prompt.messages, lore.entries, follow),
        "notes": _notes(turn),
        "timed": _timed_entries(turn),
        "decorators": _decorators(turn),
        "verdicts": [_verdict(verdict) for verdict in prompt.verdicts],
        "tokens": {
            "total": prompt.tokens,
            "limit": prompt.limit_tokens,
            "by_origin": dict(prompt.by_origin),
        },
        "cache": _cache(turn),
        "notices": list(_notices(turn)),
        "sha256": prompt.sha256,
    }


def _cache(turn: ComposedTurn) -> dict[str, Any]:
    """Return the cache breakpoints, and how much of the previous turn's prompt is unchanged."""
    prompt = turn.made.prompt
    account = prompt.account(turn.before) if turn.before is not None else None
    return {
        "breakpoints": list(prompt.breakpoints),
        "stable_tokens": prompt.stable_tokens,
        "shared_tokens": account.shared_tokens if account else None,
        "broken_by": account.broken_by if account else None,
        "reason": account.reason if account else None,
    }


def _message(message: Message) -> dict[str, Any]:
    return {
        "role": message.role,
        "name": message.name,
        "content": message.content,
        "block": message.block,
        "injected": message.injected,
        "parts": [
            {"origin": part.origin, "start": part.start, "end": part.end} for part in message.parts
        ],
    }


def _activated(
    entry: ActiveEntry, causes: Mapping[str, str], follow: Mapping[str, int]
) -> dict[str, Any]:
    return {
        "book": entry.book,
        "uid": entry.uid,
        "entry": entry.name,
        "content": entry.text,
        "position": entry.position,
        "depth": _depth(entry, follow),
        "role": entry.role,
        "order": entry.order,
        "cause": causes[entry.identity],
    }


def _lore_by_position(
    messages: Sequence[Message], entries: Iterable[ActiveEntry], follow: Mapping[str, int]
) -> dict[str, Any]:
    """Return a dict of the labels of active lore entries by position, from top to bottom.

    Entries with the same depth and role form a list, and so do entries next to the same component.
    Entries next to a message with one of their keys are listed by the depth of that message. The
    text of an outlet belongs to the component that shows the outlet.
    """
    active = {entry.origin: entry for entry in entries}
    parts = chain.from_iterable(message.parts for message in messages)
    here: dict[str, list[str]] = {position: [] for position in POSITIONS}
    deep: dict[str, dict[tuple[int | None, str], list[str]]] = {name: {} for name in IN_HISTORY}
    anchored: dict[tuple[str, str], list[str]] = {}
    for entry in [active[part.origin] for part in parts if part.origin in active]:
        if entry.depth is not None:
            spots = deep[AT_MENTION if entry.beside is not None else "depth"]
            spots.setdefault((_depth(entry, follow), entry.role), []).append(entry.label)
        elif entry.position in here:
            here[entry.position].append(entry.label)
        elif entry.anchor is not None:
            beside = (entry.anchor.component, entry.anchor.side)
            anchored.setdefault(beside, []).append(entry.label)
    return {
        **here,
        **{name: _at_depths(spots) for name, spots in deep.items()},
        "outlets": {
            name: [entry.label for entry in members]
            for name, members in outlets_of(active.values()).items()
        },
        "anchors": [
            {"component": component, "side": side, "entries": labels}
            for (component, side), labels in anchored.items()
        ],
    }


def _at_depths(spots: Mapping[tuple[int | None, str], list[str]]) -> list[dict[str, Any]]:
    return [
        {"depth": depth, "role": role, "entries": labels} for (depth, role), labels in spots.items()
    ]


def _depth(entry: ActiveEntry, follow: Mapping[str, int]) -> int | None:
    """Return the depth of a lore entry from the newest message, None if it has no depth."""
    return follow.get(entry.origin, entry.depth) if entry.from_oldest else entry.depth


def _messages_after(messages: Sequence[Message]) -> dict[str, int]:
    """Return how many messages of the history follow each injected text, by origin of the text."""
    after: dict[str, int] = {}
    count = 0
    for message in reversed(messages):
        if message.injected:
            after.update((part.origin, count) for part in message.parts)
        elif message.block == "history" and message.counted:
            count += 1
    return after


def _notes(turn: ComposedTurn) -> list[dict[str, Any]]:
    """Return for each author's note whether it was due, and its text with the lore around it."""
    inputs = turn.inputs
    users = inputs.history.user_messages + (inputs.event is not None)
    around = {e.origin for e in turn.made.lore.entries if e.position in AROUND_NOTE}
    sent = turn.made.prompt.messages
    staying = [message for message in sent if message.stays]
    goes_in = {part.origin for m in sent if m.injected for part in m.parts}
    return [
        {
            "due": origin in goes_in if note.mode == "tail" else note.is_due(users),
            "content": _note_text(
                {origin, *(around if index == 0 else ())}, turn.made.prompt.fragments, staying
            ),
        }
        for index, note in enumerate(turn.inputs.notes.given)
        for origin in (note_origin(note, index),)
    ]


def _note_text(
    origins: AbstractSet[str], fragments: Sequence[Fragment], staying: Iterable[Message]
) -> str:
    """Return the joined text of fragments with these origins, as it is in the prompt.

    If there is no such fragment, return the text of the message with these origins that stays in
    the history, else "". Other texts in a shared message are not included.
    """
    found = [piece for piece in fragments if piece.claim.origin in origins]
    if found and (shared := found[0].claim.shared) is not None:
        return merge_fragments(shared, fragments_sharing(shared, found)).content
    if found:
        return found[0].message.content
    return next((m.content for m in staying if not origins.isdisjoint(m.origins)), "")


def _timed_entries(turn: ComposedTurn) -> dict[str, list[str]]:
    """Return the labels of lore entries that are sticky or in cooldown after the turn."""
    if turn.inputs.rules.lore.dry_run:
        return {"sticky": [], "cooldown": []}
    after = turn.made.lore.after
    return {
        "sticky": sorted(map(label_of, after.sticky)),
        "cooldown": sorted(map(label_of, after.cooldown)),
    }


def _decorators(turn: ComposedTurn) -> dict[str, list[list[Any]]]:
    """Return the decorators of lore entries that had an effect, by label of the active entry."""
    found: dict[str, list[list[Any]]] = {entry.label: [] for entry in turn.made.lore.entries}
    for name, decorators in decorators_of(turn.inputs.books).items():
        found[name] = [[decorator, list(values)] for decorator, values in decorators]
    return found


def _verdict(verdict: Verdict) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "stage": verdict.stage,
        "item": verdict.item,
        "kept": verdict.kept,
        "reason": verdict.reason,
        "tokens": verdict.tokens,
    }
    if verdict.cause is not None:
        plain["cause"] = verdict.cause
    return plain


def _notices(turn: ComposedTurn) -> Iterable[str]:
    """Yield a scenario's notices: on files, unknown names and texts that prevent caching."""
    yield from turn.notices
    inputs = turn.inputs
    named = (*ALWAYS_KNOWN, *SAID_LAST, *FIELDS, *(CLOCKED if inputs.now else ()))
    known = {**dict.fromkeys(named, ""), **inputs.values}
    for compiled in (*inputs.components.compiled.members, *inputs.notes.compiled.members):
        template = compiled.template
        if template is None or not compiled.component.enabled:
            continue
        for name in template.unknown(known):
            yield f"{compiled.origin}: the name '{name}' is unknown and was left as written"
        if inputs.rules.layout == "cache" and compiled.rolls_before_history("cache"):
            yield (
                f"{compiled.origin}: is before the history and changes in every turn, so providers"
                " cannot cache the prompt from there on; make it volatile"
            )
