"""`regex`: scripts of the game, of cards and of presets are imported, edited, run and exported."""

import json

import pytest
from django.test import override_settings

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.prompt.components import Scope
from evennia_ai.npc.views.recomposing import PastReader, compose_again
from evennia_ai.store.authored import cards, presets
from evennia_ai.store.authored.regex_scripts import SCRIPTS, game_scripts
from evennia_ai.store.history.turns import last_turn
from tests.commands.stage import hearing, on_screen
from tests.presets_in_play import loom, without_secrets

ME = trusted("tests")
PANEL = {
    "id": "1",
    "scriptName": "panel",
    "findRegex": "/<hp>(\\d+)<\\/hp>/g",
    "replaceString": "({{char}}: $1)",
    "trimStrings": [],
    "placement": [2],
    "disabled": False,
    "markdownOnly": True,
    "promptOnly": False,
    "runOnEdit": True,
    "substituteRegex": 0,
    "minDepth": None,
    "maxDepth": None,
    "of_tomorrow": {"kept": [1, 2.5, None]},
}
OLD = {**PANEL, "id": "2", "scriptName": "old panels", "replaceString": "", "minDepth": 2}
OLD |= {"markdownOnly": False, "promptOnly": True}
HEARD = {
    **OLD,
    "scriptName": "heard",
    "findRegex": "/gold/i",
    "replaceString": "G",
    "minDepth": None,
}
HEARD["placement"] = [1]
BAD_INPUT = {
    "regex nobody": "no regex script of the game 'nobody'",
    "regex card nobody": "no card 'nobody'",
    "regex/create": "Usage",
    "regex/create panel": "has a script 'panel' already",
    "regex/create a = /(/": "a ( that is never closed",
    "regex/edit panel = 1": "Usage",
    "regex/edit panel/find = /(/": "a ( that is never closed",
    "regex/edit panel/min_depth = deep": "must be a number of messages, or none",
    "regex/edit panel/placement = thoughts": "'thoughts' is none of user_input, ai_output",
    "regex/edit panel/disabled = maybe": "must be on or off",
    "regex/edit panel/name = x": "keeps its name",
    "regex/on panel": "nothing was changed",
    "regex/on panel = 1": "takes no '='",
    "regex/test panel": "Usage",
    "regex/import nothing": "no preset file 'nothing'",
    "regex/import text": "has no regex script",
    "regex/import panel": "has a script 'panel' already",
    "regex/import two = one": "one name is not enough",
    "regex/export nobody": "no regex script",
    "regex/rem panel": "write the whole word",
    "regex/revisions nobody": "no regex script",
    "regex/revert panel = 9": "no revision",
}


@pytest.fixture
def folder(stage, tmp_path):
    """Create a preset folder with files of scripts."""
    made = tmp_path / "presets"
    made.mkdir()
    (made / "panel.json").write_text(json.dumps(PANEL, indent=2) + "\n\n")
    (made / "two.json").write_text(json.dumps([OLD, HEARD]))
    (made / "text.json").write_text('{"temp": 1}')
    with override_settings(EVENNIA_AI_PRESET_FOLDER=str(made)):
        yield made


def a_card(stage, *scripts):
    """Let Oren play a card with these scripts and without grants."""
    data = {"name": "Oren", "description": "A ferryman.", "extensions": {"regex_scripts": scripts}}
    source = json.dumps({"spec": "chara_card_v2", "spec_version": "2.0", "data": data})
    cards.save_card("oren", source, by=ME, grants=frozenset())
    cards.CARDS.assign("oren", Scope(kind="npc", ref=str(stage.npc.id)), by=ME)


def everything():
    return [(one.name, one.source, one.revision) for one in game_scripts()]


def test_bad_input_changes_no_script(stage, folder):
    stage.builds("regex/import panel")
    before = everything()
    for typed, words in BAD_INPUT.items():
        assert words in " ".join(stage.builds(typed).split()), typed
        assert everything() == before, typed


