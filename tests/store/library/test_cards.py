"""Cards in the library: the very file, without what it was granted elsewhere."""

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.prompt.components import NO_GRANTS
from evennia_ai.store.authored import card_revisions as log
from evennia_ai.store.authored import cards
from evennia_ai.store.core.copies import CopyError, copies, copy_of
from evennia_ai.store.library.cards import publish_card, take_card
from evennia_ai.store.library.entries import LibraryError, entry, reading
from evennia_ai.store.library.following import look
from tests.shared_library import published_card
from tests.store.library.test_bases import forged, tampered

OWN = '{"spec": "chara_card_v3", "data": {"name": "Oren"}}'


def taken(name="Oren"):
    with reading():
        found = entry("card", name)
    return take_card(found, by=trusted("Mara"))


def waiting(name="Oren"):
    return [one.number for one in log.waiting(name)]


def test_a_card_that_is_taken_waits_without_a_grant(library):
    assert published_card("He rows.")
    assert taken() == 1
    assert (cards.card_or_none("Oren"), waiting()) == (None, [1])
    card = cards.approve("Oren", 1, grants=NO_GRANTS, by=trusted("Mara"))
    assert "He rows." in card.source
    assert [one.typed for one in copies()] == ["card:Oren"]


def test_a_change_of_it_waits_too_and_the_card_in_force_stays(library):
    published_card("He rows.")
    taken()
    cards.approve("Oren", 1, grants=frozenset({"fields"}), by=trusted("Mara"))
    published_card("He sings.")
    assert look().cards == ("card:Oren",)
    assert look().cards == ()
    assert "He rows." in cards.get_card("Oren").source
    (number,) = waiting()
    assert "He sings." in cards.approve("Oren", number, grants=NO_GRANTS, by=trusted("Mara")).source


def test_it_is_edited_where_it_comes_from(library):
    published_card("He rows.")
    taken()
    card = cards.approve("Oren", 1, grants=NO_GRANTS, by=trusted("Mara"))
    made = log.json_file(OWN)
    for edit in (
        lambda: cards.edit_card(card, made, keeps_greetings=True, by=trusted("Mara")),
        lambda: cards.import_card("Oren", made, by=trusted("Mara")),
        lambda: cards.save_card("Oren", made, by=trusted("Mara")),
        lambda: publish_card("Oren", game="a" * 32, game_name="Here", by=trusted("Mara")),
    ):
        with pytest.raises(CopyError, match="library/own card:Oren makes card 'Oren' this game's"):
            edit()
    assert cards.get_card("Oren") == card


def test_a_card_of_the_games_own_is_not_written_over(library):
    published_card("He rows.")
    own = cards.save_card("Oren", OWN, by=trusted("Mara"))
    with pytest.raises(LibraryError, match="a card 'Oren' of its own"):
        taken()
    assert (cards.get_card("Oren"), waiting()) == (own, [])


def test_a_card_that_is_removed_here_is_followed_no_longer(library):
    published_card("He rows.")
    taken()
    cards.approve("Oren", 1, grants=NO_GRANTS, by=trusted("Mara"))
    cards.remove("Oren", by=trusted("Mara"))
    assert copy_of("card", "Oren") is None


@pytest.mark.parametrize(
    ("content", "told"),
    [("zeroblob(80000000)", "has more than"), ("x'7b7d'", "not what its list of files says")],
    ids=["size", "another card"],
)
def test_what_is_no_card_or_too_large_is_refused_whole(library, content, told):
    published_card("He rows.")
    tampered(library, f"UPDATE evennia_ai_library_file SET content = {content}")
    with pytest.raises(LibraryError, match=told):
        taken()
    assert (waiting(), copies()) == ([], ())


def test_what_cannot_be_read_as_a_card_is_refused_whole(library):
    published_card("He rows.")
    forged(library, "card.json", b"{}")
    with pytest.raises(LibraryError, match="Oren in the library is refused: card: has neither"):
        taken()
    assert (waiting(), copies()) == ([], ())
