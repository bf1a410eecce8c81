"""How the admin shows what the tables hold: names for ids, dates for seconds, JSON with its lines.

What stands in the tables was written by anybody: it is shown as text, and nothing of it is markup.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

from django.db import models as fields
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import localtime
from evennia.objects.models import ObjectDB
from evennia.utils.ansi import strip_ansi

from evennia_ai.models import Conversation

Shown = str | Callable[[Any], str]
"""A field by its name, or a function that shows it."""

NOTHING: Final = "-"
GAME: Final = "the game"
_OF_OBJECTS: Final = ("room", "npc", "player")
_REFERENCES: Final = frozenset({"about"})
_DATES: Final = "%Y-%m-%d %H:%M:%S %Z"


@cache
def column(model: Any, name: str) -> Shown:
    """The field as a list shows it, in one line."""
    show = _line_of(model, name)
    return name if show is None else _described(show, name)


@cache
def entry(model: Any, name: str) -> Shown:
    """The field as the page of one row shows it: with links, and long texts whole."""
    if isinstance(model._meta.get_field(name), fields.TextField):
        return _described(lambda row: _block(str(getattr(row, name))), name)
    if _is_reference(name):
        return _described(lambda row: _linked(_reference(row, name)), name)
    return column(model, name)


def day_of(seconds: float | None) -> str:
    """A moment in the time zone of the server, "-" for none."""
    if seconds is None:
        return NOTHING
    try:
        return str(localtime(datetime.fromtimestamp(seconds, tz=UTC)).strftime(_DATES))
    except (OverflowError, OSError, ValueError):  # what was imported may say any number
        return str(seconds)


def name_of(ref: str) -> str:
    """The object that a reference means: its name and its id."""
    if not ref:
        return NOTHING
    known = _object(ref)
    if known is None:
        return f"#{ref} (gone)" if _is_id(ref) else ref
    return f"{strip_ansi(str(known.db_key))} (#{ref})"


def conversation_name(conversation: Conversation) -> str:
    """Who talks in it with whom, or where."""
    other = conversation.partner_ref or conversation.place_ref
    return f"{name_of(conversation.npc_ref)}, {conversation.kind} {name_of(other)}"


def _line_of(model: Any, name: str) -> Callable[[Any], str] | None:
    """What shows a field in one line, None where Django shows it well."""
    field = model._meta.get_field(name)
    if _is_reference(name):
        return lambda row: name_of(_reference(row, name))
    if isinstance(field, fields.FloatField) and name.endswith("_at"):
        return lambda row: day_of(getattr(row, name))
    if field.related_model is Conversation:
        return lambda row: conversation_name(getattr(row, name))
    return None


def _described(show: Callable[[Any], str], name: str) -> Callable[[Any], str]:
    """The function with the heading and the order of its field."""

    def shown(row: Any) -> str:
        return show(row)

    shown.short_description = name.removesuffix("_ref").replace("_", " ")  # type: ignore[attr-defined]
    shown.admin_order_field = name  # type: ignore[attr-defined]
    return shown


def _is_reference(name: str) -> bool:
    return name.endswith("_ref") or name in _REFERENCES


def _reference(row: Any, name: str) -> str:
    """The id of the object that the field means; a scope of another kind is its own name."""
    ref = str(getattr(row, name))
    if name == "scope_ref" and row.scope_kind not in _OF_OBJECTS:
        return f"{ref} " if ref else ""  # a zone may be called by a number
    return ref


def _linked(ref: str) -> str:
    """The name of an object, as a link to its own page."""
    if _object(ref) is None:
        return name_of(ref)
    where = reverse("admin:objects_objectdb_change", args=[int(ref)])
    return str(format_html('<a href="{}">{}</a>', where, name_of(ref)))


def _block(text: str) -> SafeString | str:
    """A text with its lines; JSON with one value a line."""
    if not text:
        return NOTHING
    return format_html('<pre style="white-space: pre-wrap">{}</pre>', _readable(text))


def _readable(text: str) -> str:
    if not text.startswith(("{", "[")):
        return text
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):  # it only looks like JSON
        return text


def _object(ref: str) -> Any | None:
    """The object of this id, kept in memory by Evennia once it was asked for."""
    return ObjectDB.objects.get_id(int(ref)) if _is_id(ref) else None


def _is_id(ref: str) -> bool:
    return ref.isascii() and ref.isdecimal() and len(ref) < 19
