"""Show our tables in Django's admin, read-only.

Nothing can be changed here, because only the store writes revisions and notifies other processes.
Staff see a table if they have Django's permission to view it. Some tables contain whispers, or
texts that locks of knowledge bases, pages and lorebooks hide. A table cannot check a lock for each
word in it, so only superusers see these tables.

The pages show names instead of ids, dates instead of seconds, and JSON with line breaks. All texts
are escaped, so that markup in them has no effect.
"""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any, Final

from django.contrib import admin
from django.db import models as fields
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import localtime
from evennia.objects.models import ObjectDB
from evennia.utils.ansi import strip_ansi

from evennia_ai import models
from evennia_ai.engine.history.turn.manifest import text_in_row
from evennia_ai.models import Conversation

Shown = str | Callable[[Any], str]
"""What a column shows: the name of a field, or a function that renders it."""

NOTHING: Final = "-"
GAME: Final = "the game"
_OF_OBJECTS: Final = ("room", "npc", "player")
_REFERENCES: Final = frozenset({"about"})
_DATES: Final = "%Y-%m-%d %H:%M:%S %Z"


@cache
def column(model: Any, name: str) -> Shown:
    """Return what a list shows of a field, in one line."""
    show = _line_renderer(model, name)
    return name if show is None else _as_column(show, name)


@cache
def entry(model: Any, name: str) -> Shown:
    """Return what the page of one row shows of a field: with links, and long texts complete."""
    if model is models.Turn and name == "manifest":
        return _as_column(lambda row: _as_block(text_in_row(row.manifest)), name)
    if isinstance(model._meta.get_field(name), fields.TextField):
        return _as_column(lambda row: _as_block(str(getattr(row, name))), name)
    if _is_reference(name):
        return _as_column(lambda row: _link_to_object(_reference_in(row, name)), name)
    return column(model, name)


def day_of(seconds: float | None) -> str:
    """Return a time in the time zone of the server, or "-" for None."""
    if seconds is None:
        return NOTHING
    try:
        return str(localtime(datetime.fromtimestamp(seconds, tz=UTC)).strftime(_DATES))
    except (OverflowError, OSError, ValueError):  # An imported row may have any number as its time.
        return str(seconds)


def name_of(ref: str) -> str:
    """Return the name and the id of the object with this reference."""
    if not ref:
        return NOTHING
    known = _object_with_id(ref)
    if known is None:
        return f"#{ref} (gone)" if _is_id(ref) else ref
    return f"{strip_ansi(str(known.db_key))} (#{ref})"


def conversation_name(conversation: Conversation) -> str:
    """Return the NPC of a conversation, and its partner or room, as text."""
    other = conversation.partner_ref or conversation.place_ref
    return f"{name_of(conversation.npc_ref)}, {conversation.kind} {name_of(other)}"


def _line_renderer(model: Any, name: str) -> Callable[[Any], str] | None:
    """Return a function that renders a field in one line, or None to leave it to Django."""
    field = model._meta.get_field(name)
    if _is_reference(name):
        return lambda row: name_of(_reference_in(row, name))
    if isinstance(field, fields.FloatField) and name.endswith("_at"):
        return lambda row: day_of(getattr(row, name))
    if field.related_model is Conversation:
        return lambda row: conversation_name(getattr(row, name))
    return None


def _as_column(show: Callable[[Any], str], name: str) -> Callable[[Any], str]:
    """Return a function for a column, with the heading and the sort order of its field."""

    def shown(row: Any) -> str:
        return show(row)

    shown.short_description = name.removesuffix("_ref").replace("_", " ")  # type: ignore[attr-defined]
    shown.admin_order_field = name  # type: ignore[attr-defined]
    return shown


def _is_reference(name: str) -> bool:
    return name.endswith("_ref") or name in _REFERENCES


def _reference_in(row: Any, name: str) -> str:
    """Return the id of the object that a field refers to.

    The reference of a zone is a name. It gets a space, so that a name of digits is not taken for an
    id.
    """
    ref = str(getattr(row, name))
    if name == "scope_ref" and row.scope_kind not in _OF_OBJECTS:
        return f"{ref} " if ref else ""  # A zone's name may be a number.
    return ref


def _link_to_object(ref: str) -> str:
    """Return the name of an object as a link to the object's page in the admin."""
    if _object_with_id(ref) is None:
        return name_of(ref)
    where = reverse("admin:objects_objectdb_change", args=[int(ref)])
    return str(format_html('<a href="{}">{}</a>', where, name_of(ref)))


def _as_block(text: str) -> SafeString | str:
    """Return a text as HTML that keeps its line breaks. JSON gets one value per line."""
    if not text:
        return NOTHING
    return format_html('<pre style="white-space: pre-wrap">{}</pre>', _readable(text))


def _readable(text: str) -> str:
    if not text.startswith(("{", "[")):
        return text
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):  # The text only looks like JSON.
        return text


def _object_with_id(ref: str) -> Any | None:
    """Return the object with this id, or None. Evennia caches it."""
    return ObjectDB.objects.get_id(int(ref)) if _is_id(ref) else None


def _is_id(ref: str) -> bool:
    return ref.isascii() and ref.isdecimal() and len(ref) < 19


