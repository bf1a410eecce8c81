"""`evennia-ai card` and `evennia-ai lore`."""

import json

import pytest

from tests.cli.test_compose import assert_one_line
from tests.formats.scenario.builders import a_book, a_card, an_entry


def test_a_card_is_shown_as_json(call, write) -> None:
    card = a_card(
        an_entry("Oil is dear.", "oil"),
        nickname="Tilly",
        creator_notes="Notes.",
        creator_notes_multilingual={"de": "Anmerkungen."},
    )
    shown = call("card", "show", write("tilda.json", card), "--json").json
    assert shown["name"] == "Tilda"
    assert shown["greetings"] == ["Mind the ladder, {{user}}.", "The third lamp is out."]
    assert shown["creator_notes"] == "Notes."
    assert shown["assets"] == [
        {"type": "icon", "uri": "ccdefault:", "name": "main", "ext": "png", "resolved": False}
    ]
    assert shown["notices"] == []
    assert shown["lorebook_entries"] == 1


def test_language_and_group_are_options(call, write) -> None:
    card = a_card(creator_notes="Notes.", creator_notes_multilingual={"de": "Anmerkungen."})
    name = write("tilda.json", card)
    shown = call("card", "show", name, "--json", "--language", "de", "--group").json
    assert shown["creator_notes"] == "Anmerkungen."
    assert shown["greetings"][-1] == "Good evening, all."


def test_a_card_is_shown_as_text_without_control_characters(call, write) -> None:
    called = call("card", "show", write("tilda.json", a_card(description="a\x1b[2Jb\nc")))
    assert called.status == 0
    assert "description:\n    a\\x1b[2Jb\n    c\n" in called.out


def test_a_good_card_passes_the_lint(call, write) -> None:
    called = call("card", "lint", write("tilda.json", a_card(an_entry("Lit."))))
    assert (called.status, called.out, called.err) == (0, "", "")


def test_card_lint_lists_problems(call, write) -> None:
    card = a_card(an_entry("@@depth many\nLit."))
    card["spec_version"] = "4.0"
    called = call("card", "lint", write("tilda.json", card))
    assert (called.status, called.err) == (0, "")
    assert called.out.splitlines() == [
        "tilda.json: spec_version 4.0 is newer than 3.0: unknown parts are only kept",
        "tilda.json: lorebook: entry 0: @@depth needs a whole number; it is ignored",
    ]


def test_unknown_and_ignored_fields_are_notices(call, write) -> None:
    entry = an_entry("Since {{summary}}.", extensions={"vectorized": True})
    card = a_card(entry)
    card["data"]["scenario"] = "It is {{lastMessageId}}, {{user}}."
    called = call("card", "lint", write("tilda.json", card))
    assert called.out.splitlines() == [
        (
            "tilda.json: lorebook: vectorized of 1 entry has no effect and is kept for the export:"
            " entries are activated by their keys, not by their meaning"
        ),
        "tilda.json: lorebook: entry 0: {{summary}} is an unknown macro and is sent as written",
        "tilda.json: scenario: {{lastMessageId}} is an unknown macro and is sent as written",
    ]
    called = call("lore", "lint", write("lamps.json", a_book(entry)))
    assert [line.split(" ")[1:3] for line in called.out.splitlines()] == [
        ["vectorized", "of"],
        ["entry", "0:"],
    ]


def test_a_lorebook_is_shown(call, write) -> None:
    entries = [
        an_entry("@@depth 2\nOil is dear.", "oil", "lamp", id=7, comment="oil"),
        an_entry("Lit.", enabled=False),
    ]
    name = write("lamps.json", a_book(*entries))
    shown = call("lore", "show", name, "--json").json
    assert shown["name"] == "lamps"
    assert [entry["uid"] for entry in shown["entries"]] == ["7", "1"]
    assert shown["entries"][0]["keys"] == ["oil", "lamp"]
    assert shown["entries"][0]["depth"] == 2
    assert shown["entries"][0]["decorators"] == [["depth", ["2"]]]
    lines = call("lore", "show", name).out.splitlines()
    assert lines[0] == "lamps: 2 entries"
    assert lines[1] == "#7 oil: depth 2, system, oil, lamp"
    assert lines[2] == "    Oil is dear."
    assert "(disabled)" in lines[3]


