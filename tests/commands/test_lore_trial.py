"""`lore/test` and `lore/why`: which entries would be active, and why not the others."""

import pytest

from evennia_ai import models
from tests.commands.stage import one_line


@pytest.fixture
def harbour(stage):
    """Create three entries for Oren: a plain one, one with a filter, one that nobody mentions."""
    stage.builds(
        "lore/create harbour/the ferry = ferry, boat: The ferry sails at dusk.",
        "lore/create harbour/the toll = toll: Two coppers a head.",
        "lore/secondary harbour/the toll = all toll, night",
        "lore/create harbour/the wreck = wreck: Nobody speaks of it.",
        "lore/assign harbour = npc:oren",
    )


def flat(text):
    """Return the text without line breaks."""
    return " ".join(text.split())


def test_trial_shows_active_entries_with_key_and_place(stage, harbour):
    told = stage.builds("lore/test When does the ferry sail?")
    assert "1 active:" in told
    assert "harbour#0 (the ferry), 7 tokens" in told
    assert "key 'ferry' in the event at 14-19" in told
    assert "budget" in told


def test_trial_says_why_considered_entries_are_not_active(stage, harbour):
    told = flat(stage.builds("lore/test Is there a toll?"))
    assert "harbour#1 (the toll) key 'toll' in the event" in told
    assert "'night' missing" in told


def test_trial_counts_the_other_entries(stage, harbour):
    told = flat(stage.builds("lore/test Is there a toll?"))
    assert "2 more are not active" in told
    assert "harbour, 2 entries: no key in the newest 4 messages: 0,2" in told


def test_trial_names_the_entry_that_activated_another(stage, harbour):
    stage.builds("lore/create harbour/dusk = dusk: At dusk the lamps are lit.")
    told = flat(stage.builds("lore/test When does the ferry sail?"))
    assert "2 active" in told
    assert "harbour#0" in told.split("harbour#3 (dusk)")[1].split("considered")[0]


def test_trial_explains_chances_groups_and_timers(stage, harbour):
    stage.builds(
        "lore/set harbour/the wreck = chance 0",
        "lore/set harbour/the ferry = delay 9",
        "lore/create harbour/gull = gull: White.",
        "lore/create harbour/tern = gull: Whiter.",
        "lore/set harbour/gull = group birds",
        "lore/set harbour/tern = group birds",
    )
    told = flat(stage.builds("lore/test A gull, a ferry, a wreck."))
    assert "with a chance of 0 %" in told
    assert "delay: inactive until 9 turns" in told
    assert "group 'birds'" in told.split("considered, but not active")[1]
    assert "won group 'birds' of 2" in told


def test_trial_takes_the_name_of_an_npc(stage, harbour):
    assert "If Mara said this to Oren" in stage.builds("lore/test oren = The ferry?")


def test_lore_test_says_that_no_lorebook_is_used_for_the_npc(stage):
    assert "No lorebook is used for Oren here" in one_line(stage.builds("lore/test The ferry?"))


def test_trial_without_an_npc_here_asks_for_one(stage, harbour):
    stage.npc.location = None
    assert "There is no NPC here; name one" in one_line(stage.builds("lore/test The ferry?"))
    stage.npc.location = stage.room


def test_trial_writes_nothing_and_starts_no_timer(stage, harbour):
    stage.builds("lore/set harbour/the ferry = sticky 3")

    def counted():
        tables = (models.Record, models.Turn, models.Conversation, models.LoreState)
        return [table.objects.count() for table in tables]

    before = counted()
    stage.builds("lore/test The ferry?", "lore/test The ferry?", "lore/why oren = the ferry")
    assert counted() == before
    assert "sticky" not in stage.builds("lore/test Good day.")


@pytest.mark.parametrize("item", ["harbour#0", "harbour/the ferry", "lore:harbour#0", "the ferry"])
def test_why_finds_an_entry_by_label_and_by_name(stage, harbour, item):
    with stage.model("At dusk."):
        stage.player.at_say("Oren, when does the ferry sail?")
        stage.waited()
        told = stage.builds(f"lore/why oren = {item}")
        assert "lore:harbour#0 (the ferry)" in told
        assert "key 'ferry'" in told
        assert "The ferry sails at dusk." in told
        assert stage.builds(f"ai/why oren = {item.replace('/', '#')}") == told


def test_why_says_how_long_a_sticky_entry_stays(stage, harbour):
    stage.builds("lore/set harbour/the ferry = sticky 3", "lore/set harbour/0 = scan_depth 1")
    told = []
    with stage.model(*["Aye."] * 5):
        for said in ("when does the ferry sail?", "good.", "well.", "fine.", "bye."):
            stage.player.at_say(f"Oren, {said}")
            stage.waited()
            told.append(flat(stage.builds("ai/why oren = the ferry")))
    assert "key 'ferry' in the event" in told[0]
    assert "sticky: activated earlier and stays for 2 more turns" in told[1]
    assert "sticky: activated earlier and stays for 1 more turn" in told[2]
    assert "left out: no key in the newest message" in told[3]


def test_why_of_a_silent_entry_says_that_no_key_was_found(stage, harbour):
    with stage.model("Good day."):
        stage.player.at_say("Oren, good day.")
        stage.waited()
        assert "no key in" in stage.builds("ai/why oren = the wreck")


def test_an_ambiguous_name_lists_the_candidates(stage, harbour):
    stage.builds("lore/create moor/the ferry = x: y", "lore/assign moor = game")
    told = stage.builds("ai/why oren = the ferry")
    assert "could be" in told
    assert "lore:harbour#0" in told
    assert "lore:moor#0" in told


def test_trial_shows_entries_cut_by_the_prompt_budget(stage, harbour):
    stage.builds("component/off dynamic_context")
    told = flat(stage.builds("lore/test The ferry?"))
    assert "1 active" in told
    assert "but left out of the prompt: component dynamic_context is disabled" in told


def test_trial_lines_fit_the_screen(stage, harbour):
    stage.builds(
        "lore/create harbour/" + "long name " * 20 + " = ferry: x",
        "lore/keys harbour/the toll = " + ", ".join(f"toll {n}" for n in range(50)),
    )
    told = stage.builds("lore/test The ferry, toll 7?", "lore harbour", "lore harbour/the toll")
    assert max(map(len, told.splitlines())) <= 78
