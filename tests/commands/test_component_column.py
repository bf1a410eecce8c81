"""`component <npc>`: the texts of an NPC's next prompt, and the command that changes each."""

import pytest

from tests.commands.stage import one_line


@pytest.fixture
def furnished(stage, mood, card_folder):
    """Give Oren a component of his own, a card, a note, a book and a memory."""
    stage.builds(
        "component/create temper@npc:oren = 1202: He is cross.",
        "component/depth temper@npc:oren = 2",
        "component/edit goals",
        "Sell rope.",
        ":wq",
        "card/create Tam = Tam mends nets.",
        "card/edit Tam/scenario = It is night.",
        "card/assign Tam = oren",
        "note oren = He has a cold.",
        "lore/create harbour/the toll = toll: Two pennies a head.",
        "lore/set harbour/the toll = constant on",
        "lore/assign harbour = game",
    )
    return stage


def test_column_names_the_command_that_changes_each_text(furnished):
    npc = furnished.npc.id
    told = " ".join(furnished.builds("component oren").split())
    for piece in (
        "1200 system 9 C mood component/edit mood",
        f"2 system 8 C temper component/edit temper@npc:#{npc}",
        "4000 system 7 C goals component/edit goals",
        "1020 system 8 C char_description card/edit Tam/description",
        "C scenario card/edit Tam/scenario",
        "N note note/edit Oren/note",
        "L harbour#0 lore/edit harbour/0",
        "D place (the facts of the moment)",
    ):
        assert piece in told, piece


def test_column_has_prompt_order_and_fits_the_screen(furnished):
    lines = furnished.builds("component oren").splitlines()
    assert lines[0] == "What Oren's next prompt is made of, top to bottom:"
    assert max(map(len, lines)) < 80
    order = ["char_description", "mood", "goals", "temper"]
    places = [next(i for i, line in enumerate(lines) if f"C {key}" in line) for key in order]
    assert places == sorted(places)


def test_column_shows_the_history_in_one_line(furnished):
    with furnished.model("Aye."):
        furnished.player.at_say("Oren, good evening.")
        furnished.waited()
    told = furnished.builds("component oren")
    assert "H history: messages #" in told
    assert "  ai/history Oren" in told


def test_column_changes_nothing_and_names_existing_commands(furnished):
    told = furnished.builds("component oren")
    commands = [line.split("  ")[-1].strip() for line in told.splitlines() if "/edit" in line]
    for command in commands:
        opened = furnished.builds(command, ":q")
        assert "Line Editor" in opened, command
        assert ":wq saves and leaves; :q! only leaves" in opened, command


def test_component_wins_over_an_npc_of_the_same_name(stage):
    stage.builds("component/create oren = 1200: Text.")
    assert "oren (1200)" in stage.builds("component oren")


def test_unknown_name_is_reported_as_no_component(stage):
    assert "no component 'nobody'" in one_line(stage.builds("component nobody"))
