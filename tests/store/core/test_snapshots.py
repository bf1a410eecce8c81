"""Snapshots: what a transaction, its rollback and its commit let whom see."""

import pytest
from django.db import DatabaseError, transaction

from evennia_ai.errors import StoreError
from evennia_ai.store.core.snapshots import Snapshots, of_kind


class Shelf:
    """Rows that only the test changes, and how often they were read."""

    def __init__(self) -> None:
        self.rows = {"a": 1}
        self.loads = 0
        self.snapshots = Snapshots("shelf", self.load)

    def load(self, key: str) -> int:
        self.loads += 1
        return self.rows[key]


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def test_a_value_is_loaded_once(shelf):
    assert [shelf.snapshots.read("a") for _ in range(3)] == [1, 1, 1]
    assert shelf.loads == 1


def test_the_writer_sees_its_own_write_before_the_commit(shelf):
    shelf.snapshots.read("a")
    with transaction.atomic():
        shelf.rows["a"] = 2
        shelf.snapshots.written("a")

        assert [shelf.snapshots.read("a") for _ in range(3)] == [2, 2, 2]
    assert shelf.loads == 2


def test_a_given_value_is_not_loaded(shelf):
    shelf.snapshots.read("a")
    with transaction.atomic():
        shelf.snapshots.wrote("a", 2)

        assert shelf.snapshots.read("a") == 2
    assert shelf.loads == 1


def test_after_a_rollback_the_old_value_is_still_there(shelf):
    shelf.snapshots.read("a")
    with transaction.atomic():
        shelf.snapshots.wrote("a", 2)
        shelf.snapshots.read("a")
        transaction.set_rollback(True)

    assert shelf.snapshots.read("a") == 1
    assert shelf.loads == 1


def test_an_inner_rollback_takes_back_the_inner_write_alone(shelf):
    with transaction.atomic():
        shelf.snapshots.wrote("a", 2)
        with transaction.atomic():
            shelf.snapshots.wrote("a", 3)
            transaction.set_rollback(True)

        assert shelf.snapshots.read("a") == 2


def test_a_write_of_one_key_leaves_the_others(shelf):
    shelf.rows["b"] = 5
    shelf.snapshots.read("b")
    with transaction.atomic():
        shelf.snapshots.written("a")
        shelf.snapshots.read("b")

    assert shelf.loads == 1


def test_a_write_of_all_keys_makes_every_value_old(shelf):
    shelf.snapshots.read("a")
    shelf.rows["a"] = 2
    with transaction.atomic():
        shelf.snapshots.all_written()

        assert shelf.snapshots.read("a") == 2


def test_a_value_loaded_while_it_was_dropped_is_not_kept():
    def load(key: str) -> int:
        loads.append(key)
        if len(loads) == 1:  # another thread commits while we read
            snapshots.drop_all()
        return len(loads)

    loads: list[str] = []
    snapshots = Snapshots("race", load)

    assert [snapshots.read("a"), snapshots.read("a"), snapshots.read("a")] == [1, 2, 2]


def test_a_dropped_value_is_loaded_again(shelf):
    shelf.snapshots.read("a")
    shelf.rows["a"] = 2
    shelf.snapshots.drop("a")

    assert shelf.snapshots.read("a") == 2


def test_a_drop_reaches_what_the_transaction_itself_wrote(shelf):
    with transaction.atomic():
        shelf.snapshots.wrote("a", 2)
        shelf.rows["a"] = 3
        shelf.snapshots.drop("a")

        assert shelf.snapshots.read("a") == 3


def test_a_database_that_cannot_be_read_is_one_clear_error():
    def load(key: str) -> int:
        raise DatabaseError("disk gone")

    with pytest.raises(StoreError, match=r"cannot be read \(shelf\): disk gone"):
        Snapshots("shelf", load).read("a")


def test_snapshots_are_found_by_their_kind(shelf):
    assert shelf.snapshots in of_kind("shelf")
    assert of_kind("nothing of that name") == []
