"""`evennia-ai preset` with files: show, lint, convert, import reports."""

import json

import pytest

from tests.cli.test_compose import assert_one_line
from tests.formats.presets.builders import a_file, a_prompt


def a_written(write, **fields) -> str:
    file = a_file(
        a_prompt("main", "Write {{summary}}."),
        a_prompt("id-1", "Be brief.", name="Brevity"),
        before=("main", "id-1"),
        **fields,
    )
    return write("Dusk.json", file)


def test_a_preset_is_shown_as_the_list_of_its_switches(call, write) -> None:
    called = call("preset", "show", a_written(write, off=("id-1",)))
    assert called.status == 0
    assert called.out.splitlines() == [
        "Dusk: 4 prompts in its order, 3 switched on",
        "   1 [x] main (system, 4 tokens)",
        "   2 [ ] Brevity (system, 3 tokens)",
        "   3 [x] Chat History (the conversation)",
        "   4 [x] Post-History Instructions (system, 0 tokens)",
    ]


def test_a_preset_is_shown_as_json(call, write) -> None:
    shown = call("preset", "show", a_written(write, proxy_password="hunter2"), "--json").json
    assert (shown["name"], shown["order"]) == (
        "Dusk",
        ["main", "id-1", "chatHistory", "jailbreak"],
    )
    prompt = next(one for one in shown["prompts"] if one["identifier"] == "id-1")
    assert (prompt["name"], prompt["content"], prompt["enabled"]) == ("Brevity", "Be brief.", True)
    assert shown["secrets"] == ["proxy_password"]
    assert "hunter2" not in json.dumps(shown)


def test_the_text_of_one_prompt_is_shown(call, write) -> None:
    called = call("preset", "show", a_written(write), "--prompt", "brevity")
    assert (called.status, called.out) == (0, "Be brief.\n")
    called = call("preset", "show", a_written(write), "--prompt", "brevety")
    assert called.status == 2
    assert_one_line(called.err)
    assert "did you mean Brevity?" in called.err


def test_lint_lists_problems_and_fails_only_for_errors(call, write) -> None:
    broken = call("preset", "lint", write("Broken.json", {**a_file(), "prompts": [7]}))
    assert broken.status == 1
    assert "is not an object and is left out" in broken.out
    secret = call("preset", "lint", write("Secret.json", {**a_file(), "custom_url": "http://x"}))
    assert (secret.status, secret.out) == (0, "")
    called = call("preset", "lint", a_written(write))
    assert called.status == 0
    assert called.out == (
        "Dusk.json: prompt 'main': {{summary}} is an unknown macro and is sent as written\n"
    )


def test_lint_prints_nothing_for_a_good_preset(call, write) -> None:
    called = call("preset", "lint", write("Fine.json", a_file()))
    assert (called.status, called.out, called.err) == (0, "", "")


def test_lint_names_variables_that_are_never_set(call, write) -> None:
    file = a_file(
        a_prompt("main", "{{getvar::tone}} {{getvar::mood}} {{.place}} {{.hour ?? late}}"),
        a_prompt("set", "{{setvar::mood::calm}}{{.place = quay}}"),
        before=("set", "main"),
    )
    called = call("preset", "lint", write("Vars.json", file))
    assert called.out == (
        "Vars.json: prompt 'main': no prompt sets the variable 'tone' that it reads\n"
    )


def test_a_preset_is_converted_with_the_lists_of_order_that_nothing_reads(call, write, tmp_path):
    items = [{"identifier": "jailbreak", "enabled": True}, {"identifier": "main", "enabled": False}]
    own = {"character_id": 100000, "order": items}
    call("preset", "convert", write("Mine.json", {**a_file(), "prompt_order": [own]}), "out.json")
    kept, in_use = json.loads((tmp_path / "out.json").read_text())["prompt_order"]
    assert (kept, in_use["character_id"]) == (own, 100001)


def test_a_preset_is_converted_with_prompts_switched(call, write, tmp_path) -> None:
    source = a_written(write, proxy_password="hunter2", temperature=0.7)
    called = call("preset", "convert", source, "out.json", "--off", "Brevity")
    assert called.status == 0
    assert called.out.splitlines()[-1] == "out.json: 4 prompts in its order, 3 switched on"
    made = json.loads((tmp_path / "out.json").read_text("utf-8"))
    assert made["prompt_order"][0]["order"][1] == {"identifier": "id-1", "enabled": False}
    assert made["temperature"] == 0.7
    assert "proxy_password" not in made


def test_a_preset_is_converted_to_the_export_of_the_prompt_manager_and_back(
    call, write, tmp_path
) -> None:
    call("preset", "convert", a_written(write), "part.json", "--to", "prompts")
    part = json.loads((tmp_path / "part.json").read_text("utf-8"))
    assert (part["version"], part["type"]) == (1, "full")
    assert [one["identifier"] for one in part["data"]["prompts"]] == ["id-1"]
    call("preset", "convert", "part.json", "whole.json")
    whole = call("preset", "show", "whole.json", "--json").json
    assert whole["order"] == ["main", "id-1", "chatHistory", "jailbreak"]


def test_conversion_moves_old_members_to_their_new_places(call, write, tmp_path) -> None:
    old = write("Old.json", {"main_prompt": "M", "names_in_completion": True})
    call("preset", "convert", old, "new.json")
    made = json.loads((tmp_path / "new.json").read_text("utf-8"))
    assert made["names_behavior"] == 1
    assert made.keys().isdisjoint({"main_prompt", "names_in_completion"})
    contents = {one["identifier"]: one["content"] for one in made["prompts"]}
    assert contents["main"] == "M"


def test_existing_file_is_not_overwritten(call, write) -> None:
    source = a_written(write)
    called = call("preset", "convert", source, source)
    assert called.status == 2
    assert "--force overwrites it" in called.err
    assert call("preset", "convert", source, source, "--force").status == 0


def test_an_import_reports_and_stores_nothing(call, write) -> None:
    called = call("preset", "import", a_written(write))
    assert called.status == 0
    assert called.out.startswith("Preset: Dusk\n")
    assert "  {{summary}} in 1 text\n" in called.out
    assert called.out.endswith("the import waits there.\n")


def test_an_import_is_an_object_with_the_grants_named(call, write) -> None:
    report = call("preset", "import", a_written(write), "--grant", "fields", "--json").json
    assert report["grants"] == ["fields"]
    assert report["stored"] is None
    places = {part["identifier"]: part["place"] for part in report["parts"]}
    assert places["id-1"] == "ID 12, role user"


@pytest.mark.parametrize("command", ["show", "lint", "import"])
@pytest.mark.parametrize("content", ["{", "[]", '{"temp": 1}', '{"prompts": 5}'])
def test_bad_input_is_one_line_and_status_2(call, write, command: str, content: str) -> None:
    called = call("preset", command, write("Bad.json", content))
    assert (called.status, called.out) == (2, "")
    assert_one_line(called.err)
    assert "Bad.json" in called.err


def test_preset_lint_reports_the_macro_speaker_before_the_history(call, write) -> None:
    file = a_file(a_prompt("main", "Answer {{speaker}}."))
    assert call("preset", "import", write("Speaker.json", file)).status == 0
    linted = call("preset", "lint", "Speaker.json")
    assert linted.status == 0
    assert "names {{speaker}}" in linted.out
