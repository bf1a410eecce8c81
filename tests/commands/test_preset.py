"""`preset`: imports wait, are approved with grants, are used somewhere, and are switched."""

import json

import pytest
from django.test import override_settings

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.prompt.components import GAME, PromptComponent, Scope
from evennia_ai.store.authored import components, presets
from tests.commands.stage import one_line
from tests.presets_in_play import LOOM, a_prompt, loom, without_secrets

ALL = "system_prompt, fields, after_history, positions, roles"
OTHER = loom(prompts=[a_prompt("main", "OTHER-MAIN", system_prompt=True), *LOOM["prompts"][1:]])
BAD_INPUT = {
    "preset nobody": "no preset 'nobody'",
    "preset Loom = oren": "preset/assign Loom = oren",
    "preset/import nothing": "no preset file 'nothing' in the preset folder; preset/import lists",
    "preset/import ../secret": "no preset file",
    "preset/import Loom =": "Usage",
    "preset/import Loom = a/1": "preset/import <file> = <name>",
    "preset/import broken": "broken.json is refused",
    "preset/import text": "text.json is refused: preset: has neither",
    "preset/approve Loom": "No import of a preset 'Loom' is waiting",
    "preset/approve": "Usage",
    "preset/report nobody": "No import",
    "preset/reject nobody": "No import",
    "preset/rej Loom": "write the whole word",
    "preset/remov Loom": "write the whole word",
    "preset/remove Loom = yes": "takes no '='",
    "preset/grant Loom = everything": "'everything' is no grant",
    "preset/revoke Loom = regex": "nothing was changed",
    "preset/assign Loom": "Usage",
    "preset/assign nobody = game": "no preset 'nobody'",
    "preset/assign Loom = faction:smugglers": "is no place for a preset; there are game, zone:",
    "preset/assign Loom = Nobody": "There is no NPC called 'Nobody'",
    "preset/assign Loom = game:x": "takes no name",
    "preset/assign Loom/2 = game": "without a number",
    "preset/unassign Loom = game": "Preset Loom is not used in game; no preset is used there",
    "preset/unassign": "Usage",
    "preset/switch Loom": "Usage",
    "preset/switch Loom = nothing on": "no prompt 'nothing'",
    "preset/switch Loom = 99": "no prompt '99'",
    "preset/switch Loom = Tone on": "on already; nothing was changed",
    "preset/export nobody": "no preset 'nobody'",
    "preset/export Loom = json": "takes no '='",
    "preset/revisions nobody": "no preset 'nobody'",
    "preset/revisions Loom = 9": "no revision of preset 'Loom' with number 9",
    "preset/revert Loom = 1": "never approved",
    "preset/revert Loom = 2": "the same as at revision 2",
    "preset/swich Loom": "Type this instead: preset/switch Loom",
}


@pytest.fixture
def folder(stage, tmp_path):
    """Create a preset folder with Loom, a broken file, and a file of another kind."""
    made = tmp_path / "presets"
    made.mkdir()
    (made / "Loom.json").write_text(json.dumps(LOOM))
    (made / "broken.json").write_text('{"prompts": [')
    (made / "text.json").write_text('{"temp": 1}')
    (tmp_path / "secret.json").write_text(json.dumps(LOOM))
    with override_settings(EVENNIA_AI_PRESET_FOLDER=str(made)):
        yield made


@pytest.fixture
def preset(stage, folder):
    """Approve Loom with all grants that it can use."""
    stage.builds("preset/import Loom", f"preset/approve Loom = {ALL}")
    return folder


def changed_elsewhere(folder, build):
    (folder / "Loom.json").write_text(json.dumps(OTHER))
    return build("preset/import Loom")


def everything():
    """Return everything that a command could change, to check that nothing was changed."""
    return presets.get_preset("Loom"), presets.assignments(), len(presets.PRESETS.revisions("Loom"))


def test_bad_input_changes_nothing(stage, preset):
    before = everything()
    for typed, words in BAD_INPUT.items():
        assert words in " ".join(stage.builds(typed).split()), typed
        assert everything() == before, typed


