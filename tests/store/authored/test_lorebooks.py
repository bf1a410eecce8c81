"""Test stored lorebooks, where they are used, and who may change them."""

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import ComponentValueError, FormatError, NotStoredError
from evennia_ai.engine.prompt.components import GAME, Scope
from evennia_ai.store.authored import lorebooks
from evennia_ai.store.core.snapshots import forget_everything

HARBOUR = Scope(kind="zone", ref="harbour")
FERRYMEN = Scope(kind="faction", ref="ferrymen")
QUAY = Scope(kind="room", ref="3")
OREN = Scope(kind="npc", ref="12")
ANNA = Scope(kind="player", ref="7")


def a_book(name="harbour", source="{}", *scopes) -> None:
    lorebooks.save_book(name, source, by=trusted("builder"))
    for scope in scopes:
        lorebooks.LOREBOOKS.assign(name, scope, by=trusted("builder"))


def names_for(*scopes) -> list[str]:
    return [book.name for book in lorebooks.books_for(scopes)]


def test_lorebook_text_is_stored_exactly():
    a_book(source='{ "entries":[ ] }')
    forget_everything()

    assert lorebooks.get_book("harbour").source == '{ "entries":[ ] }'


def test_lorebook_gets_a_new_revision_only_when_its_text_changes():
    revisions = [
        lorebooks.save_book("harbour", text, by=trusted("b")).revision
        for text in ("{}", "{}", '{"a":1}')
    ]

    assert revisions == [1, 1, 2]


def test_lorebook_that_is_no_strict_json_object_is_refused():
    with pytest.raises(FormatError, match="lorebook 'harbour' must be a JSON object"):
        lorebooks.save_book("harbour", "[]", by=trusted("builder"))


def test_lorebook_is_used_where_it_is_attached():
    a_book("harbour", "{}", GAME)
    a_book("quay", "{}", QUAY)

    assert names_for(GAME) == ["harbour"]
    assert names_for(GAME, QUAY, OREN) == ["quay", "harbour"]


def test_lorebook_names_the_scope_where_it_was_found():
    a_book("harbour", "{}", QUAY)

    assert [book.scope for book in lorebooks.books_for([GAME, QUAY])] == [QUAY]


def test_lorebook_attached_twice_is_used_once_in_its_narrowest_scope():
    a_book("harbour", "{}", GAME, QUAY)

    assert [book.scope for book in lorebooks.books_for([GAME, QUAY])] == [QUAY]


def test_attaching_twice_changes_nothing():
    a_book("harbour", "{}", QUAY, QUAY)

    assert lorebooks.LOREBOOKS.assigned_to("harbour") == (QUAY,)


def test_attachments_are_listed_from_wide_to_narrow():
    a_book("harbour", "{}", OREN, GAME, ANNA, QUAY, FERRYMEN, HARBOUR)

    assert lorebooks.LOREBOOKS.assigned_to("harbour") == (GAME, HARBOUR, FERRYMEN, QUAY, OREN, ANNA)


def test_lorebooks_of_every_kind_of_scope_come_narrowest_first():
    scopes = {"all": GAME, "port": HARBOUR, "guild": FERRYMEN, "spot": QUAY, "own": OREN}
    for name, scope in {**scopes, "guest": ANNA}.items():
        a_book(name, "{}", scope)

    assert names_for(*scopes.values()) == ["own", "spot", "guild", "port", "all"]
    assert names_for(ANNA, GAME) == ["guest", "all"]


@pytest.mark.parametrize(
    "scope", [Scope(kind="faction"), Scope(ref="7"), Scope(kind="page", ref="7")]
)
def test_lorebook_cannot_be_attached_to_an_invalid_scope(scope):
    a_book()

    with pytest.raises(ComponentValueError, match=r"scope .* is not allowed: it must be the game"):
        lorebooks.LOREBOOKS.assign("harbour", scope, by=trusted("builder"))
    assert lorebooks.LOREBOOKS.assigned_to("harbour") == ()


def test_detached_lorebook_is_no_longer_used():
    a_book("harbour", "{}", QUAY)
    names_for(QUAY)

    assert lorebooks.LOREBOOKS.unassign(QUAY, "harbour", by=trusted("builder"))
    assert names_for(QUAY) == []
    assert not lorebooks.LOREBOOKS.unassign(QUAY, "harbour", by=trusted("builder"))


