"""Knowledge bases: what is told of each, who may read it, where it counts, and who guards it.

A base of another backend has a row here like any other, and no pages. A lock is kept as it is
given; whether it is a lock, and what it allows whom, is for the commands. An NPC that a lock held
once guards the base for good: such a hold ends by `release` alone.
"""

import json
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final, get_args, get_type_hints

from django.db.models import F

from evennia_ai import models
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import ComponentValueError, EditConflictError, NotStoredError
from evennia_ai.engine.history.records import canonical_json, make_storable
from evennia_ai.engine.knowledge.pages.page import MEDIATIONS, BaseInfo
from evennia_ai.engine.prompt.components import Scope
from evennia_ai.engine.text.word_forms import Languages
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.core import snapshots
from evennia_ai.store.core.authoring import check_locks, check_scope
from evennia_ai.store.core.snapshots import KNOWLEDGE, Snapshots, changing, value_of
from evennia_ai.store.knowledge import page_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """An NPC that guards a base for good."""

    npc_ref: str
    held_since: float
    """In epoch seconds."""
    locks: tuple[str, ...]
    """Those with which bases of this key were removed."""


def holds(key: str) -> tuple[Hold, ...]:
    """The same with all that is known of each, the oldest first."""
    rows = models.KnowledgeHold.objects.filter(base_key=key).order_by("pk")
    return tuple(value_of(Hold, row, locks=tuple(row.locks.splitlines())) for row in rows)


def hold(keys: Iterable[str], npc_ref: str, *, by: Actor) -> None:
    """Have an NPC guard these bases for good; again changes nothing."""
    with changing(KNOWLEDGE, f"holding NPC {npc_ref}", by=by):
        for key in keys:
            models.KnowledgeHold.objects.get_or_create(
                base_key=key, npc_ref=npc_ref, defaults={"held_since": time.time()}
            )
            held_refs.written(key)


def release(key: str, npc_ref: str, *, by: Actor) -> None:
    """Let an NPC go; NotStoredError: it does not guard the base for good.

    NotPermittedError: the lock of the base, or of one of its key that was removed, forbids it.
    """
    doing = f"letting NPC {npc_ref} go"
    with changing(KNOWLEDGE, doing, by=by):
        if row := models.KnowledgeBase.objects.filter(key=key).first():
            refuse_locked(row, doing, by=by)
        kept = (lock for one in holds(key) if one.npc_ref == npc_ref for lock in one.locks)
        by.check_locks(doing, f"a knowledge base '{key}' that was removed", kept)
        gone, _ = models.KnowledgeHold.objects.filter(base_key=key, npc_ref=npc_ref).delete()
        if not gone:
            raise NotStoredError(f"hold of knowledge base '{key}'", npc_ref)
        held_refs.written(key)


def refuse_locked(row: models.KnowledgeBase, doing: str, *, by: Actor) -> None:
    """Raise NotPermittedError if the lock of a base forbids to see or to change it."""
    by.check_locks(doing, f"knowledge base '{row.key}'", [row.locks])


def _refuse_stale(row: models.KnowledgeBase, seen_revision: int | None) -> None:
    if seen_revision not in (None, row.revision):
        what = f"knowledge base '{row.key}'"
        raise EditConflictError(what, seen_revision, row.revision, row.changed_by)


def base_removed(key: str, locks: str) -> None:
    """The current transaction removes a base with this lock: its holds stay, and remember it."""
    for row in models.KnowledgeHold.objects.filter(base_key=key) if locks else ():
        known = row.locks.splitlines()
        one_line = " ".join(locks.split())
        row.locks = "\n".join(dict.fromkeys([*known, one_line]))
        row.save(update_fields=["locks"])


def _load_held(key: str) -> frozenset[str]:
    rows = models.KnowledgeHold.objects.filter(base_key=key)
    return frozenset(rows.values_list("npc_ref", flat=True))


held_refs: Final = Snapshots(KNOWLEDGE, _load_held)
"""The NPCs that guard the base of this key for good. Warm, without a query."""


MAX_TOLD: Final = 4000
"""Characters of a summary and of a hint."""
MAX_WORDS: Final = 50
"""Topics and keywords of a base."""

_BY_WORDS: Final = "words"
_KEY: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
# From wide to narrow; the first is the game.
_SCOPE_KINDS: Final[tuple[str, ...]] = get_args(get_type_hints(Scope)["kind"])


def bases() -> tuple[BaseInfo, ...]:
    """All knowledge bases by their keys. Warm, without a query."""
    return tuple(_bases().values())


def base(key: str) -> BaseInfo | None:
    """The knowledge base of this key, None where there is none. Warm, without a query."""
    return _bases().get(key)


