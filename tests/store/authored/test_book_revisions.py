"""Test revisions of lorebooks: authors, conflicts, removal and revert."""

import pytest
from django.db import transaction

from evennia_ai import models
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import EditConflictError, FormatError
from evennia_ai.engine.prompt.components import GAME
from evennia_ai.store.authored import lorebooks
from evennia_ai.store.core.snapshots import forget_everything

FIRST, SECOND = '{"entries": []}', '{"entries": [], "name": "Harbour"}'


@pytest.fixture
def twice() -> None:
    """A book that Mira has created and Tam has changed."""
    lorebooks.save_book("harbour", FIRST, by=trusted("Mira"))
    lorebooks.save_book("harbour", SECOND, by=trusted("Tam"))


def history() -> list[tuple[int, str, str]]:
    changes = lorebooks.LOREBOOKS.revisions("harbour")
    return [(change.number, change.action, change.changed_by) for change in changes]


def test_saving_the_same_text_makes_no_revision(twice):
    lorebooks.save_book("harbour", SECOND, by=trusted("Mira"))

    assert len(history()) == 2


def test_revision_of_a_book_has_the_exact_text(twice):
    assert lorebooks.LOREBOOKS.then("harbour", 1).source == FIRST
    assert lorebooks.LOREBOOKS.then("harbour", 2).source == SECOND


def test_unchanged_book_has_one_revision():
    assert lorebooks.LOREBOOKS.revisions("harbour") == ()


def test_change_of_the_seen_revision_is_saved(twice):
    saved = lorebooks.save_book("harbour", FIRST, by=trusted("Mira"), seen_revision=2)

    assert (saved.revision, saved.source) == (3, FIRST)


def test_change_of_an_older_revision_names_who_was_first(twice):
    with pytest.raises(EditConflictError) as told:
        lorebooks.save_book("harbour", FIRST, by=trusted("Mira"), seen_revision=1)

    assert (told.value.seen, told.value.current, told.value.changed_by) == (1, 2, "Tam")
    assert str(told.value).startswith("lorebook 'harbour' was changed by Tam")
    assert lorebooks.get_book("harbour").source == SECOND


def test_creating_an_existing_book_is_refused(twice):
    with pytest.raises(EditConflictError):
        lorebooks.save_book("harbour", FIRST, by=trusted("Mira"), seen_revision=0)
    assert lorebooks.save_book("quay", FIRST, by=trusted("Mira"), seen_revision=0).revision == 1


def test_change_of_a_removed_book_names_who_removed_it(twice):
    lorebooks.LOREBOOKS.remove("harbour", by=trusted("Mira"))

    with pytest.raises(EditConflictError) as told:
        lorebooks.save_book("harbour", FIRST, by=trusted("Tam"), seen_revision=2)
    assert (told.value.current, told.value.changed_by) == (3, "Mira")


def test_refused_text_changes_nothing(twice):
    with pytest.raises(FormatError):
        lorebooks.save_book("harbour", "[", by=trusted("Mira"))

    assert len(history()) == 2


def test_removed_book_loses_its_attachments_and_keeps_its_revisions(twice):
    lorebooks.LOREBOOKS.assign("harbour", GAME, by=trusted("Mira"))
    assert lorebooks.books_for([GAME])
    lorebooks.LOREBOOKS.remove("harbour", by=trusted("Mira"))

    assert lorebooks.books_for([GAME]) == ()
    assert lorebooks.LOREBOOKS.list_keys() == ()
    assert models.Assignment.objects.count() == 0
    assert history()[-1] == (3, "removed", "Mira")


def test_reverting_a_book_is_a_new_change(twice):
    lorebooks.LOREBOOKS.assign("harbour", GAME, by=trusted("Mira"))
    back = lorebooks.LOREBOOKS.revert("harbour", 1, by=trusted("Mira"))
    forget_everything()

    assert (back.source, back.revision) == (FIRST, 3)
    assert [book.source for book in lorebooks.books_for([GAME])] == [FIRST]
    assert history()[-1] == (3, "reverted", "Mira")


def test_removed_book_comes_back_with_its_locks_and_without_attachments(twice):
    lorebooks.LOREBOOKS.assign("harbour", GAME, by=trusted("Mira"))
    lorebooks.set_book_locks("harbour", "edit:perm(Admin)", by=trusted("Mira"))
    lorebooks.set_entry_locks("harbour", "7", "view:false()", by=trusted("Mira"))
    lorebooks.LOREBOOKS.remove("harbour", by=trusted("Mira"))
    back = lorebooks.LOREBOOKS.revert("harbour", 2, by=trusted("Tam"))

    assert (back.source, back.revision, back.locks) == (SECOND, 4, "edit:perm(Admin)")
    assert lorebooks.entry_locks("harbour") == {"7": "view:false()"}
    assert lorebooks.LOREBOOKS.assigned_to("harbour") == ()
    assert lorebooks.LOREBOOKS.revisions("harbour")[2].value.locks == "edit:perm(Admin)"


def test_new_book_with_an_old_name_continues_numbers_without_old_locks(twice):
    lorebooks.set_book_locks("harbour", "edit:perm(Admin)", by=trusted("Mira"))
    lorebooks.LOREBOOKS.remove("harbour", by=trusted("Mira"))
    made = lorebooks.save_book("harbour", FIRST, by=trusted("Tam"))

    assert (made.revision, made.locks) == (4, "")
    assert history()[-1] == (4, "created", "Tam")


def test_revision_of_a_failed_transaction_does_not_exist(twice):
    with pytest.raises(RuntimeError), transaction.atomic():
        lorebooks.save_book("harbour", FIRST, by=trusted("Mira"))
        raise RuntimeError

    assert len(history()) == 2
    assert lorebooks.get_book("harbour").revision == 2
