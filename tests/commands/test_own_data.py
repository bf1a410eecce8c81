"""`ai me` and `ai report`: players read, erase and report what NPCs keep and say."""

import json

import pytest
from django.apps import apps

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.memory.memories import Memory
from evennia_ai.store import memories
from evennia_ai.store.history.conversations import conversations_of
from evennia_ai.store.history.reports import newest_reports
from evennia_ai.store.history.verifying import verify

CANARIES = ("quicksilver", "turpentine", "saltpetre", "vermilion", "verdigris")


def in_tables() -> str:
    """Return all rows of our tables as text."""
    tables = apps.get_app_config("evennia_ai").get_models()
    return "\n".join(json.dumps(row, default=str) for one in tables for row in one.objects.values())


def flat(told: str) -> str:
    return " ".join(told.split())


def remembers(stage, text, *, about, learnt="aloud"):
    new = Memory(
        id=memories.NEW,
        text=text,
        about=str(about.id),
        importance=5,
        created_at=1.0,
        recalled_at=1.0,
        place_ref=str(stage.room.id),
        author="npc",
        learnt=learnt,
    )
    memories.add_memory(stage.npc.ai.ref, new, by=trusted("Oren"), most=100)


@pytest.fixture
def known(stage):
    """The stage, on which Oren keeps one canary of each kind about Pim, and one about Mara."""
    persona, whisper, answer, memory, why = CANARIES
    stage.plays(f"persona = A man of {persona}.")
    with stage.model(f"I keep {answer}.", "Aye."):
        stage.player.at_say(f"Take {whisper}.", receivers=[stage.npc], whisper=True)
        stage.waited()
        stage.plays(f"ai report oren = He said {why}.")
        stage.player.at_say("Oren, good evening.")
        stage.waited()
    remembers(stage, f"Pim likes {memory}.", about=stage.player, learnt="private")
    remembers(stage, "Mara likes umber.", about=stage.builder)
    return stage


def test_ai_me_counts_what_each_npc_keeps_of_the_player(known):
    told = flat(known.plays("ai me"))
    assert "Oren 1 memory, 2 lines in private, 1 line aloud" in told
    assert "persona" in told and "1 report" in told


def test_player_of_whom_nothing_is_kept_is_told_so(stage):
    for line in ("ai me", "ai me/export"):
        assert "No NPC keeps anything of you." in stage.plays(line)
    assert "There is nothing to erase" in stage.plays("ai me/forget")


def test_export_shows_everything_about_the_player_and_nothing_about_others(known):
    told = flat(known.plays("ai me/export"))
    assert [canary for canary in CANARIES if canary not in told] == []
    assert "good evening" in told
    assert "umber" not in told


def test_nothing_that_was_exported_is_left_after_ai_me_forget(known):
    assert all(canary in in_tables() for canary in CANARIES)
    told = flat(known.plays("ai me/forget", "yes"))
    assert "This cannot be undone" in told and "Erased" in told and "1 report" in told
    left = in_tables()
    assert [canary for canary in CANARIES if canary in left] == []
    assert "umber" in left
    assert all(verify(where) is None for where in conversations_of(known.npc.ai.ref))
    assert "good evening" in flat(known.plays("ai me/export"))


def test_report_of_words_said_aloud_loses_its_words_after_ai_me_forget(known):
    known.plays("ai report = He said sulphur.")
    assert "sulphur" in in_tables()
    known.plays("ai me/forget", "yes")
    assert "sulphur" not in in_tables()
    (newest, older) = newest_reports(first=0, most=5)
    assert (newest.words, newest.why, newest.reporter_ref) == ("", "", "")
    assert len(newest.prompt_sha256) == 64 and newest.turn == 2 and older.words == ""
    assert "by a player who was forgotten" in flat(known.builds("ai/reports"))


@pytest.mark.parametrize("answer", ["no", ""])
def test_nothing_is_erased_without_a_yes(known, answer):
    before = in_tables()
    assert "Nothing was erased." in known.plays("ai me/forget", answer)
    assert in_tables() == before


def test_ai_me_forget_with_a_name_erases_what_one_npc_keeps(known):
    assert "No NPC called 'brida' keeps anything" in known.plays("ai me/forget brida")
    assert "write the whole word" in known.plays("ai me/for oren")
    known.plays("ai me/forget oren", "yes")
    left = in_tables()
    assert [canary for canary in CANARIES if canary in left] == [CANARIES[0]]


def test_report_keeps_turn_prompt_and_words_for_the_staff(known):
    (report,) = newest_reports(first=0, most=5)
    assert (report.turn, report.words) == (1, f"I keep {CANARIES[2]}.")
    assert report.why == f"He said {CANARIES[4]}."
    told = flat(known.builds("ai/reports"))
    assert "by Pim" in told and report.prompt_sha256[:12] in told
    assert f"ai/context oren/{report.turn}" in told
    assert "[said in private; for Admins]" in told and CANARIES[2] not in told
    known.builder.permissions.add("Admin")
    told = flat(known.builds("ai/reports"))
    assert CANARIES[2] in told and CANARIES[4] in told
    assert "is not available" in known.plays("ai/reports")


def test_report_without_a_name_is_about_the_newest_words_in_the_room(known):
    assert "Aye." in known.plays("ai report = |rRude|n.")
    (newest, _) = newest_reports(first=0, most=5)
    assert (newest.words, newest.why, newest.turn) == ("Aye.", "Rude.", 2)
    assert "Aye." in flat(known.builds("ai/reports"))


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        ("ai report oren", "Usage: ai report [<npc>] = <why>"),
        ("ai report oren =", "Usage: ai report [<npc>] = <why>"),
        ("ai report mara = Rude.", "There is nobody called 'mara' here"),
        ("ai report oren = Rude.", "has said nothing that you could hear"),
        ("ai report = Rude.", "No NPC here has said anything"),
    ],
)
def test_report_without_words_of_an_npc_is_refused(stage, typed, problem):
    assert problem in flat(stage.plays(typed))
    assert newest_reports(first=0, most=5) == ()


def test_words_whispered_to_another_player_cannot_be_reported(stage):
    with stage.model("A secret of Mara."):
        stage.builder.at_say("Oren?", receivers=[stage.npc], whisper=True)
        stage.waited()
    assert "has said nothing that you could hear" in flat(stage.plays("ai report oren = Rude."))


def test_reports_beyond_the_daily_number_are_refused(known, monkeypatch):
    monkeypatch.setattr("evennia_ai.commands.privacy._MOST_A_DAY", 1)
    assert "You reported 1 times today" in known.plays("ai report oren = Again.")


def test_reports_have_pages(known, monkeypatch):
    monkeypatch.setattr("evennia_ai.commands.ai.reports.PAGE", 1)
    known.plays("ai report = Rude.")
    assert "More: ai/reports 2" in known.builds("ai/reports")
    assert "There is no page 3; the last one is 2." in known.builds("ai/reports 3")
