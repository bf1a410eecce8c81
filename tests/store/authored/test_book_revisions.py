"""Revisions of lorebooks: who changed what, conflicts, removing and reverting."""

import json

import pytest
from django.db import transaction

from evennia_ai import models
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import EditConflictError, FormatError, NotStoredError
from evennia_ai.engine.prompt.components import GAME
from evennia_ai.store.authored import book_texts, lorebooks
from evennia_ai.store.authored.book_texts import MOST_DIFFERENCES, Difference
from evennia_ai.store.core.snapshots import forget_everything

FIRST, SECOND = '{"entries": []}', '{"entries": [], "name": "Harbour"}'
LONG_TEXT = SECOND[:-1] + ', "note": "' + "long " * 100 + '"}'


@pytest.fixture
def twice() -> None:
    """A book that Mira made and Tam changed."""
    lorebooks.save_book("harbour", FIRST, by=trusted("Mira"))
    lorebooks.save_book("harbour", SECOND, by=trusted("Tam"))


def history() -> list[tuple[int, str, str]]:
    changes = lorebooks.book_revisions("harbour")
    return [(change.number, change.action, change.changed_by) for change in changes]


def test_every_change_is_written_down_with_its_author(twice):
    assert history() == [(1, "created", "Mira"), (2, "updated", "Tam")]


def test_the_same_text_again_is_no_change(twice):
    lorebooks.save_book("harbour", SECOND, by=trusted("Mira"))

    assert len(history()) == 2


def test_a_revision_has_the_text_to_the_letter(twice):
    assert lorebooks.book_revision("harbour", 1).source == FIRST
    assert lorebooks.book_revision("harbour", 2).source == SECOND


def test_an_unknown_revision_names_the_known_ones(twice):
    with pytest.raises(NotStoredError, match="there are 1, 2"):
        lorebooks.book_revision("harbour", 3)


def test_a_book_nobody_changed_has_no_revisions():
    assert lorebooks.book_revisions("harbour") == ()


def test_a_change_to_a_revision_that_was_seen_is_saved(twice):
    saved = lorebooks.save_book("harbour", FIRST, by=trusted("Mira"), expected_revision=2)

    assert (saved.revision, saved.source) == (3, FIRST)


def test_a_change_to_an_older_revision_names_who_was_first(twice):
    with pytest.raises(EditConflictError) as told:
        lorebooks.save_book("harbour", FIRST, by=trusted("Mira"), expected_revision=1)

    assert (told.value.seen, told.value.current, told.value.changed_by) == (1, 2, "Tam")
    assert str(told.value).startswith("lorebook 'harbour' was changed by Tam")
    assert lorebooks.get_book("harbour").source == SECOND


def test_whoever_wants_a_new_book_is_told_that_there_is_one(twice):
    with pytest.raises(EditConflictError):
        lorebooks.save_book("harbour", FIRST, by=trusted("Mira"), expected_revision=0)
    assert lorebooks.save_book("quay", FIRST, by=trusted("Mira"), expected_revision=0).revision == 1


def test_a_change_to_a_book_that_was_removed_meanwhile_names_who_removed_it(twice):
    lorebooks.remove_book("harbour", by=trusted("Mira"))

    with pytest.raises(EditConflictError) as told:
        lorebooks.save_book("harbour", FIRST, by=trusted("Tam"), expected_revision=2)
    assert (told.value.current, told.value.changed_by) == (3, "Mira")


def test_a_refused_text_changes_nothing(twice):
    with pytest.raises(FormatError):
        lorebooks.save_book("harbour", "[", by=trusted("Mira"))

    assert len(history()) == 2


def test_a_removed_book_is_gone_with_its_attachments_and_its_revisions_stay(twice):
    lorebooks.attach("harbour", GAME, by=trusted("Mira"))
    assert lorebooks.books_for([GAME])
    lorebooks.remove_book("harbour", by=trusted("Mira"))

    assert lorebooks.books_for([GAME]) == ()
    assert lorebooks.book_names() == ()
    assert models.LorebookAttachment.objects.count() == 0
    assert history()[-1] == (3, "removed", "Mira")


def test_a_book_that_was_changed_since_is_not_removed(twice):
    with pytest.raises(EditConflictError):
        lorebooks.remove_book("harbour", by=trusted("Mira"), expected_revision=1)

    assert lorebooks.book_names() == ("harbour",)


def test_a_book_that_is_not_there_is_not_removed(twice):
    with pytest.raises(NotStoredError, match="there are harbour"):
        lorebooks.remove_book("habour", by=trusted("Mira"))


def test_a_book_is_reverted_as_a_change_of_its_own(twice):
    lorebooks.attach("harbour", GAME, by=trusted("Mira"))
    back = lorebooks.revert_book("harbour", 1, by=trusted("Mira"))
    forget_everything()

    assert (back.source, back.revision) == (FIRST, 3)
    assert [book.source for book in lorebooks.books_for([GAME])] == [FIRST]
    assert history()[-1] == (3, "reverted", "Mira")


