"""Knowledge bases: their settings, locks and scopes, and the NPCs that guard them.

A base with another backend has a row here, but no pages. A lock string is stored as it is; the
commands decide whether it is valid and what it allows. If the lock of a base has ever limited an
NPC, that NPC guards the base permanently. Only `release_npc` ends this.
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
    """A record that an NPC guards a knowledge base permanently."""

    npc_ref: str
    held_since: float
    """The time in seconds since 1970."""
    locks: tuple[str, ...]
    """The locks that bases with this key had when they were removed."""


def list_holds(key: str) -> tuple[Hold, ...]:
    """Return the NPCs that guard a knowledge base permanently, oldest record first."""
    rows = models.KnowledgeHold.objects.filter(base_key=key).order_by("pk")
    return tuple(value_of(Hold, row, locks=tuple(row.locks.splitlines())) for row in rows)


def hold_npc(keys: Iterable[str], npc_ref: str, *, by: Actor) -> None:
    """Make an NPC guard these knowledge bases permanently. Repeating the call changes nothing."""
    with changing(KNOWLEDGE, f"holding NPC {npc_ref}", by=by):
        for key in keys:
            models.KnowledgeHold.objects.get_or_create(
                base_key=key, npc_ref=npc_ref, defaults={"held_since": time.time()}
            )
            held_refs.note_change(key)


def release_npc(key: str, npc_ref: str, *, by: Actor) -> None:
    """Stop an NPC from guarding a knowledge base permanently.

    Raises:
        NotStoredError: the NPC does not guard the base permanently.
        NotPermittedError: the lock of the base, or of a removed base with the same key, does not
            let `by` in.
    """
    doing = f"letting NPC {npc_ref} go"
    with changing(KNOWLEDGE, doing, by=by):
        if row := models.KnowledgeBase.objects.filter(key=key).first():
            refuse_locked(row, doing, by=by)
        kept = (lock for one in list_holds(key) if one.npc_ref == npc_ref for lock in one.locks)
        by.check_locks(doing, f"a knowledge base '{key}' that was removed", kept)
        gone, _ = models.KnowledgeHold.objects.filter(base_key=key, npc_ref=npc_ref).delete()
        if not gone:
            raise NotStoredError(f"guard of knowledge base '{key}'", npc_ref)
        held_refs.note_change(key)


def refuse_locked(row: models.KnowledgeBase, doing: str, *, by: Actor) -> None:
    """Check that the lock of a knowledge base lets a person see and change it.

    Raises:
        NotPermittedError: the lock forbids it.
    """
    by.check_locks(doing, f"knowledge base '{row.key}'", [row.locks])


def _refuse_stale(row: models.KnowledgeBase, seen_revision: int | None) -> None:
    if seen_revision not in (None, row.revision):
        what = f"knowledge base '{row.key}'"
        raise EditConflictError(what, seen_revision, row.revision, row.changed_by)


def keep_locks_in_holds(key: str, locks: str) -> None:
    """Copy the lock of a knowledge base to the records of the NPCs that guard it.

    Call this in the transaction that removes the base.
    """
    for row in models.KnowledgeHold.objects.filter(base_key=key) if locks else ():
        known = row.locks.splitlines()
        one_line = " ".join(locks.split())
        row.locks = "\n".join(dict.fromkeys([*known, one_line]))
        row.save(update_fields=["locks"])


def _load_held(key: str) -> frozenset[str]:
    rows = models.KnowledgeHold.objects.filter(base_key=key)
    return frozenset(rows.values_list("npc_ref", flat=True))


held_refs: Final = Snapshots(KNOWLEDGE, _load_held)
"""Return the references of the NPCs that guard a base permanently.

No query is made if they are in memory.
"""


MAX_TOLD: Final = 4000
"""The most characters of a summary or a hint."""
MAX_WORDS: Final = 50
"""The most topics or keywords of a base."""

_BY_WORDS: Final = "words"
_KEY: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
# The kinds of scopes, from wide to narrow. The first one is the game.
_SCOPE_KINDS: Final[tuple[str, ...]] = get_args(get_type_hints(Scope)["kind"])


def list_bases() -> tuple[BaseInfo, ...]:
    """Return all knowledge bases, sorted by key. No query is made if they are in memory."""
    return tuple(_bases().values())


def base_or_none(key: str) -> BaseInfo | None:
    """Return the knowledge base with this key, or None. No query is made if it is in memory."""
    return _bases().get(key)


def get_base(key: str) -> BaseInfo:
    """Return the knowledge base with this key.

    Raises:
        NotStoredError: there is none; the message lists the keys that exist.
    """
    found = base_or_none(key)
    if found is None:
        raise no_base(key)
    return found


def save_base(info: BaseInfo, *, by: Actor, seen_revision: int | None = None) -> BaseInfo:
    """Store the settings of a knowledge base. The same settings again change nothing.

    The store itself sets the counts of pages and the revision.

    Raises:
        ComponentValueError: a value is not allowed.
        EditConflictError: the base was changed after `seen_revision`.
        NotPermittedError: the lock of the base forbids the change.
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
        note_base_written()
        return _value(new)


def set_restricted(key: str, restricted: bool, *, by: Actor) -> BaseInfo:
    """Set whether a knowledge base is restricted.

    Raises:
        NotStoredError: there is no such base.
    """
    doing = f"restricting knowledge base '{key}'"
    with changing(KNOWLEDGE, doing, by=by):
        return save_base(replace(_value(base_row(key)), restricted=restricted), by=by)