def test_script_is_exported_byte_for_byte_after_its_import(stage, folder):
    stage.builds("regex/import panel", "regex/export panel")
    assert (folder / "regex-panel.json").read_bytes() == (folder / "panel.json").read_bytes()
    stage.builds("regex/edit panel/replace = X", "regex/export panel")
    edited = json.loads((folder / "regex-panel-2.json").read_text())
    assert edited == {**PANEL, "replaceString": "X"}


def test_script_of_the_game_is_edited_reverted_and_removed(stage, folder):
    stage.builds("regex/import two", "regex/off heard", "regex/edit old panels/min-depth = 5")
    assert [one.raw["minDepth"] for one in game_scripts()] == [5, None]
    told = stage.builds("regex")
    assert "Game: 2 regex scripts, 1 of them off" in told
    assert "a provider cannot reuse" in " ".join(stage.builds("regex old panels").split())
    assert "minDepth" in stage.builds("regex/revisions old panels = 2")
    stage.builds("regex/revert old panels = 1", "yes")
    assert game_scripts()[0].raw == OLD
    stage.builds("regex/remove heard")
    assert SCRIPTS.list_keys() == ("old panels",)
    assert "G" in stage.builds("regex/test old panels = <hp>3</hp>G")


def test_scripts_of_card_and_preset_are_edited_and_the_rest_of_the_file_stays(stage, folder):
    a_card(stage, PANEL, OLD)
    before = json.loads(cards.get_card("oren").source)
    told = stage.builds("regex card oren")
    assert "They do not run: card/grant oren = regex" in " ".join(told.split())
    stage.builds(
        "regex/off card oren/2", "regex/import two = card oren", "regex/remove card oren/1"
    )
    after = json.loads(cards.get_card("oren").source)
    scripts = after["data"]["extensions"].pop("regex_scripts")
    assert scripts == [{**OLD, "disabled": True}, OLD, HEARD]
    before["data"]["extensions"].pop("regex_scripts")
    assert {name: after["data"][name] for name in before["data"]} == before["data"]

    source = without_secrets(loom(extensions={"regex_scripts": [PANEL], "other": 1}))
    presets.import_preset("Loom", source, by=ME)
    presets.PRESETS.approve("Loom", 1, grants=frozenset({"regex"}), by=ME)
    stage.builds("preset/switch Loom = Brief on", "regex/edit preset Loom/panel/replace = <$1>")
    stored = presets.get_preset("Loom")
    wanted = json.loads(source)
    wanted["extensions"]["regex_scripts"] = [{**PANEL, "replaceString": "<$1>"}]
    assert json.loads(stored.source) == wanted
    assert (stored.grants, stored.switches) == ({"regex"}, (("brief", True),))


def test_scripts_run_only_with_the_grant_and_change_no_record(stage, folder):
    a_card(stage, PANEL, OLD, HEARD)
    reply = "Here. <hp>7</hp> Take it."

    def a_turn():
        with stage.model(reply) as model:
            stage.plays("say Oren, have you gold?")
            with hearing(stage.player) as heard:
                stage.waited()
        return model.requests[-1], on_screen("\n".join(heard))

    asked, shown = a_turn()
    assert "have you gold?" in asked.messages[-1].content
    assert "<hp>7</hp>" in shown
    stage.builds("card/grant oren = regex")
    asked, shown = a_turn()
    assert "have you G?" in asked.messages[-1].content
    assert "(Oren: 7)" in shown
    assert "<hp>" not in shown
    a_turn()
    asked, _ = a_turn()
    said = [one.content for one in asked.messages if "Take it." in one.content]
    assert said[0] == "Here.  Take it."
    assert "<hp>7</hp>" in said[-1]
    turn = last_turn(str(stage.npc.id))
    assert compose_again(turn, PastReader()).sha256 == turn.manifest.sha256
    told = stage.builds("ai/why oren = regex:card oren/heard")
    assert "changed #" in told
    assert "(1 place, -3 characters)" in told