def test_a_book_is_reverted_to_what_it_is_by_no_change(twice):
    assert lorebooks.revert_book("harbour", 2, by=trusted("Mira")).revision == 2
    assert len(history()) == 2


def test_a_removed_book_comes_back_with_its_locks_and_attached_nowhere(twice):
    lorebooks.attach("harbour", GAME, by=trusted("Mira"))
    lorebooks.set_book_locks("harbour", "edit:perm(Admin)", by=trusted("Mira"))
    lorebooks.set_entry_locks("harbour", "7", "view:false()", by=trusted("Mira"))
    lorebooks.remove_book("harbour", by=trusted("Mira"))
    back = lorebooks.revert_book("harbour", 2, by=trusted("Tam"))

    assert (back.source, back.revision, back.locks) == (SECOND, 4, "edit:perm(Admin)")
    assert lorebooks.entry_locks("harbour") == {"7": "view:false()"}
    assert lorebooks.attachments("harbour") == ()
    assert lorebooks.book_revisions("harbour")[2].locks == "edit:perm(Admin)"


def test_a_new_book_under_an_old_name_counts_on_and_has_no_old_locks(twice):
    lorebooks.set_book_locks("harbour", "edit:perm(Admin)", by=trusted("Mira"))
    lorebooks.remove_book("harbour", by=trusted("Mira"))
    made = lorebooks.save_book("harbour", FIRST, by=trusted("Tam"))

    assert (made.revision, made.locks) == (4, "")
    assert history()[-1] == (4, "created", "Tam")


def test_a_book_is_not_reverted_to_its_removal(twice):
    lorebooks.remove_book("harbour", by=trusted("Mira"))

    with pytest.raises(NotStoredError, match="it removed it"):
        lorebooks.revert_book("harbour", 3, by=trusted("Mira"))
    assert lorebooks.book_names() == ()


def test_a_revision_of_a_transaction_that_failed_is_not_there(twice):
    with pytest.raises(RuntimeError), transaction.atomic():
        lorebooks.save_book("harbour", FIRST, by=trusted("Mira"))
        raise RuntimeError

    assert len(history()) == 2
    assert lorebooks.get_book("harbour").revision == 2


def test_a_difference_is_written_and_no_text_and_each_revision_is_read_as_it_was():
    texts = [LONG_TEXT]
    lorebooks.save_book("harbour", LONG_TEXT, by=trusted("Mira"))
    length = len('"Harbour"')
    for number in range(100, 100 + MOST_DIFFERENCES + 5):
        made = Difference(LONG_TEXT.index('"Harbour"'), length, json.dumps({"n": number}))
        length = len(made.piece)
        texts.append(made.made_in(texts[-1]))
        saved = lorebooks.save_difference(
            "harbour", texts[-1], made, by=trusted("Tam"), expected_revision=len(texts) - 1
        )
        assert (saved.source, saved.revision) == (texts[-1], len(texts))

    rows = models.LorebookRevision.objects.order_by("number")
    whole = [row.number for row in rows if row.over is None]
    assert whole == [1, MOST_DIFFERENCES + 2]
    assert max(len(row.source) for row in rows if row.over) < 100
    book_texts.forget()
    assert lorebooks.get_book("harbour").source == texts[-1]
    assert [lorebooks.book_revision("harbour", n + 1).source for n in range(len(texts))] == texts
    reverted = lorebooks.revert_book("harbour", 3, by=trusted("Mira"))
    assert (reverted.source, lorebooks.get_book("harbour").source) == (texts[2], texts[2])


def test_the_hash_after_a_difference_tells_what_was_before_it_too():
    made = Difference(12, 1, "{}")
    assert made.sha256_after("a") != made.sha256_after("b")
    assert made.sha256_after("a") != Difference(11, 1, "{}").sha256_after("a")
    assert made.sha256_after("a") != Difference(12, 1, "{ }").sha256_after("a")


def test_err_a_difference_is_refused_as_a_text_is(twice):
    at = SECOND.index('"Harbour"')
    with pytest.raises(EditConflictError, match="changed by Tam"):
        lorebooks.save_difference(
            "harbour", SECOND, Difference(at, 9, "{}"), by=trusted("Mira"), expected_revision=1
        )
    with pytest.raises(FormatError, match="is no JSON"):
        lorebooks.save_difference(
            "harbour", SECOND, Difference(at, 9, "{"), by=trusted("Mira"), expected_revision=2
        )
    assert history() == [(1, "created", "Mira"), (2, "updated", "Tam")]


def test_after_a_difference_whose_transaction_failed_the_text_is_the_one_before(twice):
    made = Difference(SECOND.index('"Harbour"'), 9, "{}")
    with pytest.raises(RuntimeError), transaction.atomic():
        lorebooks.save_difference(
            "harbour", made.made_in(SECOND), made, by=trusted("Tam"), expected_revision=2
        )
        raise RuntimeError

    assert lorebooks.get_book("harbour").source == SECOND
