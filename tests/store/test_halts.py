"""Test halts: stored, read without a query, noticed by other processes."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from django.db import transaction
from django.db.models import F

from evennia_ai.engine.actors import trusted
from evennia_ai.models import StateRevision
from evennia_ai.store.core.snapshots import forget_everything, refresh_if_changed
from evennia_ai.store.model_calls import HALTS, Halt, add_halt, halts, remove_halt

STOP = Halt(npc_ref="", halted_by="Mira", halted_at=5.0, reason="spam")
PAUSE = Halt(npc_ref="5", halted_by="Mira", halted_at=6.0)


def test_nothing_is_halted_at_first() -> None:
    assert halts() == {}


def test_halt_lasts_until_it_is_released() -> None:
    add_halt(STOP, by=trusted("Ada"))
    add_halt(PAUSE, by=trusted("Ada"))
    forget_everything()
    assert halts() == {"": STOP, "5": PAUSE}
    assert remove_halt("", by=trusted("Ada"))
    assert halts() == {"5": PAUSE}


def test_second_halt_replaces_the_first() -> None:
    add_halt(STOP, by=trusted("Ada"))
    add_halt(Halt(npc_ref="", halted_by="Tom", halted_at=9.0), by=trusted("Ada"))
    assert halts()[""].halted_by == "Tom"


def test_unhalted_npc_cannot_be_released() -> None:
    assert not remove_halt("5", by=trusted("Ada"))


def test_rolled_back_halt_does_not_count() -> None:
    halts()
    with transaction.atomic():
        add_halt(STOP, by=trusted("Ada"))
        transaction.set_rollback(True)
    assert halts() == {}


def test_cached_halts_are_read_without_a_query(
    no_queries: Callable[[], AbstractContextManager[None]],
) -> None:
    halts()
    with no_queries():
        halts()


def test_another_process_notices_a_halt() -> None:
    add_halt(STOP, by=trusted("Ada"))
    refresh_if_changed()
    StateRevision.objects.filter(name=HALTS).update(number=F("number") + 1)
    assert HALTS in refresh_if_changed()


def test_halt_says_by_whom_and_why() -> None:
    assert str(STOP) == "stopped by Mira: spam"
    assert str(PAUSE) == "paused by Mira"
