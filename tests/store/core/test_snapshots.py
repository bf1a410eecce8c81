"""Test what readers see during a transaction, after its commit and after its rollback."""

from dataclasses import replace

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.models import F
from django.test import TestCase
from django.test.utils import CaptureQueriesContext

from evennia_ai import models
from evennia_ai.engine.actors import THE_GAME, trusted
from evennia_ai.engine.errors import StoreError
from evennia_ai.engine.prompt.components import GAME, of_npc
from evennia_ai.store.authored import cards, components, lorebooks, notes, presets
from evennia_ai.store.core import snapshots
from evennia_ai.store.core.snapshots import Bound, Snapshots, of_kind


class Shelf:
    """Rows that only the test changes, with a count of how often they were read."""

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


def test_snapshot_value_is_loaded_once(shelf):
    assert [shelf.snapshots("a") for _ in range(3)] == [1, 1, 1]
    assert shelf.loads == 1


class TestBound:
    """Shelves with four things each. At most twelve things of all shelves are cached."""

    @pytest.fixture
    def gone(self):
        return []

    @pytest.fixture
    def shelves(self, gone):
        shelf = Shelf()
        shelf.rows = dict.fromkeys("abcdefghij", 4)
        bound = Bound(weight=lambda things: things, most=lambda: 12, let_go=gone.append)
        shelf.snapshots = Snapshots("shelf", shelf.load, bound=bound)
        return shelf

    def read(self, shelves, keys):
        """Return how many of these values are loaded again."""
        before = shelves.loads
        for key in keys:
            shelves.snapshots(key)
        return shelves.loads - before

    def test_oldest_value_leaves_the_bounded_cache_first(self, shelves, gone):
        assert self.read(shelves, "abcd") == 4
        assert gone == [4]
        assert self.read(shelves, "bcd") == 0
        assert self.read(shelves, "a") == 1

    def test_value_put_again_stays_in_the_cache(self, shelves):
        self.read(shelves, "abc")
        shelves.snapshots._kept.put("a", 4)
        assert self.read(shelves, "d") == 1
        assert self.read(shelves, "acd") == 0

    def test_growing_value_displaces_others_and_not_itself(self, shelves, gone):
        self.read(shelves, "abc")
        shelves.snapshots._kept.put("a", 8)
        assert gone == [4]
        assert self.read(shelves, "ac") == 0
        assert self.read(shelves, "b") == 1

    def test_uncached_written_value_is_let_go(self, shelves, gone):
        with transaction.atomic():
            shelves.snapshots.note_value("a", 5)
            (write,) = shelves.snapshots._writes()
            write()
        assert gone == [5]

    def test_newest_value_is_cached_whatever_its_weight(self, shelves):
        shelves.rows["a"] = 100
        self.read(shelves, "ba")
        assert self.read(shelves, "a") == 0

    def test_dropped_value_weighs_nothing_and_is_let_go(self, shelves, gone):
        self.read(shelves, "abc")
        shelves.snapshots.drop("a")
        shelves.snapshots.drop("b")
        self.read(shelves, "de")
        assert self.read(shelves, "cde") == 0
        shelves.snapshots.drop_all()
        assert self.read(shelves, "abc") == 3
        assert gone == [4, 4, 4, 4, 4]

    def test_value_let_go_meanwhile_is_not_cached_again(self, shelves):
        shelves.snapshots._kept._bound = replace(shelves.snapshots._bound, is_spent=bool)
        shelves.snapshots._kept.put("a", 4)
        assert self.read(shelves, "a") == 1


def test_writer_sees_its_write_before_the_commit(shelf):
    shelf.snapshots("a")
    with transaction.atomic():
        shelf.rows["a"] = 2
        shelf.snapshots.note_change("a")

        assert [shelf.snapshots("a") for _ in range(3)] == [2, 2, 2]
    assert shelf.loads == 2


def test_given_value_is_not_loaded(shelf):
    shelf.snapshots("a")
    with transaction.atomic():
        shelf.snapshots.note_value("a", 2)

        assert shelf.snapshots("a") == 2
    assert shelf.loads == 1


