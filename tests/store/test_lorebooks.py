"""Lorebooks in the store, and where they count."""

import pytest

from evennia_ai.prompt.components import GAME, Scope
from evennia_ai.prompt.errors import FormatError
from evennia_ai.store import lorebooks
from evennia_ai.store.errors import NotStoredError
from evennia_ai.store.snapshots import forget_everything

QUAY = Scope(kind="room", ref="3")
OREN = Scope(kind="npc", ref="12")


def a_book(name="harbour", source="{}", *scopes) -> None:
    lorebooks.save_book(name, source, by="builder")
    for scope in scopes:
        lorebooks.attach(name, scope, by="builder")


def names_for(*scopes) -> list[str]:
    return [book.name for book in lorebooks.books_for(scopes)]


def test_the_text_is_kept_to_the_letter():
    a_book(source='{ "entries":[ ] }')
    forget_everything()

    assert lorebooks.get_book("harbour").source == '{ "entries":[ ] }'


def test_a_new_text_is_a_new_revision_and_the_same_text_none():
    revisions = [
        lorebooks.save_book("harbour", text, by="b").revision for text in ("{}", "{}", '{"a":1}')
    ]

    assert revisions == [1, 1, 2]


def test_what_is_no_strict_json_object_is_refused():
    with pytest.raises(FormatError, match="lorebook 'harbour' must be a JSON object"):
        lorebooks.save_book("harbour", "[]", by="builder")


def test_a_book_counts_where_it_is_attached():
    a_book("harbour", "{}", GAME)
    a_book("quay", "{}", QUAY)

    assert names_for(GAME) == ["harbour"]
    assert names_for(GAME, QUAY, OREN) == ["quay", "harbour"]


def test_a_book_says_where_it_was_found():
    a_book("harbour", "{}", QUAY)

    assert [book.scope for book in lorebooks.books_for([GAME, QUAY])] == [QUAY]


def test_a_book_that_is_attached_twice_counts_once_in_its_narrowest_scope():
    a_book("harbour", "{}", GAME, QUAY)

    assert [book.scope for book in lorebooks.books_for([GAME, QUAY])] == [QUAY]


def test_an_attachment_twice_is_one():
    a_book("harbour", "{}", QUAY, QUAY)

    assert lorebooks.scopes_of("harbour") == (QUAY,)


def test_the_scopes_of_a_book_are_listed_from_wide_to_narrow():
    a_book("harbour", "{}", OREN, GAME, QUAY)

    assert lorebooks.scopes_of("harbour") == (GAME, QUAY, OREN)


def test_a_detached_book_counts_no_more():
    a_book("harbour", "{}", QUAY)
    names_for(QUAY)

    assert lorebooks.detach("harbour", QUAY, by="builder")
    assert names_for(QUAY) == []
    assert not lorebooks.detach("harbour", QUAY, by="builder")


def test_an_unknown_book_names_the_known_ones():
    a_book()

    with pytest.raises(NotStoredError, match="there are harbour"):
        lorebooks.attach("habour", GAME, by="builder")


def test_a_changed_book_is_seen_where_it_is_attached():
    a_book("harbour", "{}", GAME)
    names_for(GAME)
    a_book("harbour", '{"a":1}')

    assert [book.source for book in lorebooks.books_for([GAME])] == ['{"a":1}']


def test_a_warm_read_makes_no_query(no_queries):
    a_book("harbour", "{}", GAME)
    names_for(GAME, QUAY, OREN)

    with no_queries():
        assert names_for(GAME, QUAY, OREN) == ["harbour"]
