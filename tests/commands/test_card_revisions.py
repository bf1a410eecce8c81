"""`card/revisions`, `card/revert`, `card/remove`: earlier revisions of a card, and the way back."""

import pytest

from evennia_ai.store.authored import cards as store
from tests.commands.card_files import as_json, oren
from tests.commands.stage import one_line

BAD_INPUT = {
    "card/revisions": "Usage",
    "card/revisions nobody": "no card 'nobody'",
    "card/revisions oren = 9": "no revision of card 'oren' with number 9",
    "card/rev oren": "several switches",
    "card/revert oren": "Usage",
    "card/revert oren =": "Usage",
    "card/revert oren = first": "whole number",
    "card/revert oren = 9": "no revision of card 'oren' with number 9",
    "card/revert oren = 1": "never approved",
    "card/revert oren = 4": "the same as at revision 4",
    "card/revert nobody = 1": "no revision of card 'nobody'",
    "card/remove": "Usage",
    "card/remove nobody": "no card 'nobody'",
    "card/remove oren = yes": "takes no '='",
    "card/remove oren/2": "without a number",
}


@pytest.fixture
def card(stage, card_folder):
    """Approve two files of Oren's card: gruff with a grant, then kind without a grant."""
    stage.builds("card/import oren = oren", "card/approve oren = fields")
    (card_folder / "oren.json").write_bytes(as_json(oren(personality="kind")))
    stage.builds("card/import oren = oren", "card/approve oren")
    return card_folder


def test_revisions_name_author_time_and_grants(stage, card):
    lines = stage.builds("card/revisions oren").splitlines()
    assert [line.split(",")[0] for line in lines[2::2]] == [
        "    1  imported by Mara",
        "    2  approved by Mara",
        "    3  imported by Mara",
        "    4  approved by Mara",
    ]
    assert lines[5].endswith("; grants: fields")
    assert lines[9].endswith("; grants: none")


def test_the_list_tells_in_words_what_each_revision_did_to_the_file(stage, card):
    lines = stage.builds("card/revisions oren").splitlines()
    assert [line.strip().split(";")[0] for line in lines[3::2]] == [
        "the first file",
        "the first file",
        "changed: personality",
        "changed: personality",
    ]
    stage.builds("card/grant oren = roles")
    assert "the same file; grants: roles" in stage.builds("card/revisions oren")


def test_revert_puts_the_file_and_its_grants_in_force_again(stage, card):
    told = stage.builds("card/revert oren = 2", "yes").splitlines()
    assert told[1:4] == ["grants:", "- none", "+ fields"]
    assert told[-4:-2] == ["- kind", "+ gruff"]
    assert "what it was at revision 2, with the grants fields; before it was revision 4" in told[-1]
    back = store.get_card("oren")
    assert '"gruff"' in back.source
    assert back.grants == {"fields"}


def test_removed_card_is_unusable_until_reverted(stage, card):
    told = one_line(stage.builds("card/remove OREN"))
    assert "card/revert oren = 4 brings it back" in told
    assert store.CARDS.list_keys() == ()
    assert "was removed" in one_line(stage.builds("card Oren"))
    stage.builds("card/revert Oren = 4", "yes")
    assert store.CARDS.list_keys() == ("oren",)


def test_removing_a_card_ends_its_waiting_imports(stage, card):
    stage.builds("card/export oren/2", "card/import oren-2 = oren")
    assert "waiting imports are gone, too: number 5 by Mara" in one_line(
        stage.builds("card/remove oren")
    )
    assert store.CARDS.waiting("oren") == ()


def test_remove_is_refused_while_an_npc_plays_the_card(stage, card):
    stage.builds("card/assign oren = oren")
    told = one_line(stage.builds("card/remove oren"))
    assert f"played by Oren (#{stage.npc.id}); first give them another" in told
    assert store.CARDS.list_keys() == ("oren",)


def test_a_card_that_only_a_deleted_npc_plays_can_be_removed(stage, card):
    stage.builds("card/assign oren = oren")
    stage.npc.delete()
    assert "is removed" in one_line(stage.builds("card/remove oren"))
    assert store.CARDS.list_keys() == ()


def test_revisions_list_only_the_newest_if_there_are_many(stage, card):
    for _ in range(25):
        stage.builds("card/grant oren = roles", "card/revoke oren = roles")
    told = stage.builds("card/revisions oren")
    assert "and 4 older ones" in told
    assert "   54  revoked" in told


def test_bad_input_gets_one_clear_line_and_changes_nothing(stage, card):
    for typed, words in BAD_INPUT.items():
        assert words in one_line(stage.builds(typed)), typed
        assert store.CARDS.newest_number("oren") == 4, typed
        assert store.CARDS.list_keys() == ("oren",), typed