class ReadOnlyAdmin(admin.ModelAdmin):
    """A list of rows, and a page per row, that nobody can change."""

    def has_add_permission(self, *_: Any, **__: Any) -> bool:
        return False

    def has_change_permission(self, *_: Any, **__: Any) -> bool:
        return False

    def has_delete_permission(self, *_: Any, **__: Any) -> bool:
        return False

    def get_list_display(self, request: Any) -> Sequence[Shown]:
        """Return the columns of the list. A hook of Django."""
        return [column(self.model, name) for name in self.list_display]

    def get_fields(self, request: Any, obj: Any = None) -> Sequence[Shown]:
        """Return all fields of a row except the excluded ones. A hook of Django."""
        hidden = {"id", *(self.exclude or ())}
        return [entry(self.model, f.name) for f in self.model._meta.fields if f.name not in hidden]

    def get_readonly_fields(self, request: Any, obj: Any = None) -> Sequence[Shown]:
        """Return all fields, because none can be changed. A hook of Django."""
        return self.get_fields(request, obj)


class GuardedAdmin(ReadOnlyAdmin):
    """A read-only table that only superusers see, whatever permissions staff have."""

    def has_view_permission(self, request: Any, obj: Any = None) -> bool:
        """True if the user may see the table and its rows. A hook of Django."""
        return bool(request.user.is_active and request.user.is_superuser)


_CHANGE: Final = ("number", "action", "changed_by", "changed_at")
_for_staff: Final = partial(admin.site.register, admin_class=ReadOnlyAdmin)
_for_superusers: Final = partial(admin.site.register, admin_class=GuardedAdmin)

_for_staff(
    models.Component,
    list_display=(
        "registry_id",
        "key",
        "scope_kind",
        "scope_ref",
        "role",
        "injection_depth",
        "injection_order",
        "enabled",
        "revision",
    ),
    list_filter=("scope_kind", "enabled", "role"),
    search_fields=("key", "name", "content"),
    ordering=("registry_id", "key"),
)
_for_staff(
    models.Card, list_display=("name", "revision", "grants", "file"), search_fields=("name",)
)
_for_staff(
    models.Preset, list_display=("name", "revision", "grants", "file"), search_fields=("name",)
)
_for_staff(
    models.RegexScript,
    list_display=("position", "name", "revision"),
    search_fields=("name",),
    ordering=("position",),
)
_for_staff(
    models.Note,
    list_display=("npc_ref", "key", "depth", "role", "every", "revision"),
)
# Lorebooks may contain texts that their locks, or the locks of entries, hide.
_for_superusers(models.Lorebook, list_display=("name", "revision", "file"), search_fields=("name",))
_for_superusers(
    models.Revision,
    list_display=("kind", "scope_kind", "scope_ref", "key", *_CHANGE),
    list_filter=("kind", "action"),
    search_fields=("key", "changed_by"),
    ordering=("-changed_at",),
)
_for_superusers(models.SourceFile, list_display=("sha256", "carrier"), exclude=("content",))
_for_superusers(
    models.Assignment,
    list_display=("kind", "key", "scope_kind", "scope_ref", "assigned_by", "assigned_at"),
    list_filter=("kind",),
)
_for_superusers(
    models.KnowledgeBase,
    list_display=(
        "key",
        "name",
        "backend",
        "restricted",
        "page_count",
        "revision",
        "changed_by",
        "changed_at",
    ),
    list_filter=("restricted", "backend"),
    search_fields=("key", "name"),
)
_for_superusers(
    models.KnowledgeBinding,
    list_display=("base", "scope_kind", "scope_ref", "bound_by", "bound_at"),
)
# Staff see who changed which page. The texts of the change are for people whom the locks let in.
_for_superusers(
    models.KnowledgePageRevision,
    list_display=("base_key", "namespace", "title", *_CHANGE),
    search_fields=("base_key", "title", "changed_by"),
    ordering=("-changed_at",),
    exclude=("body", "meta"),
)
_for_superusers(
    models.Memory,
    list_display=("npc_ref", "about", "text", "importance", "learnt", "author", "created_at"),
    list_filter=("learnt",),
    search_fields=("text",),
    ordering=("-created_at",),
)
_for_superusers(
    models.MemoryRevision,
    list_display=("npc_ref", "memory_id", *_CHANGE),
    ordering=("-changed_at",),
)
_for_staff(
    models.Conversation,
    list_display=("npc_ref", "kind", "partner_ref", "place_ref", "origin", "opened_at"),
)
_for_superusers(
    models.LoreState,
    list_display=("conversation", "turn", "updated_at"),
    list_select_related=("conversation",),
)
_for_superusers(
    models.Record,
    list_display=("conversation", "segment", "seq", "kind", "role", "name", "created_at"),
    list_filter=("kind",),
    list_select_related=("conversation",),
    ordering=("-id",),
)
_for_superusers(
    models.PlayerReport,
    list_display=("turn", "reporter_ref", "why", "reported_at"),
    list_select_related=("turn",),
    ordering=("-id",),
)
_for_superusers(
    models.Turn,
    list_display=("npc_ref", "number", "state", "tokens", "model", "outcome", "created_at"),
    list_filter=("state",),
    ordering=("-id",),
)
