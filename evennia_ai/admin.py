"""The tables in Django's admin, to look at.

Nothing is changed here: the store writes revisions and tells other processes, a form would not.
How a value is shown stands in `admin_values`. Staff see a table with Django's permission to view
it; one whose rows hold what locks of bases, pages and lorebooks hide, or what was whispered, is for
superusers, because a table cannot be asked for whom each word in it is.
"""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin

from evennia_ai import models
from evennia_ai.admin_values import Shown, column, entry


class ReadOnlyAdmin(admin.ModelAdmin):
    """A list and a page per row, without any way to change it."""

    def has_add_permission(self, *_: Any, **__: Any) -> bool:
        return False

    def has_change_permission(self, *_: Any, **__: Any) -> bool:
        return False

    def has_delete_permission(self, *_: Any, **__: Any) -> bool:
        return False

    def get_list_display(self, request: Any) -> Sequence[Shown]:
        """Django's hook: the columns of the list, with names and dates."""
        return [column(self.model, name) for name in self.list_display]

    def get_fields(self, request: Any, obj: Any = None) -> Sequence[Shown]:
        """Django's hook: everything about one row but what is left out."""
        hidden = {"id", *(self.exclude or ())}
        return [entry(self.model, f.name) for f in self.model._meta.fields if f.name not in hidden]

    def get_readonly_fields(self, request: Any, obj: Any = None) -> Sequence[Shown]:
        """Django's hook: all of them."""
        return self.get_fields(request, obj)


class GuardedAdmin(ReadOnlyAdmin):
    """The same for superusers alone, whatever permissions staff have."""

    def has_view_permission(self, request: Any, obj: Any = None) -> bool:
        """Django's hook, asked before a list, a row, a search, a filter or a name is shown."""
        return bool(request.user.is_active and request.user.is_superuser)


@admin.register(models.Component)
class ComponentAdmin(ReadOnlyAdmin):
    list_display = (
        "registry_id",
        "key",
        "scope_kind",
        "scope_ref",
        "role",
        "injection_depth",
        "injection_order",
        "enabled",
        "revision",
    )
    list_filter = ("scope_kind", "enabled", "role")
    search_fields = ("key", "name", "content")
    ordering = ("registry_id", "key")


@admin.register(models.ComponentRevision)
class ComponentRevisionAdmin(ReadOnlyAdmin):
    list_display = (
        "key",
        "scope_kind",
        "scope_ref",
        "number",
        "action",
        "changed_by",
        "changed_at",
    )
    search_fields = ("key", "changed_by")
    ordering = ("-changed_at",)


@admin.register(models.Card)
class CardAdmin(ReadOnlyAdmin):
    list_display = ("name", "revision", "grants", "file")
    search_fields = ("name",)


@admin.register(models.CardFile)
class CardFileAdmin(ReadOnlyAdmin):
    list_display = ("sha256", "carrier")
    exclude = ("content",)


@admin.register(models.CardRevision)
class CardRevisionAdmin(ReadOnlyAdmin):
    list_display = ("name", "number", "action", "grants", "changed_by", "changed_at")
    search_fields = ("name", "changed_by")
    ordering = ("-changed_at",)


@admin.register(models.Lorebook)
class LorebookAdmin(GuardedAdmin):
    list_display = ("name", "revision", "added_by", "added_at")
    search_fields = ("name",)


@admin.register(models.CardAssignment)
class CardAssignmentAdmin(ReadOnlyAdmin):
    list_display = ("npc_ref", "card", "assigned_by", "assigned_at")


@admin.register(models.LorebookRevision)
class LorebookRevisionAdmin(GuardedAdmin):
    list_display = ("name", "number", "action", "changed_by", "changed_at")
    search_fields = ("name", "changed_by")
    ordering = ("-changed_at",)


@admin.register(models.LorebookAttachment)
class LorebookAttachmentAdmin(GuardedAdmin):
    list_display = ("lorebook", "scope_kind", "scope_ref", "attached_by", "attached_at")


@admin.register(models.KnowledgeBase)
class KnowledgeBaseAdmin(GuardedAdmin):
    list_display = (
        "key",
        "name",
        "backend",
        "restricted",
        "page_count",
        "revision",
        "changed_by",
        "changed_at",
    )
    list_filter = ("restricted", "backend")
    search_fields = ("key", "name")


@admin.register(models.KnowledgeBinding)
class KnowledgeBindingAdmin(GuardedAdmin):
    list_display = ("base", "scope_kind", "scope_ref", "bound_by", "bound_at")


@admin.register(models.KnowledgePageRevision)
class KnowledgePageRevisionAdmin(GuardedAdmin):
    """Who changed which page; what it says is for those whom its locks let in."""

    list_display = (
        "base_key",
        "namespace",
        "title",
        "number",
        "action",
        "changed_by",
        "changed_at",
    )
    search_fields = ("base_key", "title", "changed_by")
    ordering = ("-changed_at",)
    exclude = ("body", "meta")


@admin.register(models.Note)
class NoteAdmin(ReadOnlyAdmin):
    list_display = ("npc_ref", "position", "depth", "role", "every", "revision", "changed_by")


@admin.register(models.NoteRevision)
class NoteRevisionAdmin(ReadOnlyAdmin):
    list_display = ("npc_ref", "position", "number", "action", "changed_by", "changed_at")


@admin.register(models.Memory)
class MemoryAdmin(GuardedAdmin):
    list_display = ("npc_ref", "about", "text", "importance", "learnt", "author", "created_at")
    list_filter = ("learnt",)
    search_fields = ("text",)
    ordering = ("-created_at",)


@admin.register(models.MemoryRevision)
class MemoryRevisionAdmin(GuardedAdmin):
    list_display = ("npc_ref", "memory_id", "number", "action", "changed_by", "changed_at")
    ordering = ("-changed_at",)


@admin.register(models.Conversation)
class ConversationAdmin(ReadOnlyAdmin):
    list_display = ("npc_ref", "kind", "partner_ref", "place_ref", "origin", "opened_at")


@admin.register(models.LoreState)
class LoreStateAdmin(GuardedAdmin):
    list_display = ("conversation", "turn", "updated_at")
    list_select_related = ("conversation",)


@admin.register(models.Record)
class RecordAdmin(GuardedAdmin):
    list_display = ("conversation", "segment", "seq", "kind", "role", "name", "created_at")
    list_filter = ("kind",)
    list_select_related = ("conversation",)
    ordering = ("-id",)


@admin.register(models.Turn)
class TurnAdmin(GuardedAdmin):
    list_display = ("npc_ref", "number", "state", "tokens", "model", "outcome", "created_at")
    list_filter = ("state",)
    ordering = ("-id",)
