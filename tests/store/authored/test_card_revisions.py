"""Test imports of cards, approvals, grants and reverts."""

import pytest

from evennia_ai import models
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import EditConflictError, NotStoredError, StoreError
from evennia_ai.engine.prompt.components import ALL_GRANTS, NO_GRANTS, of_npc
from evennia_ai.store.authored import cards
from evennia_ai.store.authored.files import AuthoredFile, json_file
from evennia_ai.store.authored.life_cycle import grant_givers, grants_text
from evennia_ai.store.core.snapshots import forget_everything

FIRST = json_file('{"n": 1}')
SECOND = json_file('{"n": 2}')
PICTURE = AuthoredFile(content=b"\x89PNG\x00\xff", carrier="png", source='{"n": 3}')
FIELDS = frozenset({"fields"})


def approved(file=FIRST, *, name="oren", grants=NO_GRANTS):
    """Return the card of this file, imported and approved."""
    number = cards.import_card(name, file, by=trusted("Mira"))
    return cards.CARDS.approve(name, number, grants=grants, by=trusted("Tam"))


def told(name="oren"):
    """Return the changes of a card in short form."""
    return [
        f"{one.number} {one.action} by {one.changed_by}: {grants_text(one.value.grants)}"
        for one in cards.CARDS.revisions(name)
    ]


def test_import_changes_nothing_until_approved():
    cards.import_card("oren", FIRST, by=trusted("Mira"))

    assert cards.CARDS.list_keys() == ()
    assert cards.card_or_none("oren") is None
    assert [(one.number, one.changed_by) for one in cards.CARDS.waiting("oren")] == [(1, "Mira")]
    assert cards.CARDS.waiting_names() == ("oren",)


def test_every_current_and_former_name_of_a_card_is_known():
    approved()
    cards.CARDS.remove("oren", by=trusted("Tam"))
    cards.import_card("mira", SECOND, by=trusted("Mira"))
    assert cards.CARDS.names_ever() == ("mira", "oren")


def test_approved_import_is_current_with_its_grants():
    card = approved(grants=FIELDS)

    assert (card.source, card.grants, card.revision) == (FIRST.source, FIELDS, 2)
    assert (cards.CARDS.waiting("oren"), cards.CARDS.waiting_names()) == ((), ())
    assert told() == ["1 imported by Mira: ", "2 approved by Tam: fields"]


def test_import_next_to_a_current_card_gets_no_grants():
    first = approved(grants=ALL_GRANTS)
    number = cards.import_card("oren", SECOND, by=trusted("Mira"))

    assert cards.get_card("oren") == first
    assert (
        cards.CARDS.approve("oren", number, grants=NO_GRANTS, by=trusted("Tam")).grants == NO_GRANTS
    )


def test_approval_answers_all_waiting_imports():
    first = cards.import_card("oren", FIRST, by=trusted("Mira"))
    second = cards.import_card("oren", SECOND, by=trusted("Ben"))
    cards.CARDS.approve("oren", second, grants=NO_GRANTS, by=trusted("Tam"))

    assert cards.CARDS.waiting("oren") == ()
    with pytest.raises(StoreError, match="revision 1 of card 'oren' is not an import that waits"):
        cards.CARDS.approve("oren", first, grants=ALL_GRANTS, by=trusted("Tam"))
    assert cards.get_card("oren").source == SECOND.source


@pytest.mark.parametrize("answer", ["approve", "reject"])
def test_unseen_import_is_not_answered(answer):
    first = cards.import_card("oren", FIRST, by=trusted("Mira"))
    cards.import_card("oren", SECOND, by=trusted("Ben"))

    with pytest.raises(EditConflictError, match="changed by Ben"):
        if answer == "approve":
            cards.CARDS.approve(
                "oren", first, grants=NO_GRANTS, by=trusted("Tam"), newest_seen=first
            )
        else:
            cards.CARDS.reject("oren", by=trusted("Tam"), newest_seen=first)
    assert len(cards.CARDS.waiting("oren")) == 2


def test_grant_does_not_answer_a_waiting_import():
    approved()
    cards.import_card("oren", SECOND, by=trusted("Mira"))
    cards.CARDS.grant("oren", FIELDS, by=trusted("Tam"))

    assert len(cards.CARDS.waiting("oren")) == 1
    assert cards.get_card("oren").source == FIRST.source


def test_current_file_is_not_imported_again():
    approved()

    assert cards.import_card("oren", FIRST, by=trusted("Mira")) is None
    assert len(told()) == 2


def test_rejected_import_cannot_be_approved():
    approved()
    number = cards.import_card("oren", SECOND, by=trusted("Mira"))

    assert cards.CARDS.reject("oren", by=trusted("Tam")) == 1
    assert cards.CARDS.reject("oren", by=trusted("Tam")) == 0
    with pytest.raises(StoreError, match="not an import that waits"):
        cards.CARDS.approve("oren", number, grants=NO_GRANTS, by=trusted("Tam"))
    assert cards.get_card("oren").source == FIRST.source


def test_grant_is_recorded_with_its_giver():
    approved(grants=FIELDS)
    cards.CARDS.grant("oren", frozenset({"roles", "fields"}), by=trusted("Ben"))
    cards.CARDS.revoke("oren", FIELDS, by=trusted("Mira"))
    cards.CARDS.grant("oren", FIELDS, by=trusted("Anna"))

    assert told()[1:] == [
        "2 approved by Tam: fields",
        "3 granted by Ben: fields roles",
        "4 revoked by Mira: roles",
        "5 granted by Anna: fields roles",
    ]
    given = grant_givers(cards.CARDS.revisions("oren"))
    assert {grant: change.changed_by for grant, change in given.items()} == {
        "fields": "Anna",
        "roles": "Ben",
    }


