"""`ai/mode`: what an NPC listens to, and what it answered of what it heard last."""

import pytest

from evennia_ai.engine.actors import trusted
from tests.commands.stage import on_screen

BAD_INPUT = {
    "ai/mode": "Usage: ai/mode <npc> [= <mode>]",
    "ai/mode nobody": "no NPC called 'nobody'",
    "ai/mode oren =": "Usage: ai/mode <npc> [= <mode>]. Nothing was changed.",
    "ai/mode oren = decides": "There is no mode 'decides'; did you mean decide? Nothing",
    "ai/mode oren = 7": "There is no mode '7'; there are name_match, always, whisper_only, decide.",
    "ai/mode oren = |lcquit|ltdecide|le": "There is no mode",
}


def mode_of(stage):
    from evennia_ai.npc.npc_settings import settings_of

    return settings_of(stage.npc).mode


@pytest.mark.parametrize("line", BAD_INPUT)
def test_mode_errors_change_nothing(stage, line):
    told = stage.builds(line)
    assert BAD_INPUT[line] in told
    assert mode_of(stage) == "name_match"


def test_setting_a_mode_names_the_one_before(stage):
    told = stage.builds("ai/mode oren = decide")
    assert told.strip() == (
        "Oren listens by decide now; it was name_match. It answers as with name_match, and a cheap"
        " model decides about the rest."
    )
    assert mode_of(stage) == "decide"


def test_mode_change_is_logged_with_its_author(stage):
    from evennia_ai.npc.npc_settings import changes_of

    stage.builds("ai/mode oren = always")
    (change,) = changes_of(stage.npc)
    assert (change.name, change.new, change.by) == ("mode", "always", "Mara")


def test_mode_lists_all_modes_with_the_present_one_first(stage):
    lines = stage.builds("ai/mode oren").splitlines()
    assert lines[0].startswith("Oren listens by name_match: it answers people who name it")
    listed = [line.split()[0] for line in lines[1:] if " - " in line]
    assert listed == ["always", "whisper_only", "decide"]


def test_mode_shows_what_was_heard_and_why_it_was_answered_or_not(stage):
    with stage.model("Aye."):
        stage.plays("say Oren?", "say Mara, |lcquit|lthello|le")
        stage.waited()
        told = stage.builds("ai/mode oren")
    assert 'Pim, say: "Oren?" - answered: called by name' in told
    assert "silent: somebody else is named" in told


def test_mode_shows_whispers_to_admins_and_logs_it(stage, monkeypatch):
    logged = []
    monkeypatch.setattr("evennia.utils.logger.log_sec", logged.append)
    admin = stage.person("Ada", permission="Admin")
    with stage.model("Aye."):
        stage.plays("whisper Oren = The gold is under the mill.")
        stage.waited()
        told = " ".join(stage.builds("ai/mode oren").split())
        assert "Pim, whisper: [said in private; for Admins] - answered" in told
        assert "gold" not in told and not logged
        told = " ".join(on_screen(stage.sent(admin, "ai/mode oren")).split())
    assert 'Pim, whisper: "The gold is under the mill." - answered' in told
    assert len(logged) == 1 and "Ada reads conversation" in logged[0]


def test_mode_hides_forgotten_words(stage):
    from evennia_ai.store.erasing import erase_private

    with stage.model("Aye.", "Aye."):
        stage.plays("whisper Oren = The gold is under the mill.", "say Oren?")
        stage.waited()
        before = stage.builds("ai/mode oren")
        erase_private(str(stage.player.id), by=trusted("Mara"))
        after = stage.builds("ai/mode oren")
    assert "whisper" in before
    assert "whispered" not in after
    assert "whisper" not in after.split("What it heard last:")[1]
    assert '"Oren?"' in after
    assert "mill" not in str(stage.npc.ai.attention.last_verdicts)


def test_mode_shows_heard_markup_literally(stage):
    with stage.model("Aye."):
        stage.plays("say Mara, |lcquit|lthello|le")
        stage.waited()
        sent = stage.sent(stage.builder, "ai/mode oren")
    assert "|lc" not in sent.replace("||", "")


def test_status_counts_unanswered_overflow(stage):
    stage.npc.ai.attention.overflows = 2
    assert "not answered   2 since the start: too much waited" in stage.builds("ai oren")
    assert "Not answered because too much waited: 2." in stage.builds("ai/mode oren")