def test_old_value_remains_after_a_rollback(shelf):
    shelf.snapshots("a")
    with transaction.atomic():
        shelf.snapshots.note_value("a", 2)
        shelf.snapshots("a")
        transaction.set_rollback(True)

    assert shelf.snapshots("a") == 1
    assert shelf.loads == 1


def test_inner_rollback_undoes_only_the_inner_write(shelf):
    with transaction.atomic():
        shelf.snapshots.note_value("a", 2)
        with transaction.atomic():
            shelf.snapshots.note_value("a", 3)
            transaction.set_rollback(True)

        assert shelf.snapshots("a") == 2


def test_write_of_one_key_keeps_the_other_values(shelf):
    shelf.rows["b"] = 5
    shelf.snapshots("b")
    with transaction.atomic():
        shelf.snapshots.note_change("a")
        shelf.snapshots("b")

    assert shelf.loads == 1


def test_write_of_all_keys_drops_every_value(shelf):
    shelf.snapshots("a")
    shelf.rows["a"] = 2
    with transaction.atomic():
        shelf.snapshots.note_any_change()

        assert shelf.snapshots("a") == 2


def test_value_loaded_during_a_drop_is_not_cached():
    def load(key: str) -> int:
        loads.append(key)
        if len(loads) == 1:  # Another thread commits while this one reads.
            snapshots.drop_all()
        return len(loads)

    loads: list[str] = []
    snapshots = Snapshots("race", load)

    assert [snapshots("a"), snapshots("a"), snapshots("a")] == [1, 2, 2]


def test_dropped_value_is_loaded_again(shelf):
    shelf.snapshots("a")
    shelf.rows["a"] = 2
    shelf.snapshots.drop("a")

    assert shelf.snapshots("a") == 2


def test_drop_also_affects_the_transactions_own_write(shelf):
    with transaction.atomic():
        shelf.snapshots.note_value("a", 2)
        shelf.rows["a"] = 3
        shelf.snapshots.drop("a")

        assert shelf.snapshots("a") == 3


def test_unreadable_database_is_one_clear_error():
    def load(key: str) -> int:
        raise DatabaseError("disk gone")

    with pytest.raises(StoreError, match=r"cannot be read \(shelf\): disk gone"):
        Snapshots("shelf", load)("a")


def test_snapshots_are_found_by_their_kind(shelf):
    assert shelf.snapshots in of_kind("shelf")
    assert of_kind("nothing of that name") == []


def another_process_writes(kind: str, sql: str) -> None:
    """Write as another process does that shares only the database with us."""
    with connection.cursor() as cursor:
        cursor.execute(sql)
    models.StateRevision.objects.filter(name=kind).update(number=F("number") + 1)


@pytest.fixture
def refreshed():
    snapshots.refresh_if_changed()


def goals() -> str:
    return components.registry().get("goals").content


@pytest.mark.usefixtures("refreshed")
def test_component_written_elsewhere_is_seen_after_a_refresh():
    goals()
    another_process_writes(
        "components", "UPDATE evennia_ai_component SET content = 'New.' WHERE key = 'goals'"
    )

    assert goals() == ""
    assert snapshots.refresh_if_changed() == {"components"}
    assert goals() == "New."


@pytest.mark.usefixtures("refreshed")
def test_cards_books_and_notes_written_elsewhere_are_seen_after_a_refresh():
    cards.save_card("oren", '{"a": 1}', by=trusted("builder"))
    cards.CARDS.assign("oren", of_npc("12"), by=trusted("builder"))
    lorebooks.save_book("harbour", '{"b": 1}', by=trusted("builder"))
    lorebooks.LOREBOOKS.assign("harbour", GAME, by=trusted("builder"))
    notes.set_note("12", by=trusted("builder"), content="Be brief.")
    another_process_writes("cards", "UPDATE evennia_ai_card SET grants = ''")
    another_process_writes(
        "lorebooks",
        "UPDATE evennia_ai_sourcefile SET sha256 = 'of another', source = '{}'"
        " WHERE id = (SELECT file_id FROM evennia_ai_lorebook)",
    )
    another_process_writes("notes", "UPDATE evennia_ai_note SET content = 'Be long.'")

    assert snapshots.refresh_if_changed() == {"cards", "lorebooks", "notes"}
    assert cards.card_of("12").grants == frozenset()
    assert [book.source for book in lorebooks.books_for([GAME])] == ["{}"]
    assert [note.content for note in notes.notes_for("12")] == ["Be long."]