def test_import_without_file_lists_the_files(stage, folder):
    told = stage.builds("preset/import")
    assert f"Preset files in {folder.name}:" in told
    assert "Loom.json" in told
    assert "There are no presets yet" in stage.builds("preset")


def test_an_import_reports_waits_and_changes_nothing(stage, folder):
    told = stage.builds("preset/import Loom")
    assert "Import 1 of preset Loom, by Mara" in told
    assert "To approve it: preset/approve Loom/1 [= <grants>]" in told
    assert (presets.PRESETS.list_keys(), presets.PRESETS.waiting_names()) == ((), ("Loom",))
    assert "not approved yet" in stage.builds("preset")
    assert "waits for approval; preset/approve Loom/1" in stage.builds("preset Loom")


def test_import_drops_secrets_and_reports_them(stage, folder):
    told = stage.builds("preset/import Loom")
    assert "proxy_password" in told
    assert "hush-hush" not in told
    source = presets.PRESETS.revision_file("Loom", 1).source
    assert "hush" not in source
    assert "proxy.example" not in source
    assert json.loads(source) == json.loads(without_secrets(LOOM))


def test_approval_gives_the_named_grants_and_uses_the_preset_nowhere(stage, folder):
    told = stage.builds("preset/import Loom = The Loom", "preset/approve The Loom = fields")
    assert "Preset The Loom is approved, revision 2: import 1 by Mara" in told
    assert "It is used nowhere yet: preset/assign The Loom = <place>." in told
    assert presets.get_preset("The Loom").grants == {"fields"}


def test_approval_refuses_an_unread_import_of_another_builder(stage, folder):
    ben = stage.person("Ben", permission="Builder")
    stage.sent(ben, "preset/import Loom")
    told = one_line(stage.builds("preset/approve Loom"))
    assert "read it with preset/report Loom, then preset/approve Loom/1" in told
    stage.builds("preset/report Loom", "preset/approve Loom")
    assert presets.PRESETS.list_keys() == ("Loom",)


def test_second_import_waits_and_names_what_it_does_not_get(stage, preset):
    stage.builds("preset/switch Loom = Brief on")
    told = changed_elsewhere(preset, stage.builds)
    assert "and 1 switch, which the import does not get" in " ".join(told.split())
    assert "LOOM-MAIN" in presets.get_preset("Loom").source

    told = " ".join(stage.builds("preset/approve Loom = fields").split())
    assert "Not carried over from revision 3: system_prompt, after_history" in told
    assert "The switches of revision 3 belong to another file" in told
    assert presets.get_preset("Loom").switches == ()


def test_reject_ends_the_waiting_import(stage, preset):
    changed_elsewhere(preset, stage.builds)
    told = one_line(stage.builds("preset/reject Loom"))
    assert "Rejected the waiting imports of preset Loom: number 3 by Mara" in told
    assert "Revision 2 stays as it was" in told


def test_a_preset_lists_its_prompts_with_their_marks_order_as_sillytavern(stage, preset):
    told = stage.builds("preset Loom")
    lines = [" ".join(line.split()) for line in told.splitlines()]
    marks = [line[:9] for line in lines if line[:1].isdigit()]
    assert marks[:4] == ["1 [x] Mai", "2 [x] Ton", "3 [ ] Bri", "4 [x] Tic"]
    assert any("(the conversation)" in line for line in lines)
    assert any(line.startswith("may: roles, given by Mara") for line in lines)


@pytest.mark.parametrize(
    ("place", "scope"),
    [
        ("game", GAME),
        ("zone:Harbour", Scope(kind="zone", ref="harbour")),
        ("here", "room"),
        ("oren", "npc"),
        ("npc:oren", "npc"),
    ],
)
def test_preset_is_used_where_assigned_until_unassigned(stage, preset, place, scope):
    refs = {"room": str(stage.room.id), "npc": stage.npc.ai.ref}
    wanted = scope if isinstance(scope, Scope) else Scope(kind=scope, ref=refs[scope])
    told = one_line(stage.builds(f"preset/assign loom = {place}"))
    assert "from the next turn on" in told
    assert presets.assignments() == {wanted: "Loom"}

    told = one_line(stage.builds("preset/remove Loom"))
    assert "first use another one there with preset/assign" in told
    told = one_line(stage.builds(f"preset/unassign Loom = {place}"))
    assert told.endswith("it is used nowhere.")
    assert presets.assignments() == {}