def test_unknown_lorebook_error_names_the_known_ones():
    a_book()

    with pytest.raises(NotStoredError, match="there are harbour"):
        lorebooks.LOREBOOKS.assign("habour", GAME, by=trusted("builder"))


def test_changed_lorebook_is_seen_where_it_is_attached():
    a_book("harbour", "{}", GAME)
    names_for(GAME)
    a_book("harbour", '{"a":1}')

    assert [book.source for book in lorebooks.books_for([GAME])] == ['{"a":1}']


def test_cached_lorebooks_are_read_without_a_query(no_queries):
    a_book("harbour", "{}", GAME)
    names_for(GAME, QUAY, OREN)

    with no_queries():
        assert names_for(GAME, QUAY, OREN) == ["harbour"]


def test_new_lorebook_has_no_locks():
    a_book()

    assert lorebooks.get_book("harbour").locks == ""
    assert lorebooks.entry_locks("harbour") == {}


def test_lock_of_a_lorebook_is_stored_and_removed():
    a_book("harbour", "{}", GAME)
    lorebooks.set_book_locks("harbour", "edit:perm(Admin)", by=trusted("builder"))
    forget_everything()

    assert lorebooks.get_book("harbour").locks == "edit:perm(Admin)"
    assert lorebooks.set_book_locks("harbour", "", by=trusted("builder")).locks == ""


def test_lock_is_seen_where_the_book_is_attached_and_keeps_it_equal():
    a_book("harbour", "{}", GAME)
    (before,) = lorebooks.books_for([GAME])
    lorebooks.set_book_locks("harbour", "view:all()", by=trusted("builder"))
    (after,) = lorebooks.books_for([GAME])

    assert (before.locks, after.locks) == ("", "view:all()")
    assert hash(before) == hash(after)
    assert before == after


def test_new_lorebook_text_keeps_the_locks():
    a_book()
    lorebooks.set_book_locks("harbour", "edit:perm(Admin)", by=trusted("builder"))
    lorebooks.set_entry_locks("harbour", "7", "view:false()", by=trusted("builder"))
    a_book("harbour", '{"a":1}')

    assert lorebooks.get_book("harbour").locks == "edit:perm(Admin)"
    assert lorebooks.entry_locks("harbour") == {"7": "view:false()"}


def test_entry_locks_are_stored_by_uid():
    a_book()
    lorebooks.set_entry_locks("harbour", "7", "view:false()", by=trusted("builder"))
    lorebooks.set_entry_locks("harbour", "the ferry", "edit:perm(Admin)", by=trusted("builder"))
    lorebooks.set_entry_locks("harbour", "7", "", by=trusted("builder"))

    assert lorebooks.entry_locks("harbour") == {"the ferry": "edit:perm(Admin)"}


@pytest.mark.parametrize("locks", ["edit:" + "a" * 2000, "view:all()\x00"])
def test_unstorable_lock_is_refused(locks):
    a_book()

    with pytest.raises(ComponentValueError, match="locks"):
        lorebooks.set_book_locks("harbour", locks, by=trusted("builder"))
    with pytest.raises(ComponentValueError, match="locks"):
        lorebooks.set_entry_locks("harbour", "7", locks, by=trusted("builder"))
    assert lorebooks.get_book("harbour").locks == ""


def test_lock_on_an_unknown_lorebook_names_the_known_ones():
    a_book()

    with pytest.raises(NotStoredError, match="there are harbour"):
        lorebooks.set_entry_locks("habour", "7", "view:all()", by=trusted("builder"))


def test_removed_attachment_leaves_the_other_scopes():
    lorebooks.save_book("harbour", "{}", by=trusted("builder"))
    lorebooks.save_book("tides", '{"a": 1}', by=trusted("builder"))
    for name in ("harbour", "tides"):
        lorebooks.LOREBOOKS.assign(name, GAME, by=trusted("builder"))

    assert lorebooks.LOREBOOKS.unassign(GAME, "harbour", by=trusted("builder"))
    assert [book.name for book in lorebooks.books_for([GAME])] == ["tides"]