def get_base(key: str) -> BaseInfo:
    """The knowledge base of this key; NotStoredError names those there are."""
    found = base(key)
    if found is None:
        raise no_base(key)
    return found


def save_base(info: BaseInfo, *, by: Actor, seen_revision: int | None = None) -> BaseInfo:
    """Store what is told of a base, in place of what was told; the same again changes nothing.

    Its counts and its revision are the store's own. ComponentValueError: a value is not allowed;
    nothing was written. EditConflictError: it was changed since `seen_revision`.
    NotPermittedError: its lock forbids it.
    """
    check_base(info)
    doing = f"saving knowledge base '{info.key}'"
    with changing(KNOWLEDGE, doing, by=by):
        row = models.KnowledgeBase.objects.filter(key=info.key).first()
        if row is not None:
            refuse_locked(row, doing, by=by)
            _refuse_stale(row, seen_revision)
        if row is not None and _columns(_value(row)) == _columns(info):
            return _value(row)
        new = row or models.KnowledgeBase(
            key=info.key, revision=0, indexed_for=indexed_for(conf().knowledge_languages)
        )
        for column, value in _columns(info).items():
            setattr(new, column, value)
        new.revision += 1
        new.changed_by, new.changed_at = by.name, time.time()
        new.save()
        base_written()
        return _value(new)


def set_restricted(key: str, restricted: bool, *, by: Actor) -> BaseInfo:
    """Let a base be restricted, or free; NotStoredError: there is none of this key."""
    doing = f"restricting knowledge base '{key}'"
    with changing(KNOWLEDGE, doing, by=by):
        return save_base(replace(_value(base_row(key)), restricted=restricted), by=by)


def remove_base(key: str, *, by: Actor, seen_revision: int | None = None) -> None:
    """Remove a base, its pages and its bindings; the revisions of its pages stay.

    Drafts that wait for it are refused, and its vault is emptied. NotStoredError: there is no base
    of this key. EditConflictError: it was changed since `seen_revision`. NotPermittedError: its
    lock, or that of one of its pages, forbids it.
    """
    doing = f"removing knowledge base '{key}'"
    with changing(KNOWLEDGE, doing, by=by):
        row = base_row(key)
        refuse_locked(row, doing, by=by)
        _refuse_stale(row, seen_revision)
        page_rows.refuse_locked_pages(row, doing, by=by)
        page_rows.record_removal_of_all(row, by=by)
        models.KnowledgeDraft.objects.filter(base_key=key, state="waiting").update(
            state="refused", decided_by=by.name, decided_at=time.time()
        )
        # Another base may get the key, and its lock would open this vault.
        models.VaultedChunk.objects.filter(base_key=key).delete()
        base_removed(key, row.locks)
        row.delete()
        base_written()


def no_base(key: str) -> NotStoredError:
    """The error that there is no base of this key, with those there are."""
    return NotStoredError("knowledge base", key, tuple(info.key for info in bases()))


def base_row(key: str) -> models.KnowledgeBase:
    """The row of a base, for the store alone; NotStoredError: there is none of this key."""
    row = models.KnowledgeBase.objects.filter(key=key).first()
    if row is None:
        raise no_base(key)
    return row


def base_id(key: str) -> int:
    """The id of a base's row, for the store alone; NotStoredError: there is none of this key."""
    return _indexed(key)[0]


def languages_of(key: str) -> Languages:
    """The languages in which pages of a base are found; NotStoredError: there is no such base."""
    return languages_in(_indexed(key)[1])


def indexed_for(languages: Languages) -> str:
    """What the column of this name has where pages are found in these languages."""
    return " ".join([_BY_WORDS, *languages])


def languages_in(indexed_for: str) -> Languages:
    """The languages that this column names."""
    return tuple(indexed_for.split()[1:])


def _indexed(key: str) -> tuple[int, str]:
    try:
        return _ids()[key]
    except KeyError:
        raise no_base(key) from None


def pages_changed(row: models.KnowledgeBase, *, pages: int, characters: int) -> None:
    """The current transaction made so many more (or fewer) pages and characters in a base."""
    models.KnowledgeBase.objects.filter(pk=row.pk).update(
        page_count=F("page_count") + pages,
        characters=F("characters") + characters,
        revision=F("revision") + 1,
    )
    base_written()


def base_written() -> None:
    """The current transaction changed bases, or where they are bound."""
    for kept in snapshots.of_kind(KNOWLEDGE):
        kept.all_written()


def check_base(info: BaseInfo) -> None:
    """ComponentValueError where what is told of a base is not allowed."""
    for field, (wanted, accepts) in _CHECKS.items():
        value = getattr(info, field)
        if not accepts(value):
            raise ComponentValueError(f"{field} of the knowledge base", value, wanted)
    if info.mediation == "hints" and info.backend != "database":
        wanted = f"summary, because its pages are in '{info.backend}' and hints are not there"
        raise ComponentValueError("mediation of the knowledge base", info.mediation, wanted)
    check_locks(info.locks)


