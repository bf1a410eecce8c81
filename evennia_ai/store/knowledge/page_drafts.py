"""Drafts: pages that wait until a builder approves or refuses them.

A draft keeps what it was written for and from, so that it can be judged later and made again to
the byte. Nothing of it is in a knowledge base: writing an approved one is the caller's, because the
base may be on another machine.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from evennia_ai import models
from evennia_ai.errors import ComponentValueError, NotStoredError, StoreError
from evennia_ai.history.records import canonical_json, storable
from evennia_ai.knowledge.backends import PageDraft
from evennia_ai.store.core.rows import value_of
from evennia_ai.store.core.state import one_transaction
from evennia_ai.store.knowledge.knowledge_bases import base_row
from evennia_ai.store.knowledge.page_rows import check_page, page_value, written_columns

DraftState = Literal["waiting", "approved", "refused"]

MOST_WAITING: Final = 500
"""Drafts that may wait at once, in one base."""
MAX_PACKAGE: Final = 4_000_000
"""Characters of what a draft was written from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDraft:
    """A draft with its number, what it was written for and from, and what was decided."""

    number: int
    base: str
    draft: PageDraft
    made_at: float
    """In epoch seconds."""
    task: str = ""
    context_meta: Mapping[str, Any] = field(default_factory=dict)
    package: str = ""
    """The text that whoever wrote it was shown."""
    state: DraftState = "waiting"
    decided_by: str = ""
    """Who decided, "" while it waits."""
    decided_at: float | None = None
    """In epoch seconds."""


def add(
    base: str,
    draft: PageDraft,
    *,
    task: str,
    context_meta: Mapping[str, Any],
    package: str = "",
) -> StoredDraft:
    """Keep a draft until somebody decides.

    NotStoredError: there is no such base. StoreError: too many drafts wait. ComponentValueError:
    the page cannot be stored.
    """
    check_page(draft.page)
    if len(package) > MAX_PACKAGE:
        raise ComponentValueError("package", package, f"at most {MAX_PACKAGE} characters")
    with one_transaction(f"keeping a draft of page '{draft.page.name}'"):
        base_row(base)
        _refuse_too_many(base)
        row = models.KnowledgeDraft.objects.create(
            base_key=base,
            was=draft.was,
            made_by=draft.by,
            made_at=time.time(),
            note=storable(draft.note),
            task=storable(task),
            context_meta=canonical_json(dict(context_meta)),
            package=storable(package),
            **written_columns(draft.page),
        )
        return _value(row)


def waiting(base: str = "") -> tuple[StoredDraft, ...]:
    """The drafts that wait, oldest first; those of one base where one is named."""
    rows = models.KnowledgeDraft.objects.filter(state="waiting").order_by("pk")
    return tuple(_value(row) for row in (rows.filter(base_key=base) if base else rows))


def draft(number: int) -> StoredDraft | None:
    """The draft of this number, decided or not; None where there is none."""
    row = models.KnowledgeDraft.objects.filter(pk=number).first()
    return _value(row) if row else None


def decide(number: int, *, approved: bool, by: str) -> StoredDraft:
    """Let a draft wait no longer; as it is then.

    NotStoredError: there is none of this number. StoreError: somebody decided already.
    """
    with one_transaction(f"deciding draft {number}"):
        decided = models.KnowledgeDraft.objects.filter(pk=number, state="waiting").update(
            state="approved" if approved else "refused", decided_by=by, decided_at=time.time()
        )
        now = draft(number)
        if now is None:
            raise NotStoredError("draft", number)
        if not decided:
            raise StoreError(f"draft {number} was {now.state} by {now.decided_by} already")
        return now


def _refuse_too_many(base: str) -> None:
    waits = models.KnowledgeDraft.objects.filter(base_key=base, state="waiting").count()
    if waits >= MOST_WAITING:
        raise StoreError(
            f"{waits} drafts of knowledge base '{base}' wait already; approve or refuse some first"
        )


def _value(row: models.KnowledgeDraft) -> StoredDraft:
    page = page_value(row, base=row.base_key, revision="")
    return value_of(
        StoredDraft,
        row,
        number=row.pk,
        base=row.base_key,
        draft=PageDraft(page=page, was=row.was, by=row.made_by, note=row.note),
        context_meta=json.loads(row.context_meta),
    )