@pytest.mark.req("S3-34")
def test_a_place_at_a_mention_is_shown(call, write) -> None:
    own = {"place": "at_mention", "mention": {"message": "oldest"}}
    name = write("lamps.json", a_book(an_entry("Lit.", "oil", extensions={"evennia_ai": own})))
    [entry] = call("lore", "show", name, "--json").json["entries"]
    assert entry["position"] == "at_mention"
    assert entry["mention"] == {"side": "before", "message": "oldest"}
    line = call("lore", "show", name).out.splitlines()[1]
    assert line == "#0: right before the oldest message with its key, system, oil"


def test_lorebook_lint_names_entries_that_are_never_active(call, write) -> None:
    entries = [
        an_entry("Lit."),
        an_entry("No keys.", constant=False),
        an_entry("", "oil"),
        an_entry("Off.", constant=False, enabled=False),
        an_entry("Pattern.", "lamp.*", use_regex=True),
        an_entry("Broken.", "(lamp", use_regex=True),
    ]
    called = call("lore", "lint", write("lamps.json", a_book(*entries)))
    assert called.status == 1
    assert [line.split(":")[:2] for line in called.out.splitlines()] == [
        ["lamps.json", " entry 1"],
        ["lamps.json", " entry 2"],
        ["lamps.json", " entry 5"],
        ["lamps.json", " entry 5"],
    ]
    assert "has no keys and is not constant, so nothing activates it" in called.out
    assert call("lore", "lint", write("good.json", a_book(an_entry("Lit.")))).status == 0


@pytest.mark.parametrize("group", ["card", "lore"])
@pytest.mark.parametrize("command", ["show", "lint"])
@pytest.mark.parametrize("content", ["", "{", "null", "[]", '{"a": NaN}', "[" * 9999, '"\\ud800"'])
def test_a_bad_file_is_one_line_and_status_2(call, write, group, command, content) -> None:
    called = call(group, command, write("bad.json", content))
    assert (called.status, called.out) == (2, "")
    assert_one_line(called.err)
    assert "bad.json" in called.err


@pytest.mark.parametrize("group", ["card", "lore"])
def test_group_without_command_prints_its_help(call, group) -> None:
    called = call(group)
    assert (called.status, called.err) == (0, "")
    assert "lint" in called.out


def test_a_member_that_is_there_twice_in_a_book_is_a_finding(call, write) -> None:
    name = write("twice.json", '{"name": "a", "name": "b", "entries": []}')
    finding = "member 'name' occurs twice; the last one counts"
    linted = call("lore", "lint", name)
    assert (linted.status, linted.out) == (1, f"twice.json: {finding}\n")
    scenario = write("s.json", {"lorebooks": [name]})
    notices = call("compose", scenario, "--json").json["notices"]
    assert [notice.endswith(f"twice.json: {finding}") for notice in notices] == [True]


def test_card_lint_names_entries_that_are_never_active(call, write) -> None:
    card = a_card(an_entry("Oil is dear.", id=4, constant=False))
    linted = call("card", "lint", write("tilda.json", card))
    assert linted.status == 1
    assert linted.out.startswith("tilda.json: lorebook: entry 4: has no keys and is not constant")
    assert call("card", "show", "tilda.json", "--json").json["notices"] == []


def test_the_lint_of_a_lorebook_as_json_has_an_object_a_finding(call, write) -> None:
    name = write("lamps.json", a_book(an_entry("No keys.", constant=False, id=7)))
    linted = call("lore", "lint", name, "--json")
    assert linted.status == 1
    (finding,) = linted.json["findings"]
    assert (finding["uid"], finding["kind"]) == ("7", "unreachable")
    assert finding["text"].startswith("has no keys")
    good = call("lore", "lint", write("good.json", a_book(an_entry("Lit."))), "--json")
    assert (good.status, good.json) == (0, {"findings": []})


def test_a_lorebook_is_converted_there_and_back_without_loss(call, write, tmp_path) -> None:
    book = a_book(an_entry("@@depth 2\nOil is dear.", "oil", id=7, odd={"kept": [1, None]}))
    name = write("lamps.json", book)
    called = call("lore", "convert", name, "world.json", "--to", "world")
    assert (called.status, called.out) == (0, "world.json: 1 entry as world\n")
    assert "key" in next(
        iter(json.loads((tmp_path / "world.json").read_text())["entries"].values())
    )
    assert call("lore", "convert", "world.json", "back.json", "--to", "v3").status == 0
    assert json.loads((tmp_path / "back.json").read_text()) == book