def test_repeated_grant_or_revocation_changes_nothing():
    card = approved(grants=FIELDS)

    assert cards.CARDS.grant("oren", FIELDS, by=trusted("Ben")) == card
    assert cards.CARDS.revoke("oren", frozenset({"roles"}), by=trusted("Ben")) == card
    assert len(told()) == 2


def test_revert_restores_the_file_and_its_grants():
    approved(grants=FIELDS)
    approved(SECOND)
    card = cards.CARDS.revert("oren", 2, by=trusted("Ben"))

    assert (card.source, card.grants) == (FIRST.source, FIELDS)
    assert told()[-1] == "5 reverted by Ben: fields"


def test_revision_that_was_never_current_cannot_be_restored():
    approved()
    cards.import_card("oren", SECOND, by=trusted("Mira"))

    with pytest.raises(StoreError, match="imported and never approved"):
        cards.CARDS.revert("oren", 3, by=trusted("Ben"))
    with pytest.raises(NotStoredError, match="number 9; there are 1, 2, 3"):
        cards.CARDS.revert("oren", 9, by=trusted("Ben"))
    assert cards.get_card("oren").source == FIRST.source


def test_played_card_cannot_be_removed():
    approved()
    cards.CARDS.assign("oren", of_npc("12"), by=trusted("Ben"))

    with pytest.raises(StoreError, match="is assigned to npc:12; assign another there"):
        cards.CARDS.remove("oren", by=trusted("Ben"))
    assert cards.card_of("12") is not None
    assert len(told()) == 2


def test_file_is_stored_once_byte_for_byte():
    approved(PICTURE)
    approved(PICTURE, name="mira")
    forget_everything()

    assert cards.get_card("oren").carrier == "png"
    assert cards.CARDS.revision_file("oren", 2) == PICTURE
    assert models.SourceFile.objects.count() == 1


def test_new_grants_of_a_card_reach_its_players():
    approved()
    cards.CARDS.assign("oren", of_npc("12"), by=trusted("Ben"))
    before = cards.card_of("12")
    cards.CARDS.grant("oren", FIELDS, by=trusted("Ben"))

    assert before.grants == NO_GRANTS
    assert cards.card_of("12").grants == FIELDS


def test_greeting_belongs_to_the_assignment():
    approved()
    cards.CARDS.assign("oren", of_npc("12"), by=trusted("Ben"))
    assert cards.assignment_of("12").greeting is None

    cards.set_greeting("12", 1, by=trusted("Ben"))
    assert cards.assignment_of("12").greeting == 1
    assert cards.players_of("oren") == ("12",)
    with pytest.raises(NotStoredError, match="card that is played by NPC '13'"):
        cards.set_greeting("13", 0, by=trusted("Ben"))


def test_unknown_grant_gives_nothing():
    approved(grants=FIELDS)
    models.Card.objects.update(grants="fields everything")
    forget_everything()

    assert cards.get_card("oren").grants == FIELDS


@pytest.mark.parametrize("change", ["approve", "revert"])
def test_greeting_chosen_from_one_file_is_not_said_from_another(change):
    first = approved(FIRST)
    if change == "revert":
        approved(SECOND)
    cards.CARDS.assign("oren", of_npc("7"), by=trusted("Tam"))
    cards.set_greeting("7", 1, by=trusted("Tam"))

    if change == "revert":
        cards.CARDS.revert("oren", first.revision, by=trusted("Tam"))
    else:
        approved(SECOND)
    assert cards.assignment_of("7").greeting is None


def test_greeting_stays_while_the_file_is_the_same():
    approved(FIRST)
    cards.CARDS.assign("oren", of_npc("7"), by=trusted("Tam"))
    cards.set_greeting("7", 1, by=trusted("Tam"))

    cards.CARDS.grant("oren", FIELDS, by=trusted("Tam"))
    assert cards.assignment_of("7").greeting == 1


def test_imports_beyond_the_limit_are_refused_and_leave_no_file(monkeypatch):
    monkeypatch.setattr(cards.CARDS, "most_waiting", 2)
    cards.import_card("oren", FIRST, by=trusted("Mira"))
    cards.import_card("mira", SECOND, by=trusted("Mira"))
    with pytest.raises(StoreError, match=r"more than 2 imports would wait.*mira, oren$"):
        cards.import_card("tam", PICTURE, by=trusted("Mira"))
    assert cards.CARDS.waiting_names() == ("mira", "oren")
    assert models.SourceFile.objects.count() == 2


def test_answered_import_makes_room_for_another(monkeypatch):
    monkeypatch.setattr(cards.CARDS, "most_waiting", 1)
    cards.import_card("oren", FIRST, by=trusted("Mira"))
    cards.CARDS.reject("oren", by=trusted("Mira"))
    assert cards.import_card("mira", SECOND, by=trusted("Mira")) == 1
    assert (cards.CARDS.count_waiting(), cards.CARDS.waiting_names()) == (1, ("mira",))


def test_already_waiting_import_needs_no_room(monkeypatch):
    cards.import_card("oren", FIRST, by=trusted("Mira"))
    monkeypatch.setattr(cards.CARDS, "most_waiting", 1)
    assert cards.import_card("oren", FIRST, by=trusted("Tam")) == 1


def test_games_own_card_is_saved_however_many_imports_wait(monkeypatch):
    cards.import_card("oren", FIRST, by=trusted("Mira"))
    monkeypatch.setattr(cards.CARDS, "most_waiting", 0)
    assert cards.save_card("mira", SECOND, by=trusted("world")).revision == 2
