"""`import-folder` and `export-folder`: round trips, files that are left out, hostile files."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from evennia.utils.create import create_object

from evennia_ai.cli.game.folder import importing
from evennia_ai.cli.game.folder.exporting import write_out
from evennia_ai.cli.game.folder.importing import take_in
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.prompt.components import of_npc
from evennia_ai.engine.prompt.personas import Persona
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.authored import cards, lorebooks, presets
from evennia_ai.store.authored.personas import persona_of, set_persona
from evennia_ai.store.history.conversations import conversations_of
from evennia_ai.store.history.verifying import verify
from evennia_ai.store.history.windows import windows
from evennia_ai.typeclasses import AINPC
from tests.cli.folder.made_folders import a_picture, a_preset, made_folder, values_in
from tests.formats.chats.builders import HEADER, a_file, a_line


@pytest.fixture
def told(stage, capfdbinary):
    """Return a function that imports a folder and returns the report as a JSON object."""

    def told(path: Path, *, is_meant: bool = True) -> dict[str, Any]:
        capfdbinary.readouterr()
        assert take_in(path, path, conf(), is_meant=is_meant, as_json=True) == 0
        return json.loads(capfdbinary.readouterr().out)

    return told


@pytest.fixture
def folder(tmp_path):
    return made_folder(tmp_path / "data")


@pytest.fixture
def mira(stage):
    """Return a second NPC, whose character is in the folder, too."""
    return create_object(AINPC, key="Mira", location=stage.room, home=stage.room)


def why(report, file: str) -> str:
    """Return why a thing of the folder was left out."""
    (one,) = [item for item in report["items"] if item["file"] == file]
    assert one["fate"] == "left out"
    return one["why"]


def test_plan_shows_the_import_and_writes_nothing(stage, folder, told):
    report = told(folder, is_meant=False)

    assert report["written"] is False
    assert report["counts"]["card"] == {"take": 6}
    assert report["counts"]["world"] == {"take": 2}
    assert report["counts"]["persona"] == {"take": 1}
    assert report["counts"]["preset"] == {"take": 2}
    assert (cards.CARDS.names_ever(), lorebooks.LOREBOOKS.list_keys()) == ((), ())
    assert persona_of(str(stage.player.id)) is None
    assert conversations_of(stage.npc.ai.ref) == ()


def test_import_stores_cards_books_chats_and_personas(stage, mira, folder, told):
    report = told(folder)

    assert report["counts"]["card"]["taken"] == 6
    assert cards.CARDS.list_keys() == ()
    assert len(cards.CARDS.waiting_names()) == 6
    assert lorebooks.LOREBOOKS.assigned_to("Lore of Oren") == ()
    assert persona_of(str(stage.player.id)).text == "Pim is tall.\nAnd late."
    chat, group = conversations_of(stage.npc.ai.ref)
    assert [m.content for m in windows(chat.id).history] == [
        "Evening, for the 0th time.",
        "When does she leave?",
        "Soon.",
    ]
    assert [m.role for m in windows(group.id).history] == ["user", "assistant", "user", "user"]
    assert all(verify(one) is None for one in (chat, group))
    assert len(conversations_of(mira.ai.ref)) == 2


def test_left_out_files_have_a_reason(stage, folder, told):
    report = told(folder)

    assert "a file of this kind holds no card" in why(report, "characters/notes.txt")
    assert "never opened" in why(report, "secrets.json")
    assert "a persona here is a text" in why(report, "User Avatars")
    assert "card/assign it, then run this again" in why(report, "chats/Mira/Mira - 0.jsonl")


def test_next_import_adds_chats_of_new_npcs(stage, folder, told):
    told(folder)
    tilda = create_object(AINPC, key="Tilda", location=stage.room, home=stage.room)
    number = cards.CARDS.waiting("Mira")[-1].number
    cards.CARDS.approve("Mira", number, grants=frozenset(), by=trusted("Mara"))
    cards.CARDS.assign("Mira", of_npc(str(tilda.id)), by=trusted("Mara"))
    report = told(folder)

    assert report["counts"]["chat"] == {"there": 1, "taken": 1}
    assert len(conversations_of(tilda.ai.ref)) == 2


def test_second_import_changes_nothing(stage, mira, folder, told):
    told(folder)
    before = (cards.CARDS.waiting("Oren"), conversations_of(stage.npc.ai.ref))
    report = told(folder)

    assert all("taken" not in fates for fates in report["counts"].values())
    assert (cards.CARDS.waiting("Oren"), conversations_of(stage.npc.ai.ref)) == before


def test_rejected_card_is_not_imported_again(stage, folder, told):
    told(folder)
    cards.CARDS.reject("Oren", by=trusted("Mara"))
    told(folder)
    assert "Oren" not in cards.CARDS.waiting_names()


def test_interrupted_import_continues_without_doubling(stage, mira, folder, told, monkeypatch):
    real, done = importing._written, []

    def stopped(one):
        if len(done) == 5:
            raise KeyboardInterrupt
        done.append(one)
        return real(one)

    monkeypatch.setattr(importing, "_written", stopped)
    with pytest.raises(KeyboardInterrupt):
        told(folder)
    monkeypatch.undo()
    report = told(folder)

    fates = [item["fate"] for item in report["items"] if item["fate"] != "left out"]
    assert fates.count("there") == 5
    assert len(cards.CARDS.waiting_names()) == 6


def test_export_after_import_keeps_all_values(stage, mira, folder, told, tmp_path):
    told(folder)
    assert write_out(tmp_path / "out", Path("out"), conf(), as_json=True) == 0

    assert values_in(tmp_path / "out") == values_in(folder)


def test_import_of_an_export_finds_everything_there(stage, mira, folder, told, tmp_path):
    told(folder)
    write_out(tmp_path / "out", Path("out"), conf(), as_json=True)
    report = told(tmp_path / "out")
    write_out(tmp_path / "again", Path("again"), conf(), as_json=True)

    fates = {(item["kind"] == "group", item["fate"]) for item in report["items"]}
    assert fates == {(False, "there"), (True, "left out")}
    assert values_in(tmp_path / "again") == values_in(folder)


def test_report_names_what_a_group_a_chat_and_a_persona_become(stage, mira, folder, told):
    found = {item["file"]: item for item in told(folder, is_meant=False)["items"]}
    group = found["groups/1720170000.json"]
    chat = found["chats/Oren/Oren - 0.jsonl"]
    persona = found["settings.json: Pim (pim.png)"]

    assert "in one room, after card/approve: card/spawn Oren; card/spawn Mira." in group["why"]
    assert group["notices"][0] == "Nobody has no card in the folder"
    assert group["notices"][-1].endswith("They wait for the ferry.")
    assert chat["notices"][0].startswith("line 3: is not valid JSON")
    assert chat["notices"][1].startswith("line 5: is not UTF-8 text")
    assert all("kept for the export" in notice for notice in chat["notices"][:2])
    assert persona["notices"][-1] == (
        "its lorebook is Lore of Oren: lore/assign Lore of Oren = player:Pim assigns it"
    )


def test_changed_persona_is_exported_with_the_rest_of_its_settings(stage, folder, told, tmp_path):
    told(folder)
    mine = Persona(text="Mine.", place="depth", depth=3)
    set_persona(str(stage.player.id), mine, most_characters=100, by=trusted("Anna"))
    write_out(tmp_path / "out", Path("out"), conf(), as_json=True)

    (name, settings) = values_in(tmp_path / "out")["settings.json"]["pim.png"]
    assert (name, settings["description"], settings["position"]) == ("Pim", "Mine.", 4)
    assert (settings["lorebook"], settings["title"]) == ("Lore of Oren", "the traveller")


def test_export_overwrites_no_folder(stage, folder, tmp_path):
    with pytest.raises(FormatError, match="exists already"):
        write_out(folder, folder, conf(), as_json=True)


def test_two_cards_of_one_name_wait_under_two_names(stage, folder, told):
    (folder / "characters" / "Oren1.png").write_bytes(a_picture("Oren", 77))
    told(folder)
    assert {"Oren", "Oren (Oren1)"} <= set(cards.CARDS.waiting_names())
    assert told(folder)["counts"]["card"] == {"there": 7}


def test_presets_wait_without_their_secrets(stage, folder, told):
    path = folder / "OpenAI Settings" / "Mine.json"
    path.write_text(json.dumps(a_preset(reverse_proxy="https://x.example", proxy_password="hush")))
    report = told(folder)

    assert presets.PRESETS.list_keys() == ()
    assert presets.PRESETS.waiting_names() == ("Default", "Mine", "Quiet nights")
    (mine,) = [one for one in report["items"] if one["name"] == "Mine"]
    assert any("secret" in notice for notice in mine["notices"])
    number = presets.PRESETS.waiting("Mine")[-1].number
    assert "hush" not in presets.PRESETS.revision_file("Mine", number).source
    assert told(folder)["counts"]["preset"] == {"there": 3}


def test_export_writes_presets_with_their_switches(stage, folder, told, tmp_path):
    told(folder)
    number = presets.PRESETS.waiting("Default")[-1].number
    stored = presets.PRESETS.approve("Default", number, grants=frozenset(), by=trusted("Mara"))
    presets.switch(stored, {"6f1c": False}, by=trusted("Mara"))
    write_out(tmp_path / "out", Path("out"), conf(), as_json=True)

    went = json.loads((tmp_path / "out" / "OpenAI Settings" / "Default.json").read_text())
    (order,) = went["prompt_order"]
    assert {"identifier": "6f1c", "enabled": False} in order["order"]
    assert went["prompts"] == a_preset()["prompts"]


def test_import_overwrites_no_lorebook_of_the_game(stage, folder, told):
    lorebooks.save_book("lore of oren", '{"entries": []}', by=trusted("Mara"))
    report = told(folder)
    assert "other text is in the game" in why(report, "worlds/Lore of Oren.json")
    assert lorebooks.get_book("lore of oren").source == '{"entries": []}'


def test_import_overwrites_no_persona_of_a_player(stage, folder, told):
    set_persona(
        str(stage.player.id), Persona(text="Mine."), most_characters=100, by=trusted("Anna")
    )
    report = told(folder)
    assert "has another persona already" in why(report, "settings.json: Pim (pim.png)")
    assert persona_of(str(stage.player.id)).text == "Mine."


def test_loose_files_are_cards_and_books_of_any_program(stage, told, tmp_path):
    loose = tmp_path / "loose"
    loose.mkdir()
    agnai = {
        "kind": "memory",
        "name": "Quay",
        "entries": [
            {"name": "tide", "entry": "It ebbs.", "keywords": ["tide"], "priority": 1, "weight": 1}
        ],
    }
    (loose / "quay.json").write_text(json.dumps(agnai))
    (loose / "tam.json").write_text(json.dumps({"name": "Tam", "description": "A fisher."}))
    (loose / "backup.bin").write_bytes(b"\x00")
    (loose / "odd.json").write_text("[]")
    report = told(loose)

    assert lorebooks.LOREBOOKS.list_keys() == ("quay",)
    assert "no card (" in why(report, "odd.json")
    assert "neither a card nor a lorebook" in why(report, "backup.bin")


@pytest.mark.parametrize("inner", ["default-user", "data/default-user"])
def test_main_folder_of_sillytavern_names_its_user_folders(stage, tmp_path, inner, told):
    made_folder(tmp_path / inner, cards=1)
    with pytest.raises(FormatError, match=f"contains folders of users; name one: .*{inner}"):
        told(tmp_path)


def test_hostile_files_are_left_out_one_by_one_and_stop_nothing(stage, folder, told):
    chats = folder / "chats" / "Oren"
    (chats / "deep.jsonl").write_bytes(b'{"mes": ' + b"[" * 10**5)
    (chats / "binary.jsonl").write_bytes(b"\xff\xfe\x00")
    (chats / "empty.jsonl").write_bytes(b"")
    (chats / "swipes.jsonl").write_bytes(b'{"mes":"a","swipes":[' + b"0," * 10**6 + b"0]}")
    (chats / "names.jsonl").write_bytes(
        a_file({**HEADER, "user_name": "|lcai/stopall|lt"}, a_line("Oren", "\x1b[2J|r{{char}}"))
    )
    (folder / "worlds" / "nan.json").write_text('{"entries": NaN}')
    (folder / "characters" / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\x00" * 50)
    (folder / "worlds" / "away.json").symlink_to("/etc/hostname")
    (folder / "worlds" / "keys.json").symlink_to("../secrets.json")
    (chats / "keys.jsonl").symlink_to(folder / "secrets.json")
    (folder / "characters" / "dir.png").mkdir()
    report = told(folder)

    assert "nested more than 64 deep" in why(report, "chats/Oren/deep.jsonl")
    assert "is not UTF-8 text" in why(report, "chats/Oren/binary.jsonl")
    assert "it is empty" in why(report, "chats/Oren/empty.jsonl")
    assert "1000001 swipes and may have 1000" in why(report, "chats/Oren/swipes.jsonl")
    assert "a link" in why(report, "worlds/away.json")
    assert "a link" in why(report, "worlds/keys.json")
    assert "a link" in why(report, "chats/Oren/keys.jsonl")
    assert "is not valid JSON" in why(report, "worlds/nan.json")
    assert why(report, "characters/broken.png")
    assert report["counts"]["chat"]["taken"] == 2
    assert report["counts"]["card"]["taken"] == 6


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("position", 7, "its position 7 is none of SillyTavern's"),
        ("position", "0", "its position '0' is none"),
        ("depth", -1, "its depth -1 is not a number from 0 to"),
        ("depth", 10**9, "its depth 1000000000 is not a number from 0 to"),
        ("description", "", "it has no description"),
        ("description", ["x"], "it has no description"),
        ("description", "x" * 5000, "it has 5000 characters"),
    ],
)
def test_invalid_persona_is_left_out_with_a_reason(stage, folder, told, field, value, problem):
    path = folder / "settings.json"
    settings = json.loads(path.read_text())
    settings["power_user"]["persona_descriptions"]["pim.png"][field] = value
    path.write_text(json.dumps(settings))
    assert problem in why(told(folder), "settings.json: Pim (pim.png)")


def test_persona_of_a_folder_gets_the_greatest_depth_when_it_wants_a_deeper_one(
    stage, folder, told
):
    path = folder / "settings.json"
    settings = json.loads(path.read_text())
    settings["power_user"]["persona_descriptions"]["pim.png"].update(position=4, depth=12)
    path.write_text(json.dumps(settings))
    judged = [one for one in told(folder)["items"] if "(pim.png)" in one["file"]]
    assert "its depth 12 becomes 4, the greatest possible" in judged[0]["notices"]


def test_the_report_for_people_counts_and_names_what_is_left_out(stage, folder, capfdbinary):
    take_in(folder, Path("data"), conf(), is_meant=False, as_json=False)
    out = capfdbinary.readouterr().out.decode()
    assert "card          6 to import\n" in out
    assert "  secrets.json: keys of services; never opened" in out
    assert "The same command with --yes imports" in out


def lines_of_page() -> list[str]:
    """Return the game commands that docs/build/moving-in.md names, without their explanations."""
    page = Path("docs/build/moving-in.md").read_text().split("```")[1]
    lines = [line for line in page.strip().splitlines() if not line.startswith(" ")]
    return [re.split("  +", line)[0] for line in lines]


def test_documented_commands_work_and_a_card_book_is_used_once(stage, folder, told):
    report = told(folder)
    (card,) = [item for item in report["items"] if item["file"] == "characters/Oren.png"]
    assign = "lore/assign Lore of Oren = npc:<its NPC> assigns it"
    assert card["notices"] == [
        f"its lorebook is Lore of Oren too: {assign} instead of the copy in the card"
    ]
    typed = lines_of_page()
    assert typed[-1] == "lore/assign Lore of Oren = npc:oren"
    shown = [stage.builds(line) for line in typed[:-1]]
    assert "is approved" in shown[2]
    assert "(card)" not in stage.builds("lore/test oren = Is Oren here?")
    stage.builds(typed[-1])

    awake = stage.builds("lore/test oren = Is Oren here?")
    assert awake.count("Lore of Oren#0") == 1
    (book,) = stage.npc.ai.view().books
    assert (book.label, book.attach) == ("Lore of Oren", "npc")
    assert "the card has a copy of this lorebook" in book.told
