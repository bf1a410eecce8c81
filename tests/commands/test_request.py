"""`ai/request`: the file of a turn, who may have it, and that `compose --request` reads it."""

import json
import subprocess
import sys
from zlib import compress

import pytest

from evennia_ai import models
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.history.turn.manifest import text_in_row
from evennia_ai.store import memories
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.history import turns
from tests.commands.stage import one_line
from tests.engine.memory.builders import a_memory
from tests.modes import is_open_to_others
from tests.store.history.test_verifying import set_column


@pytest.fixture
def talked(stage):
    """Let Oren answer Pim twice in the room."""
    with stage.model("Aye.", "At dusk.") as scripted:
        for line in ("Oren, are you there?", "Oren, when does it run?"):
            stage.player.at_say(line)
            stage.waited()
        yield scripted


def composed(path, *options: str):
    """Return what `evennia-ai compose --request` prints in another process."""
    command = [sys.executable, "-m", "evennia_ai.cli", "compose", "--request", str(path), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.long
@pytest.mark.req("S1-03", "S1-05")
def test_request_composes_to_the_sent_bytes_in_another_process(stage, talked, card_folder):
    told = one_line(stage.builds("ai/request oren"))
    (file,) = card_folder.glob("*.request")
    sent = turns.last_turn(stage.npc.ai.ref)
    made = composed(file, "--json")

    assert f"Wrote the request of turn 2 of Oren, {file.stat().st_size} bytes, to" in told
    assert f"It composes to the bytes that were sent, sha256 {sent.manifest.sha256}." in told
    assert (made.returncode, made.stderr) == (0, "")
    assert json.loads(made.stdout)["sha256"] == sent.manifest.sha256
    assert composed(file).stdout.splitlines()[0] == f"sha256 {sent.manifest.sha256}"
    assert not is_open_to_others(file)


def test_request_of_an_older_turn_has_its_own_inputs(stage, talked, card_folder):
    stage.builds("ai/request oren/1", "ai/request oren/2")
    first, second = sorted(card_folder.glob("*.request"))

    assert (first.name, second.name) == ("oren-1.request", "oren-2.request")
    assert "when does it run" not in first.read_text()
    assert "when does it run" in second.read_text()


def test_request_of_a_whisper_is_for_admins(stage, card_folder):
    with stage.model("Psst."):
        stage.player.at_say("The tunnel is open.", receivers=[stage.npc], whisper=True)
        stage.waited()
    told = one_line(stage.builds("ai/request oren"))
    assert "hide from you. Nothing was written" in told
    assert not list(card_folder.glob("*.request"))

    stage.builder.permissions.add("Admin")
    stage.builds("ai/request oren")
    (file,) = card_folder.glob("*.request")
    assert "The tunnel is open." in file.read_text()


def test_request_with_a_hidden_memory_is_for_admins(stage, card_folder):
    secret = a_memory("Pim dug a tunnel.", learnt="private")
    memories.add_memory(stage.npc.ai.ref, secret, by=trusted("npc"), most=50)
    with stage.model("Aye.", "Psst."):
        stage.player.at_say("psst", receivers=[stage.npc], whisper=True)
        stage.waited()
        stage.player.at_say("Oren, what of the tunnel?")
        stage.waited()
    told = one_line(stage.builds("ai/request oren"))

    assert "was made from lore, memories or facts that locks hide from you" in told
    assert not list(card_folder.glob("*.request"))


def test_request_is_refused_for_a_changed_turn(stage, talked, card_folder):
    set_column("outcome", "said nothing", number=2)
    told = one_line(stage.builds("ai/request oren"))

    assert "Turn 2 cannot be replayed: it was changed in the database" in told
    assert not list(card_folder.glob("*.request"))


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        ("ai/request", "Usage: ai/request <npc>[/<turn>]"),
        ("ai/request oren/9", "no turn 9"),
        ("ai/request oren = x", "ai/request takes no '='"),
    ],
)
def test_request_errors_write_nothing(stage, talked, card_folder, typed, problem):
    assert problem in one_line(stage.builds(typed))
    assert not list(card_folder.glob("*.request"))


@pytest.mark.req("S2-16", "S2-26")
def test_turn_shows_the_settings_of_its_request(stage):
    stage.builds("ai/set oren = temperature 0.7", "ai/set oren = reply_tokens 90")
    with stage.model("Aye.") as scripted:
        stage.player.at_say("Oren, are you there?")
        stage.waited()
    turn, asked = turns.last_turn(stage.npc.ai.ref), scripted.requests[-1]

    assert asked.sampling.temperature == turn.manifest.request["body"]["temperature"] == 0.7
    assert asked.max_tokens == turn.manifest.request["body"]["max_tokens"] == 90
    assert turn.manifest.request["profile"] == "default"
    for screen in ("ai/context oren", "ai/replay oren = 1"):
        told = " ".join(stage.builds(screen).split())
        assert "max_tokens 90, model scripted, temperature 0.7" in told


@pytest.mark.req("S2-26")
def test_replay_says_if_the_request_settings_were_changed(stage, talked):
    text = text_in_row(models.Turn.objects.get(number=1).manifest)
    changed = text.replace('"max_tokens":400', '"max_tokens":401')
    set_column("manifest", compress(changed.encode()), number=1)
    forget_everything()

    told = " ".join(stage.builds("ai/replay oren = 1").split())
    assert "It cannot be replayed: it was changed in the database" in told
    verified = " ".join(stage.builds("ai/verify oren").split())
    assert "BROKEN at turn 1: it was changed in the database" in verified