def _is_told(most: int) -> Callable[[Any], bool]:
    def accepts(value: Any) -> bool:
        return isinstance(value, str) and len(value) <= most and make_storable(value) == value

    return accepts


def _are_words(value: Any) -> bool:
    is_told = _is_told(200)
    return len(value) <= MAX_WORDS and all(is_told(word) and word.strip() for word in value)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and len(value) <= 200


_TOLD: Final = (f"text of at most {MAX_TOLD} characters", _is_told(MAX_TOLD))
_WORDS: Final = (f"at most {MAX_WORDS} texts of 1 to 200 characters", _are_words)
_CHECKS: Final[Mapping[str, tuple[str, Callable[[Any], bool]]]] = MappingProxyType(
    {
        "key": (
            "a slug: small letters, digits, - or _, at most 64",
            lambda value: isinstance(value, str) and bool(_KEY.fullmatch(value)),
        ),
        "name": (
            "1 to 200 printable characters",
            lambda value: _is_name(value) and value.isprintable(),
        ),
        "summary": _TOLD,
        "hint": _TOLD,
        "topics": _WORDS,
        "keywords": _WORDS,
        "direct_characters": (
            "a whole number from 0 to 1000000",
            lambda value: type(value) is int and 0 <= value <= 1_000_000,
        ),
        "mediation": (" or ".join(MEDIATIONS), MEDIATIONS.__contains__),
        "backend": (
            "a slug of at most 16 small letters",
            lambda value: bool(re.fullmatch(r"[a-z_]{1,16}", value)),
        ),
    }
)


def _columns(info: BaseInfo) -> dict[str, Any]:
    """What an author says of a base, as columns."""
    same = ("name", "summary", "hint", "restricted", "keeps_chunks", "direct_characters")
    return {
        **{field: getattr(info, field) for field in (*same, "locks", "backend", "mediation")},
        "topics": canonical_json(list(info.topics)),
        "keywords": canonical_json(list(info.keywords)),
    }


def _value(row: models.KnowledgeBase) -> BaseInfo:
    return value_of(
        BaseInfo,
        row,
        topics=tuple(json.loads(row.topics)),
        keywords=tuple(json.loads(row.keywords)),
        pages=row.page_count,
    )


def _load() -> Mapping[str, BaseInfo]:
    rows = models.KnowledgeBase.objects.all()
    values = sorted((_value(row) for row in rows), key=lambda info: info.key)
    return MappingProxyType({info.key: info for info in values})


def _load_ids() -> Mapping[str, tuple[int, str]]:
    rows = models.KnowledgeBase.objects.values_list("key", "pk", "indexed_for")
    return MappingProxyType({key: (pk, indexed_for) for key, pk, indexed_for in rows})


_bases: Final = snapshots.Snapshot(KNOWLEDGE, _load)
_ids: Final = snapshots.Snapshot(KNOWLEDGE, _load_ids)


def bind(key: str, scope: Scope, *, by: Actor) -> None:
    """Let a base count in `scope`; again changes nothing.

    NotStoredError: there is no such base. ComponentValueError: it is no scope.
    """
    check_scope(scope, kinds=_SCOPE_KINDS[1:])
    doing = f"binding knowledge base '{key}'"
    with changing(KNOWLEDGE, doing, by=by):
        row = base_row(key)
        refuse_locked(row, doing, by=by)
        models.KnowledgeBinding.objects.get_or_create(
            base=row,
            scope_kind=scope.kind,
            scope_ref=scope.ref,
            defaults={"bound_by": by.name, "bound_at": time.time()},
        )
        base_written()


def unbind(key: str, scope: Scope, *, by: Actor) -> bool:
    """Let a base no longer count in `scope`; whether it did."""
    doing = f"unbinding knowledge base '{key}'"
    with changing(KNOWLEDGE, doing, by=by):
        row = base_row(key)
        refuse_locked(row, doing, by=by)
        removed, _ = models.KnowledgeBinding.objects.filter(
            base=row, scope_kind=scope.kind, scope_ref=scope.ref
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
    keys = sorted({key for scope in scopes for key in _bound(scope)})
    return tuple(info for key in keys if (info := base(key)))


def _load_bound(scope: Scope) -> tuple[str, ...]:
    rows = models.KnowledgeBinding.objects.filter(scope_kind=scope.kind, scope_ref=scope.ref)
    return tuple(rows.values_list("base__key", flat=True))


_bound: Final = snapshots.Snapshots(KNOWLEDGE, _load_bound)
