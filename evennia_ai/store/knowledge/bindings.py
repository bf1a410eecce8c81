"""Bindings: where a knowledge base counts, read without a query."""

import time
from collections.abc import Collection
from typing import Final, get_args, get_type_hints

from evennia_ai import models
from evennia_ai.knowledge.pages.pages import BaseInfo
from evennia_ai.prompt.components import Scope
from evennia_ai.store.core import snapshots
from evennia_ai.store.core.checks import check_scope
from evennia_ai.store.core.state import KNOWLEDGE, changing
from evennia_ai.store.knowledge.knowledge_bases import base, base_row, base_written

# From wide to narrow; the first is the game.
_SCOPE_KINDS: Final[tuple[str, ...]] = get_args(get_type_hints(Scope)["kind"])


def bind(key: str, scope: Scope, *, by: str) -> None:
    """Let a base count in `scope`; again changes nothing.

    NotStoredError: there is no such base. ComponentValueError: it is no scope.
    """
    check_scope(scope, kinds=_SCOPE_KINDS[1:])
    with changing(KNOWLEDGE, f"binding knowledge base '{key}'"):
        models.KnowledgeBinding.objects.get_or_create(
            base=base_row(key),
            scope_kind=scope.kind,
            scope_ref=scope.ref,
            defaults={"bound_by": by, "bound_at": time.time()},
        )
        base_written()


def unbind(key: str, scope: Scope, *, by: str) -> bool:
    """Let a base no longer count in `scope`; whether it did."""
    with changing(KNOWLEDGE, f"unbinding knowledge base '{key}' for {by}"):
        removed, _ = models.KnowledgeBinding.objects.filter(
            base=base_row(key), scope_kind=scope.kind, scope_ref=scope.ref
        ).delete()
        base_written()
    return removed > 0


def bindings(key: str) -> tuple[Scope, ...]:
    """Where a base is bound, from wide to narrow."""
    rows = models.KnowledgeBinding.objects.filter(base__key=key)
    scopes = [
        Scope(kind=kind, ref=ref) for kind, ref in rows.values_list("scope_kind", "scope_ref")
    ]
    return tuple(sorted(scopes, key=lambda scope: (_SCOPE_KINDS.index(scope.kind), scope.ref)))


def bound(scopes: Collection[Scope]) -> tuple[BaseInfo, ...]:
    """The bases that count in any of `scopes`, each once, by their keys. Warm, without a query."""
    keys = sorted({key for scope in scopes for key in _bound.read(scope)})
    return tuple(info for key in keys if (info := base(key)))


def _load_bound(scope: Scope) -> tuple[str, ...]:
    rows = models.KnowledgeBinding.objects.filter(scope_kind=scope.kind, scope_ref=scope.ref)
    return tuple(rows.values_list("base__key", flat=True))


_bound: Final = snapshots.Snapshots(KNOWLEDGE, _load_bound)
