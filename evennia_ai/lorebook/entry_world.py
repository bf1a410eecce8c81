"""Entries of SillyTavern's world files."""

from collections.abc import Mapping
from typing import Any

from evennia_ai.foreign.strict_json import ListOf
from evennia_ai.lorebook.entry_app import (
    AppEntry,
    chance_of,
    doubts,
    place_of,
    said,
)
from evennia_ai.lorebook.entry_extension import read_own
from evennia_ai.lorebook.entry_fields import EntryFields
from evennia_ai.lorebook.entry_values import Content, Flag, Identifier, Number


class _WorldEntry(AppEntry):
    uid: Identifier | None = None
    key: ListOf[str] | None = None
    keysecondary: ListOf[str] | None = None
    comment: str | None = None
    content: Content | None = None
    constant: Flag | None = None
    selective: Flag | None = None
    order: Number | None = None
    disable: Flag | None = None


def from_world(raw: Mapping[str, Any], *, default_uid: str, where: str) -> EntryFields:
    """What the entry says; pydantic's or a FormatError names the field that is wrong.

    As in the application, a chance counts only with `useProbability` and secondary keys only with
    `selective`.
    """
    entry = _WorldEntry.model_validate(raw)
    own = read_own(raw.get("evennia_ai"), where=f"{where}.evennia_ai")
    patterns = "by_form" if own.patterns is None else own.patterns
    order = 100 if entry.order is None else entry.order
    return EntryFields(
        uid=default_uid if entry.uid is None else entry.uid,
        name=entry.comment or "",
        keys=tuple(entry.key or ()),
        secondary_keys=tuple(entry.keysecondary or ()),
        selective=bool(entry.selective and entry.keysecondary and patterns != "all"),
        patterns=patterns,
        enabled=not entry.disable,
        constant=bool(entry.constant and patterns != "all"),
        content=entry.content or "",
        position=place_of(entry, "before"),
        order=order,
        priority=order if own.priority is None else own.priority,
        case_sensitive=entry.case_sensitive,
        chance=chance_of(entry, used_unless_said=False),
        **said(entry),
        own=own,
        notices=tuple(doubts(entry)),
    )
