"""`card/report`, `card/approve`, `card/reject`: the approved file is the one that was read."""

import pytest

from evennia_ai.store.authored import cards as store
from tests.commands.card_files import as_json, oren
from tests.commands.stage import on_screen, one_line

BAD_INPUT = {
    "card/approve": "Usage",
    "card/approve oren =": "Usage",
    "card/approve nobody": "No import of a card 'nobody' is waiting",
    "card/approve oren/9": "card/approve oren/1",
    "card/aprove oren": "There is no",
    "card/report": "Usage",
    "card/report nobody": "No import of a card 'nobody' is waiting",
    "card/report oren/9": "no revision of card 'oren' with number 9",
    "card/report oren/999999999999": "No import",
    "card/reject": "Usage",
    "card/reject nobody": "No import of a card 'nobody' is waiting",
    "card/reject oren = 1": "takes no '='",
    "card/reject oren/1": "without a number",
}


@pytest.fixture
def waiting(stage, card_folder):
    """Let an import of Mara wait under the name oren."""
    stage.builds("card/import oren = oren")
    return card_folder


@pytest.fixture
def ben(stage):
    """Return a function that types as another builder, Ben, and returns what he reads."""
    builder = stage.person("Ben", permission="Builder")
    return lambda *lines: on_screen(stage.sent(builder, *lines))


def imported(folder, build, personality):
    """Let a builder import another file of Oren's card."""
    (folder / "oren.json").write_bytes(as_json(oren(personality=personality)))
    return build("card/import oren = oren")


def test_card_has_no_grants_when_the_approval_names_none(stage, waiting):
    told = stage.builds("card/approve oren")
    assert "Card oren is approved, revision 2: import 1 by Mara, without any grant." in told
    assert store.get_card("oren").grants == frozenset()


def test_approval_gives_the_named_grants(stage, waiting):
    stage.builds("card/approve oren/1 = Fields,roles  regex")
    assert store.get_card("oren").grants == {"fields", "roles", "regex"}


def test_approval_with_an_unknown_grant_lists_grants_and_approves_nothing(stage, waiting):
    told = stage.builds("card/approve oren = fields, all")
    assert "'all' is no grant" in told
    assert "its system prompt is placed after the game's own rules" in told
    assert store.CARDS.list_keys() == ()


def test_approval_names_earlier_grants_and_does_not_carry_them_over(stage, waiting):
    stage.builds("card/approve oren = fields, roles")
    imported(waiting, stage.builds, "kind")
    told = stage.builds("card/approve oren = fields")
    assert "Not carried over from revision 2: roles; card/grant oren = roles" in told
    assert store.get_card("oren").grants == {"fields"}


def test_an_approval_names_who_plays_the_card(stage, waiting):
    stage.builds("card/approve oren", "card/assign oren = oren")
    imported(waiting, stage.builds, "kind")
    assert f"by Oren (#{stage.npc.id})" in stage.builds("card/approve oren")


def test_approval_asks_for_a_number_if_several_imports_wait(stage, waiting):
    imported(waiting, stage.builds, "kind")
    told = one_line(stage.builds("card/approve oren"))
    assert "as in card/approve oren/2" in told
    assert "number 1 by Mara" in told
    assert "number 2 by Mara" in told
    assert store.CARDS.list_keys() == ()


def test_approval_by_number_ends_the_other_imports(stage, waiting):
    imported(waiting, stage.builds, "kind")
    told = stage.builds("card/approve oren/1")
    assert "These imports no longer wait: number 2 by Mara" in " ".join(told.split())
    assert '"gruff"' in store.get_card("oren").source
    assert store.CARDS.waiting("oren") == ()


def test_approval_refuses_an_unread_import_of_another_builder(stage, waiting, ben):
    ben("card/reject oren")
    imported(waiting, ben, "false")
    told = one_line(stage.builds("card/approve oren"))
    assert "number 3 by Ben" in told
    assert "card/report oren, then card/approve oren/3" in told
    assert store.CARDS.list_keys() == ()


def test_approval_by_number_works_for_another_builders_import(stage, waiting, ben):
    ben("card/approve oren/1 = fields")
    actions = [(one.action, one.changed_by) for one in store.CARDS.revisions("oren")]
    assert actions == [("imported", "Mara"), ("approved", "Ben")]


def test_approval_asks_for_a_number_if_the_importer_only_has_the_same_name(stage, waiting):
    other = stage.person("Mara", permission="Builder")
    stage.sent(other, "card/reject oren")
    imported(waiting, lambda line: stage.sent(other, line), "false")
    assert "card/approve oren/3" in one_line(stage.builds("card/approve oren"))
    assert store.CARDS.list_keys() == ()


def test_approval_without_number_works_after_reading_the_report(stage, waiting, ben):
    ben("card/report oren", "card/approve oren")
    assert store.CARDS.list_keys() == ("oren",)


def test_an_import_cannot_be_approved_twice(stage, waiting, ben):
    ben("card/approve oren/1")
    assert "No import of a card 'oren' is waiting" in one_line(stage.builds("card/approve oren/1"))
    assert store.CARDS.newest_number("oren") == 2


def test_report_of_an_import_is_shown_again(stage, waiting, ben):
    told = ben("card/report OREN")
    assert "Import 1 of card oren, by Mara" in told
    assert "top of the history, role user" in told
    assert "card/approve oren/1" in told


def test_report_of_a_revision_uses_its_grants_of_then(stage, waiting):
    stage.builds("card/approve oren = fields", "card/revoke oren = fields")
    assert "ID 1020, role system" in stage.builds("card/report oren/2").split("Neutralised")[0]
    assert "card/approve" not in stage.builds("card/report oren/1")


def test_report_asks_for_a_number_if_several_imports_wait(stage, waiting):
    imported(waiting, stage.builds, "kind")
    assert "as in card/report oren/2" in one_line(stage.builds("card/report oren"))


def test_reject_ends_waiting_imports_and_keeps_the_approved_card(stage, waiting):
    stage.builds("card/approve oren = fields")
    imported(waiting, stage.builds, "kind")
    told = one_line(stage.builds("card/reject oren"))
    assert "number 3 by Mara" in told
    assert "Revision 2 stays as it was" in told
    assert store.CARDS.waiting("oren") == ()
    assert store.get_card("oren").grants == {"fields"}


def test_bad_input_gets_one_clear_line_and_changes_nothing(stage, waiting):
    for typed, words in BAD_INPUT.items():
        assert words in one_line(stage.builds(typed)), typed
        assert [one.number for one in store.CARDS.waiting("oren")] == [1], typed
        assert store.CARDS.list_keys() == (), typed