@pytest.mark.usefixtures("refreshed")
def test_preset_written_elsewhere_is_seen_after_a_refresh():
    number = presets.import_preset("Loom", "{}", by=trusted("builder"))
    presets.PRESETS.approve("Loom", number, grants=frozenset(), by=trusted("builder"))
    presets.PRESETS.assign("Loom", GAME, by=trusted("builder"))
    assert presets.preset_for([GAME]).switches == ()
    another_process_writes("presets", """UPDATE evennia_ai_preset SET switches = '{"a": true}'""")

    assert snapshots.refresh_if_changed() == {"presets"}
    assert presets.preset_for([GAME]).switches == (("a", True),)


@pytest.mark.usefixtures("refreshed")
def test_refresh_without_changes_drops_nothing():
    before = components.registry()

    assert snapshots.refresh_if_changed() == frozenset()
    assert components.registry() is before


def we_write_a_note() -> None:
    """Commit a change of this process. The test's own transaction continues."""
    with TestCase.captureOnCommitCallbacks(execute=True):
        notes.set_note("12", by=trusted("builder"), content="Be brief.")


@pytest.mark.usefixtures("refreshed")
def test_own_writes_are_not_read_again_at_a_refresh():
    we_write_a_note()
    we_write_a_note()
    known = notes.notes_for("12")

    assert snapshots.refresh_if_changed() == frozenset()
    assert notes.notes_for("12") is known


@pytest.mark.usefixtures("refreshed")
@pytest.mark.parametrize("ours", ["before", "after", "both"])
def test_write_of_another_process_next_to_ours_is_seen(ours):
    if ours in ("before", "both"):
        we_write_a_note()
    another_process_writes("notes", "UPDATE evennia_ai_note SET content = 'Be long.'")
    if ours in ("after", "both"):
        we_write_a_note()

    assert snapshots.refresh_if_changed() == {"notes"}
    assert snapshots.refresh_if_changed() == frozenset()


@pytest.mark.usefixtures("refreshed")
def test_rolled_back_own_write_hides_no_other_write():
    with transaction.atomic():
        notes.set_note("12", by=trusted("builder"), content="Be brief.")
        transaction.set_rollback(True)
    another_process_writes("notes", "UPDATE evennia_ai_note SET content = 'Be long.'")

    assert snapshots.refresh_if_changed() == {"notes"}


@pytest.mark.usefixtures("refreshed")
def test_refresh_makes_one_query():
    with CaptureQueriesContext(connection) as queries:
        snapshots.refresh_if_changed()

    assert len(queries) == 1


@pytest.mark.parametrize(
    ("kind", "write"),
    [
        ("components", lambda: components.update("goals", by=trusted("b"), content="x")),
        ("cards", lambda: cards.save_card("oren", "{}", by=trusted("b"))),
        ("lorebooks", lambda: lorebooks.save_book("harbour", "{}", by=trusted("b"))),
        ("notes", lambda: notes.set_note("12", by=trusted("b"), content="x")),
    ],
)
def test_every_write_raises_the_number_of_its_kind(kind, write):
    before = models.StateRevision.objects.get(name=kind).number
    write()

    assert models.StateRevision.objects.get(name=kind).number > before


def test_refused_write_does_not_raise_the_number():
    before = models.StateRevision.objects.get(name="notes").number
    with pytest.raises(StoreError), snapshots.changing("notes", "writing", by=THE_GAME):
        raise DatabaseError("disk full")

    assert models.StateRevision.objects.get(name="notes").number == before


def test_missing_state_number_is_created():
    models.StateRevision.objects.all().delete()
    components.update("goals", by=trusted("builder"), content="x")

    assert models.StateRevision.objects.get(name="components").number == 1