def remove_base(key: str, *, by: Actor, seen_revision: int | None = None) -> None:
    """Remove a knowledge base, its pages and its assignments to scopes.

    The revisions of its pages stay. Waiting drafts are refused, and the vault is emptied.

    Raises:
        NotStoredError: there is no base with this key.
        EditConflictError: it was changed after `seen_revision`.
        NotPermittedError: the lock of the base, or of a page, forbids it.
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
        # Emptied because the lock of a later base with the same key must not open this vault.
        models.VaultedChunk.objects.filter(base_key=key).delete()
        keep_locks_in_holds(key, row.locks)
        row.delete()
        note_base_written()


def no_base(key: str) -> NotStoredError:
    """Return the error for an unknown key of a knowledge base. It lists the keys that exist."""
    return NotStoredError("knowledge base", key, tuple(info.key for info in list_bases()))


def base_row(key: str) -> models.KnowledgeBase:
    """Return the row of a knowledge base. Only for use in the store.

    Raises:
        NotStoredError: there is none with this key.
    """
    row = models.KnowledgeBase.objects.filter(key=key).first()
    if row is None:
        raise no_base(key)
    return row


def base_id(key: str) -> int:
    """Return the id of a knowledge base's row. Only for use in the store.

    Raises:
        NotStoredError: there is none with this key.
    """
    return _indexed(key)[0]


def languages_of(key: str) -> Languages:
    """Return the languages whose word forms the knowledge base's index covers.

    Raises:
        NotStoredError: there is no such base.
    """
    return languages_in(_indexed(key)[1])


def indexed_for(languages: Languages) -> str:
    """Return languages as text for the column `indexed_for`."""
    return " ".join([_BY_WORDS, *languages])


def languages_in(indexed_for: str) -> Languages:
    """Return the languages that a text of the column `indexed_for` names."""
    return tuple(indexed_for.split()[1:])


def _indexed(key: str) -> tuple[int, str]:
    try:
        return _ids()[key]
    except KeyError:
        raise no_base(key) from None


def add_to_counts(row: models.KnowledgeBase, *, pages: int, characters: int) -> None:
    """Add numbers to the counts of a knowledge base inside the current transaction.

    They may be negative.
    """
    models.KnowledgeBase.objects.filter(pk=row.pk).update(
        page_count=F("page_count") + pages,
        characters=F("characters") + characters,
        revision=F("revision") + 1,
    )
    note_base_written()


def note_base_written() -> None:
    """Note that the current transaction has changed bases or their assignments to scopes."""
    for kept in snapshots.of_kind(KNOWLEDGE):
        kept.note_any_change()


def check_base(info: BaseInfo) -> None:
    """Check the settings of a knowledge base.

    Raises:
        ComponentValueError: a value is not allowed.
    """
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
    """Return the settings of a knowledge base as columns."""
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


def assign_base(key: str, scope: Scope, *, by: Actor) -> None:
    """Let the NPCs in a scope use a knowledge base. Repeating the call changes nothing.

    Raises:
        NotStoredError: there is no such base.
        ComponentValueError: the scope is not allowed.
    """
    check_scope(scope, kinds=_SCOPE_KINDS[1:])
    doing = f"assigning knowledge base '{key}'"
    with changing(KNOWLEDGE, doing, by=by):
        row = base_row(key)
        refuse_locked(row, doing, by=by)
        models.KnowledgeBinding.objects.get_or_create(
            base=row,
            scope_kind=scope.kind,
            scope_ref=scope.ref,
            defaults={"bound_by": by.name, "bound_at": time.time()},
        )
        note_base_written()


def unassign_base(key: str, scope: Scope, *, by: Actor) -> bool:
    """Stop the NPCs in a scope from using a knowledge base.

    Returns:
        True if it was assigned there.
    """
    doing = f"unassigning knowledge base '{key}'"
    with changing(KNOWLEDGE, doing, by=by):
        row = base_row(key)
        refuse_locked(row, doing, by=by)
        removed, _ = models.KnowledgeBinding.objects.filter(
            base=row, scope_kind=scope.kind, scope_ref=scope.ref
        ).delete()
        note_base_written()
    return removed > 0


def assigned_to(key: str) -> tuple[Scope, ...]:
    """Return the scopes that use a knowledge base, widest first."""
    rows = models.KnowledgeBinding.objects.filter(base__key=key)
    scopes = [
        Scope(kind=kind, ref=ref) for kind, ref in rows.values_list("scope_kind", "scope_ref")
    ]
    return tuple(sorted(scopes, key=lambda scope: (_SCOPE_KINDS.index(scope.kind), scope.ref)))


def bases_for(scopes: Collection[Scope]) -> tuple[BaseInfo, ...]:
    """Return the knowledge bases that NPCs in any of these scopes use, each once, sorted by key.

    No query is made if they are in memory.
    """
    keys = sorted({key for scope in scopes for key in _bound(scope)})
    return tuple(info for key in keys if (info := base_or_none(key)))


def _load_bound(scope: Scope) -> tuple[str, ...]:
    rows = models.KnowledgeBinding.objects.filter(scope_kind=scope.kind, scope_ref=scope.ref)
    return tuple(rows.values_list("base__key", flat=True))


_bound: Final = snapshots.Snapshots(KNOWLEDGE, _load_bound)