def test_a_converted_file_is_strict_json_in_utf_8(call, write, tmp_path) -> None:
    name = write("lamps.json", a_book(an_entry("Öl \u2028 \x7f", "oil")))
    call("lore", "convert", name, "out.json", "--to", "v3")
    content = (tmp_path / "out.json").read_bytes()
    assert "Öl \\u2028 \\u007f".encode() in content
    assert json.loads(content) == json.loads((tmp_path / name).read_bytes())


def test_existing_file_is_overwritten_only_with_force(call, write, tmp_path) -> None:
    name = write("lamps.json", a_book(an_entry("Lit.")))
    write("there.json", "mine")
    called = call("lore", "convert", name, "there.json", "--to", "v3")
    assert (called.status, called.out) == (2, "")
    assert_one_line(called.err)
    assert (tmp_path / "there.json").read_text() == "mine"
    assert call("lore", "convert", name, "there.json", "--to", "v3", "--force").status == 0
    assert json.loads((tmp_path / "there.json").read_text())["entries"]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"entries": 1}'])
def test_a_bad_book_is_not_converted(call, write, tmp_path, content) -> None:
    called = call("lore", "convert", write("bad.json", content), "out.json", "--to", "world")
    assert (called.status, called.out) == (2, "")
    assert_one_line(called.err)
    assert "bad.json" in called.err
    assert not (tmp_path / "out.json").exists()


@pytest.mark.parametrize("out", ["gone/out.json", "."])
def test_unwritable_target_is_one_line_and_status_2(call, write, out) -> None:
    called = call("lore", "convert", write("lamps.json", a_book()), out, "--to", "v3", "--force")
    assert (called.status, called.out) == (2, "")
    assert_one_line(called.err)


SCRIPTED = [
    ("<%_ if (getvar('bees') > 3) { _%>Bees.<%_ } _%>", "ST-Prompt-Template"),
    ("@@render_after\n<div>A panel.</div>", "ST-Prompt-Template"),
    ("Now: {{format_message_variable::stat_data}}", "MVU (MagVarUpdate)"),
    ("<UpdateVariable>_.set('a', 1)</UpdateVariable>", "MVU (MagVarUpdate)"),
]


@pytest.mark.parametrize(("content", "extension"), SCRIPTED)
def test_a_card_for_an_extension_gets_one_line_that_names_it(call, write, content, extension):
    card = a_card(an_entry(content), an_entry(content, "oil"), description="Fine.")
    for command in ("lint", "import"):
        out = call("card", command, write("tilda.json", card)).out
        told = " ".join(out.split())
        assert told.count(f"written for the extension {extension} (2 texts)") == 1
    linted = call("lore", "lint", write("lamps.json", a_book(an_entry(content))))
    assert f"written for the extension {extension} (1 text)" in linted.out


def test_scripts_of_tavernhelper_are_named(call, write):
    card = a_card(extensions={"tavern_helper": {"scripts": []}})
    linted = call("card", "lint", write("tilda.json", card))
    assert (linted.status, linted.out) == (
        0,
        "tilda.json: written for the extension TavernHelper: without it, its scripts do not run\n",
    )


@pytest.mark.parametrize(
    ("fields", "is_error"),
    [
        ({"keys": [], "constant": False}, True),
        ({"keys": ["(a"], "use_regex": True}, True),
        ({"content": 5}, True),
        ({"comment": []}, True),
        ({"content": "{{frobnicate}}"}, False),
        ({"insertion_order": "5"}, False),
    ],
)
def test_lint_fails_only_for_errors(call, write, fields, is_error):
    linted = call("lore", "lint", write("lamps.json", a_book({**an_entry("Lit."), **fields})))
    assert (linted.status, linted.out == "") == (int(is_error), False)


def test_lint_reports_nothing_about_fields_that_sillytavern_writes_into_every_entry(call, write):
    app = {"position": 0, "probability": 100, "useProbability": True, "selectiveLogic": 0}
    entry = an_entry("Lit.", use_regex=True, position="before_char", extensions=app)
    card = a_card(entry, tags=None, assets=None)
    linted = call("card", "lint", write("tilda.json", card))
    assert (linted.status, linted.out) == (0, "")
