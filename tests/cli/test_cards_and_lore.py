"""`evennia-ai card` and `evennia-ai lore`."""

import pytest

from tests.cli.test_compose import assert_one_line
from tests.scenario.builders import a_book, a_card, an_entry


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


def test_the_lint_of_a_card_tells_what_is_doubtful(call, write) -> None:
    card = a_card(an_entry("@@depth many\nLit."))
    card["spec_version"] = "4.0"
    called = call("card", "lint", write("tilda.json", card))
    assert (called.status, called.err) == (1, "")
    assert called.out.splitlines() == [
        "tilda.json: spec_version 4.0 is newer than 3.0: read as far as known",
        "tilda.json: lorebook: entry 0: @@depth wants a whole number; it is ignored",
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


def test_the_lint_of_a_lorebook_names_entries_that_never_wake(call, write) -> None:
    entries = [
        an_entry("Lit."),
        an_entry("No keys.", constant=False),
        an_entry("", "oil"),
        an_entry("Off.", constant=False, enabled=False),
        an_entry("Pattern.", "lamp.*", use_regex=True),
    ]
    called = call("lore", "lint", write("lamps.json", a_book(*entries)))
    assert called.status == 1
    assert called.out.splitlines()[:2] == [
        "lamps.json: entry 1: has no keys and is never active",
        "lamps.json: entry 2: has no content and is never active",
    ]
    assert called.out.splitlines()[2].startswith("lamps.json: entry 4: needs ")
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
def test_a_group_alone_prints_its_help(call, group) -> None:
    called = call(group)
    assert (called.status, called.err) == (0, "")
    assert "lint" in called.out


def test_a_card_in_a_picture_is_refused_by_name(call, tmp_path) -> None:
    (tmp_path / "tilda.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\x00" * 64)
    called = call("card", "show", "tilda.png")
    assert called.status == 2
    assert "a card in a PNG picture is not supported yet" in called.err


def test_a_member_that_is_there_twice_in_a_book_is_a_finding(call, write) -> None:
    name = write("twice.json", '{"name": "a", "name": "b", "entries": []}')
    finding = "member 'name' is there twice; the last counts"
    linted = call("lore", "lint", name)
    assert (linted.status, linted.out) == (1, f"twice.json: {finding}\n")
    scenario = write("s.json", {"lorebooks": [name]})
    notices = call("compose", scenario, "--json").json["notices"]
    assert [notice.endswith(f"twice.json: {finding}") for notice in notices] == [True]


def test_the_lint_of_a_card_names_entries_that_never_wake(call, write) -> None:
    card = a_card(an_entry("Oil is dear.", "/oil/", use_regex=True, id=4))
    linted = call("card", "lint", write("tilda.json", card))
    assert linted.status == 1
    assert linted.out == (
        "tilda.json: lorebook: entry 4: needs regex keys, which this version does not have\n"
    )
    assert call("card", "show", "tilda.json", "--json").json["notices"] == []
