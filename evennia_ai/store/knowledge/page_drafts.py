"""Store drafts of pages, which wait for a builder's decision, and the lorekeeper's tasks.

A draft keeps its task and the excerpt from which it was written. So a builder can judge it later,
and its prompt can be made again byte for byte. A draft is not part of the knowledge base. The
caller writes an approved draft to the base, because the base may be on another machine. A task is
stored with its exact request before its model is called, whatever the result is.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from evennia_ai import models
from evennia_ai.engine.actors import Actor, actor_without_rights
from evennia_ai.engine.errors import ComponentValueError, NotStoredError, StoreError
from evennia_ai.engine.history.records import canonical_json, make_storable
from evennia_ai.engine.knowledge.pages.page import PageDraft
from evennia_ai.store.core.snapshots import one_change, one_transaction, value_of
from evennia_ai.store.knowledge.knowledge_bases import base_row, refuse_locked
from evennia_ai.store.knowledge.page_rows import check_page, page_value, written_columns

DraftState = Literal["waiting", "approved", "refused"]

MOST_WAITING: Final = 500
"""The most drafts of one base that may wait at once."""
MAX_PACKAGE: Final = 4_000_000
"""The longest excerpt from which a draft may be written, in characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDraft:
    """A draft with its number, its origin, and the decision about it."""

    number: int
    base: str
    draft: PageDraft
    made_at: float
    """When the draft was made, in seconds since 1970."""
    task: str = ""
    context_meta: Mapping[str, Any] = field(default_factory=dict)
    package: str = ""
    """The excerpt of the base that the author of the draft was shown."""
    state: DraftState = "waiting"
    decided_by: str = ""
    """The person who approved or refused the draft; "" while it waits."""
    decided_at: float | None = None
    """When the draft was approved or refused, in seconds since 1970."""


def add_draft(
    base: str,
    draft: PageDraft,
    *,
    task: str,
    context_meta: Mapping[str, Any],
    package: str = "",
) -> StoredDraft:
    """Store a draft that waits for a decision.

    Raises:
        NotStoredError: there is no such base.
        StoreError: too many drafts wait.
        ComponentValueError: the page cannot be stored.
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
            made_by=draft.by.name,
            made_at=time.time(),
            note=make_storable(draft.note),
            task=make_storable(task),
            context_meta=canonical_json(dict(context_meta)),
            package=make_storable(package),
            **written_columns(draft.page),
        )
        return _value(row)


def waiting_drafts(base: str = "") -> tuple[StoredDraft, ...]:
    """Return the waiting drafts of one knowledge base or of all bases, oldest first."""
    rows = models.KnowledgeDraft.objects.filter(state="waiting").order_by("pk")
    return tuple(_value(row) for row in (rows.filter(base_key=base) if base else rows))


def draft_or_none(number: int) -> StoredDraft | None:
    """Return the draft with this number, decided or not, or None."""
    row = models.KnowledgeDraft.objects.filter(pk=number).first()
    return _value(row) if row else None


def decide_draft(number: int, *, approved: bool, by: Actor) -> StoredDraft:
    """Approve or refuse a draft, and return it.

    Raises:
        NotStoredError: there is no draft with this number.
        StoreError: the draft was approved or refused already.
    """
    with one_change(f"deciding draft {number}", by=by):
        decided = models.KnowledgeDraft.objects.filter(pk=number, state="waiting").update(
            state="approved" if approved else "refused", decided_by=by.name, decided_at=time.time()
        )
        if row := models.KnowledgeBase.objects.filter(key__in=_base_of(number)).first():
            refuse_locked(row, f"deciding draft {number}", by=by)
        now = draft_or_none(number)
        if now is None:
            raise NotStoredError("draft", number)
        if not decided:
            raise StoreError(f"draft {number} was {now.state} by {now.decided_by} already")
        return now


def _base_of(number: int) -> Any:
    """Select the key of the knowledge base that a draft is for."""
    return models.KnowledgeDraft.objects.filter(pk=number).values("base_key")


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
        draft=PageDraft(
            page=page, was=row.was, by=actor_without_rights(row.made_by), note=row.note
        ),
        context_meta=json.loads(row.context_meta),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTask:
    """A task for the lorekeeper before its model is called."""

    asked_by: str
    """The number of the object with which the player gave the task."""
    base: str
    task: str
    context_meta: Mapping[str, Any]
    request: str
    """The messages to send, as stored text."""
    sha256: str
    """The hash of the messages to send."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTask(NewTask):
    """A task of the lorekeeper with its number and its result."""

    number: int
    began_at: float
    text: str = ""
    drafts: tuple[int, ...] = ()
    error: str = ""
    ended_at: float | None = None
    """The time of the result; None while there is none."""


def begin_task(new: NewTask) -> int:
    """Store a task before its model is called, and return its number.

    Raises:
        StoreError: it cannot be stored.
    """
    with one_transaction("keeping a task of the lorekeeper"):
        row = models.LorekeeperTask.objects.create(
            asked_by=new.asked_by,
            base_key=new.base,
            task=make_storable(new.task),
            context_meta=canonical_json(dict(new.context_meta)),
            request=make_storable(new.request),
            sha256=new.sha256,
            began_at=time.time(),
        )
        return int(row.pk)


def end_task(number: int, *, text: str, context_meta: Mapping[str, Any]) -> None:
    """Store the model's answer to a task."""
    meta = canonical_json(dict(context_meta))
    _write(number, text=make_storable(text), context_meta=meta, ended_at=time.time())


def keep_drafts(number: int, drafts: Sequence[int]) -> None:
    """Store which drafts the answer to a task contained, by their numbers."""
    _write(number, drafts=canonical_json(list(drafts)))


def fail_task(number: int, error: str) -> None:
    """Store why a task has no answer."""
    _write(number, error=make_storable(error), ended_at=time.time())


def _write(number: int, **columns: Any) -> None:
    with one_transaction(f"storing the end of task {number}"):
        models.LorekeeperTask.objects.filter(pk=number).update(**columns)


def newest_task(asked_by: str) -> StoredTask | None:
    """Return the newest task that the person with this number gave, or None."""
    row = models.LorekeeperTask.objects.filter(asked_by=asked_by).order_by("pk").last()
    return None if row is None else _task(row)


def _task(row: models.LorekeeperTask) -> StoredTask:
    return value_of(
        StoredTask,
        row,
        number=row.pk,
        base=row.base_key,
        context_meta=json.loads(row.context_meta),
        drafts=tuple(json.loads(row.drafts)),
    )