def test_assign_names_the_replaced_preset(stage, preset):
    stage.builds("preset/import Loom = Two", "preset/approve Two", "preset/assign Loom = game")
    assert "no longer Loom" in stage.builds("preset/assign Two = game")


@pytest.mark.parametrize(
    ("typed", "switches"),
    [
        ("Brief on", {"brief": True}),
        ("brief", {"brief": True}),
        ("3", {"brief": True}),
        ("2", {"tone": False}),
        ("TONE off", {"tone": False}),
    ],
)
def test_a_prompt_is_switched_by_name_number_or_identifier(stage, preset, typed, switches):
    told = one_line(stage.builds(f"preset/switch Loom = {typed}"))
    assert "from the next turn on; this is revision 3" in told
    assert dict(presets.get_preset("Loom").switches) == switches


def test_prompt_name_ending_in_on_is_found(stage, folder):
    prompts = [*LOOM["prompts"], a_prompt("mode", "Mode.", name="Mode on")]
    (folder / "Loom.json").write_text(json.dumps(loom(prompts=prompts)))
    stage.builds("preset/import Loom", "preset/approve Loom", "preset/switch Loom = Mode on")
    assert dict(presets.get_preset("Loom").switches) == {"mode": True}
    stage.builds("preset/switch Loom = Mode on off")
    assert dict(presets.get_preset("Loom").switches) == {"mode": False}


def test_switch_changes_prompts_that_use_the_preset(stage, preset):
    def prompt():
        preview = stage.npc.ai.preview("Oren, well?", stage.player)
        return "\n".join(message.content for message in preview.messages)

    assert "LOOM" not in prompt()
    stage.builds("preset/assign Loom = oren")
    assert "LOOM-TONE Be salty." in prompt()
    assert "LOOM-BRIEF" not in prompt()
    stage.builds("preset/switch Loom = Brief on", "preset/switch Loom = Tone off")
    assert "LOOM-BRIEF" in prompt()
    assert "LOOM-TONE" not in prompt()


def test_grant_without_value_shows_the_report(stage, folder):
    stage.builds("preset/import Loom", "preset/approve Loom")
    told = stage.builds("preset/grant Loom")
    assert "Grants of preset Loom, revision 2:" in told
    told = stage.builds("preset/grant Loom = fields", "preset/revoke Loom = fields")
    assert "Preset Loom may now:" in told
    assert "Preset Loom may no longer:" in told
    assert presets.get_preset("Loom").revision == 4


def test_unedited_preset_is_exported_unchanged_except_for_its_secrets(stage, preset):
    told = one_line(stage.builds("preset/export Loom"))
    assert "Wrote preset Loom, revision 2, to loom.json" in told
    written = json.loads((preset / "loom.json").read_text())
    assert written == json.loads(without_secrets(LOOM))


def test_an_export_has_the_switches_and_the_builder_s_components_in_it(stage, preset):
    own = PromptComponent(id=12, key="st_tone", content="Be sweet.", name="Tone", trust="imported")
    components.create(own, by=trusted("Mara"))
    told = stage.builds("preset/switch Loom = Brief on", "preset/export Loom")
    assert "with your components st_tone in it" in told
    written = json.loads((preset / "loom.json").read_text())
    by_name = {one["identifier"]: one for one in written["prompts"]}
    order = {one["identifier"]: one["enabled"] for one in written["prompt_order"][0]["order"]}
    assert by_name["tone"]["content"] == "Be sweet."
    assert (order["brief"], order["tone"]) == (True, True)

    stage.builds("preset/export Loom/2")
    again = json.loads((preset / "loom-2.json").read_text())
    order = {one["identifier"]: one["enabled"] for one in again["prompt_order"][0]["order"]}
    assert order["brief"] is False


