"""Tasks of the lorekeeper: kept before its model is asked, with exactly what it is sent.

They are kept whether the answer has a page or not, and whether there is an answer at all.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from evennia_ai import models
from evennia_ai.history.records import canonical_json, storable
from evennia_ai.store.core.rows import value_of
from evennia_ai.store.core.state import one_transaction

_ENDS: Final = "writing down the end of task"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTask:
    """A task that a model is about to be asked to do."""

    asked_by: str
    """The number of the object that asks."""
    base: str
    task: str
    context_meta: Mapping[str, Any]
    request: str
    """What is sent, as a stored text."""
    sha256: str
    """The hash of what is sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTask(NewTask):
    """A task with its number and what came of it."""

    number: int
    began_at: float
    text: str = ""
    drafts: tuple[int, ...] = ()
    error: str = ""
    ended_at: float | None = None
    """None where nothing has come of it yet."""


def begin(new: NewTask) -> int:
    """Keep a task before its model is asked; its number. StoreError: it cannot be kept."""
    with one_transaction("keeping a task of the lorekeeper"):
        row = models.LorekeeperTask.objects.create(
            asked_by=new.asked_by,
            base_key=new.base,
            task=storable(new.task),
            context_meta=canonical_json(dict(new.context_meta)),
            request=storable(new.request),
            sha256=new.sha256,
            began_at=time.time(),
        )
        return int(row.pk)


def end(number: int, *, text: str, context_meta: Mapping[str, Any]) -> None:
    """Keep what the model wrote."""
    with one_transaction(f"{_ENDS} {number}"):
        models.LorekeeperTask.objects.filter(pk=number).update(
            text=storable(text),
            context_meta=canonical_json(dict(context_meta)),
            ended_at=time.time(),
        )


def keep_drafts(number: int, drafts: Sequence[int]) -> None:
    """Keep which drafts came of the answer."""
    with one_transaction(f"{_ENDS} {number}"):
        models.LorekeeperTask.objects.filter(pk=number).update(drafts=canonical_json(list(drafts)))


def fail(number: int, error: str) -> None:
    """Keep why there is no answer."""
    with one_transaction(f"{_ENDS} {number}"):
        models.LorekeeperTask.objects.filter(pk=number).update(
            error=storable(error), ended_at=time.time()
        )


def newest(asked_by: str) -> StoredTask | None:
    """The last task of whoever has this number, None where there is none."""
    row = models.LorekeeperTask.objects.filter(asked_by=asked_by).order_by("pk").last()
    return None if row is None else _value(row)


def _value(row: models.LorekeeperTask) -> StoredTask:
    return value_of(
        StoredTask,
        row,
        number=row.pk,
        base=row.base_key,
        context_meta=json.loads(row.context_meta),
        drafts=tuple(json.loads(row.drafts)),
    )