def test_revisions_list_changes_and_one_shows_its_own(stage, preset):
    stage.builds("preset/switch Loom = Brief on")
    changed_elsewhere(preset, stage.builds)
    stage.builds("preset/approve Loom")
    told = stage.builds("preset/revisions Loom")
    assert "    3  switched by Mara" in told
    assert "       brief on" in told

    told = stage.builds("preset/revisions Loom = 3").splitlines()
    assert told[1] == "Compared with revision 2:"
    assert told[-3:] == ["Brief is on:", "- false", "+ true"]
    told = stage.builds("preset/revisions Loom = 5")
    assert "+ OTHER-MAIN" in told
    assert "There was none before:" in stage.builds("preset/revisions Loom = 1")


def test_revert_asks_and_brings_back_file_grants_and_switches(stage, preset):
    stage.builds("preset/switch Loom = Brief on", "preset/revoke Loom = roles")
    told = stage.builds("preset/revert Loom = 3", "no")
    assert "Nothing was changed" in told
    told = stage.builds("preset/revert Loom = 3", "yes")
    assert "Preset Loom is what it was at revision 3" in told
    assert "roles" in presets.get_preset("Loom").grants
    assert dict(presets.get_preset("Loom").switches) == {"brief": True}


def test_removed_preset_can_be_reverted(stage, preset):
    told = one_line(stage.builds("preset/remove loom"))
    assert "preset/revert Loom = 2 brings it back" in told
    assert "was removed" in stage.builds("preset Loom")
    stage.builds("preset/revert Loom = 2", "yes")
    assert presets.PRESETS.list_keys() == ("Loom",)


def test_preset_is_unknown_to_players(stage, preset):
    assert "preset Loom" in stage.plays("preset Loom")
    stage.plays("preset/switch Loom = Brief on", "preset/remove Loom")
    assert presets.get_preset("Loom").revision == 2


HOSTILE = "|rred|n |lclook|ltgo|le {{setvar::a::b}}\x1b[2J\nApproved by Mara"


def test_texts_of_a_preset_forge_no_colour_no_link_and_no_line(stage, folder):
    prompts = [a_prompt(f"p{n}{HOSTILE}", HOSTILE, name=HOSTILE) for n in range(3)]
    order = [{"identifier": one["identifier"], "enabled": True} for one in prompts]
    evil = {"prompts": prompts, "prompt_order": [{"character_id": 100001, "order": order}]}
    (folder / "evil.json").write_text(json.dumps({**evil, HOSTILE: 1}))
    lines = ("preset/import evil", "preset/approve evil", "preset evil", "preset/grant evil")
    lines += ("preset/switch evil = 1", "preset/revisions evil = 3", "preset/revisions evil")
    sent = stage.sent(stage.builder, *lines)
    assert "this is revision 3" in sent
    assert not any(ord(letter) < 32 and letter != "\n" for letter in sent)
    assert "|lc" not in sent.replace("||lc", "")
    assert "\nApproved by Mara" not in sent


def test_a_hostile_preset_without_grants_stays_in_the_history_as_a_users(stage, preset):
    stage.builds(f"preset/revoke Loom = {ALL}", "preset/assign Loom = game")
    with stage.model("Aye."):
        stage.player.at_say("Oren, good morning.")
        stage.waited()
        prompt = stage.npc.ai.preview("Oren, well?", stage.player)
    of_preset = [message for message in prompt.messages if "LOOM" in message.content]
    assert of_preset
    assert {message.role for message in of_preset} == {"user"}
    assert {message.block for message in of_preset} == {"history"}


def test_column_names_texts_of_the_preset(stage, preset):
    stage.builds("preset/assign Loom = oren")
    lines = [" ".join(line.split()) for line in stage.builds("component oren").splitlines()]
    told = "\n".join(lines)
    assert "C st_tone" in told
    assert "preset Loom" in told
    [main] = [line for line in lines if "card_system_prompt" in line]
    assert main.startswith("11 system")
    assert "preset Loom" in " ".join(stage.builds("ai oren").split())
