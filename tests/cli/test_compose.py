"""`evennia-ai compose FILE...`: traces, JSON results, explanations and bad input."""

import json
import os
import pty
import subprocess
import sys
from importlib.metadata import version

import pytest

from evennia_ai.formats.scenario import run_scenario
from tests.formats.scenario.builders import a_book, a_card, a_rich_scenario, an_entry, said

SMALL = {
    "components": [{"key": "mood", "content": "In a hurry.", "injection_depth": 1}],
    "history": said(2),
    "event": {"name": "Anna", "content": "Hello \x1b[2J\u202e?"},
}


def test_json_is_the_result_object(call, write) -> None:
    called = call("compose", write("rich.json", a_rich_scenario()), "--json")
    assert (called.status, called.err) == (0, "")
    assert called.json == run_scenario(a_rich_scenario())


def test_a_pipe_gets_the_plain_trace(call, write) -> None:
    called = call("compose", write("a.json", SMALL))
    lines = called.out.splitlines()
    assert called.status == 0
    assert all(len(line) <= 78 for line in lines)
    assert any(line.startswith("   1 |>system") and "component:mood" in line for line in lines)
    assert "Hello \\x1b[2J\\u202e?" in called.out
    assert "\x1b" not in called.out


def test_explain_shows_one_item(call, write) -> None:
    called = call("compose", write("a.json", SMALL), "--explain", "mood")
    assert called.status == 0
    assert called.out.startswith("component:mood\n")
    assert "| In a hurry." in called.out


def test_explain_with_json_adds_the_lines_to_the_result(call, write) -> None:
    called = call("compose", write("a.json", SMALL), "--json", "--explain", "component:mood")
    assert called.json["explained"][0] == "component:mood"


def test_explain_of_an_unknown_item_lists_similar_ones(call, write) -> None:
    called = call("compose", write("a.json", SMALL), "--explain", "moood")
    assert (called.status, called.out) == (2, "")
    assert "nothing here is called moood; similar names: component:mood" in called.err


LORE = {
    "lorebooks": [
        {
            "name": "harbour",
            "book": a_book(an_entry("At dusk.", "ferry", id=7, comment="the ferry")),
        },
        {"name": "moor", "book": a_book(an_entry("Grey.", "wolf", id=1, comment="the wolf"))},
    ],
    "event": {"name": "Anna", "content": "Is there a ferry?"},
}


@pytest.mark.parametrize("item", ["lore:harbour#7", "harbour#7", "the ferry", "harbour#the ferry"])
def test_explain_knows_an_entry_by_label_and_by_name(call, write, item) -> None:
    called = call("compose", write("a.json", LORE), "--explain", item)
    assert called.status == 0
    assert called.out.startswith("lore:harbour#7 (the ferry)\n")
    assert "key 'ferry' in the event" in called.out


def test_explaining_a_name_that_several_entries_have_lists_them(call, write) -> None:
    scenario = json.loads(json.dumps(LORE).replace("the wolf", "The Ferry"))
    called = call("compose", write("a.json", scenario), "--explain", "the ferry")
    assert (called.status, called.out) == (2, "")
    assert "could be lore:harbour#7 (the ferry), lore:moor#1 (The Ferry); name one" in called.err


def test_turns_are_printed_one_after_the_other(call, write) -> None:
    turns = {"turns": [{"history": said(1)}, {"history": said(3)}]}
    called = call("compose", write("t.json", turns))
    assert [line for line in called.out.splitlines() if line.startswith("turn ")] == [
        *("turn 1 of 2", "turn 2 of 2")
    ]
    assert "tokens shared with the prompt before; the previous prompt" in called.out
    assert len(call("compose", "t.json", "--json").json["turns"]) == 2


def test_paths_count_from_the_scenarios_folder(call, write) -> None:
    write("village/cards/tilda.json", a_card(first_mes="Hm."))
    write("village/books/lamps.json", a_book(an_entry("Lamps are lit."), name=""))
    scenario = {"card": "cards/tilda.json", "lorebooks": ["books/lamps.json"]}
    called = call("compose", write("village/night.json", scenario), "--json")
    assert [m["content"] for m in called.json["messages"]] == [
        *("Tilda lights the lamps.", "Lamps are lit.")
    ]
    assert called.json["activated"][0]["book"] == "lamps"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not YAML: "),
        ("- a\n- b\n", "it must be a mapping of card, lorebooks"),
        ("user: Anna\n", "unknown key 'user'"),
        ("settings: {}\nsettings: {}\n", "key 'settings' occurs twice"),
        ("a: &x 1\nb: *x\n", "alias '*x' is not allowed"),
        ("!!python/object/apply:os.system ['true']", "could not determine a constructor"),
        ("history: [{role: user, content: 2020-01-01 00:00:00, mood: yes}]", "'mood'"),
        ("dynamic_context: [.nan]", "a number is not finite"),
        ("[" * 5000, "nested"),
        ("\x00", "is not YAML: "),
        ("card: nowhere.json", "nowhere.json: cannot be read: No such file"),
        ("card: /", "cannot be read: Is a directory"),
        (
            "components: [{content: x, required: true}]\nsettings: {context_tokens: 513}",
            "the required texts need",
        ),
    ],
)
def test_bad_input_is_one_line_and_status_2(call, write, content: str, message: str) -> None:
    called = call("compose", write("bad.yaml", content))
    assert (called.status, called.out) == (2, "")
    assert message in called.err
    assert called.err.startswith("evennia-ai: bad.yaml: ")
    assert_one_line(called.err)


def test_an_empty_file_is_a_valid_scenario(call, write) -> None:
    assert call("compose", write("empty.yaml", ""), "--json").json["messages"] == []


def test_yaml_boolean_words_stay_words(call, write) -> None:
    scenario = "components: [{key: off, content: no, injection_depth: 0}]\nhistory: []"
    assert (
        call("compose", write("a.yaml", scenario), "--json").json["messages"][0]["content"] == "no"
    )


def test_undecodable_bytes_are_refused(call, tmp_path) -> None:
    (tmp_path / "bad.yaml").write_bytes(b"\xff\xfe\x00")
    called = call("compose", "bad.yaml")
    assert called.err == "evennia-ai: bad.yaml: is not UTF-8 text (byte 0)\n"


def test_good_files_are_printed_next_to_bad_ones(call, write) -> None:
    names = [write("a.json", SMALL), write("b.json", {"histori": []}), write("c.json", SMALL)]
    called = call("compose", *names, "--json")
    assert called.status == 2
    assert len([json.loads(line) for line in called.out.splitlines()]) == 2
    assert_one_line(called.err)
    assert "b.json: unknown key 'histori'; did you mean 'history'?" in called.err


def test_a_line_about_bad_input_is_never_long_or_dangerous(call, write) -> None:
    key = "\x1b[31m\n" + "x" * 5000
    called = call("compose", write("a.json", {key: 1}))
    assert called.status == 2
    assert_one_line(called.err)
    assert "\\x1b[31m" in called.err


@pytest.mark.parametrize(
    "arguments",
    [["compose"], ["compose", "--no-such"], ["conjure"], ["compose", "--jsonl", "a.json"]],
)
def test_wrong_usage_is_one_line_and_status_2(call, arguments: list[str]) -> None:
    called = call(*arguments)
    assert (called.status, called.out) == (2, "")
    assert_one_line(called.err)


def test_commands_that_are_not_there_yet_are_not_offered(call) -> None:
    called = call("--help")
    assert called.status == 0
    for command in ("convert", "play"):
        assert f"\n  {command} " not in called.out
        assert call(command).status == 2


def test_version_is_printed(call) -> None:
    assert call("--version").out == f"evennia-ai, version {version('evennia-ai')}\n"


@pytest.mark.long
def test_a_terminal_gets_colours_and_harmless_text(write, tmp_path) -> None:
    write("a.json", SMALL)
    out = printed_on_a_terminal(["compose", "a.json"], cwd=tmp_path)
    assert "█" in out
    assert "\x1b[36m" in out
    assert "\\x1b[2J" in out
    assert "\x1b[2J" not in out
    assert "In a hurry." in out


@pytest.mark.long
def test_closed_pipe_is_no_error(write, tmp_path) -> None:
    write("a.json", {"components": [{"content": "long " * 5000}], "history": said(2000)})
    program = f"{sys.executable} -m evennia_ai.cli compose a.json a.json | head -n 1"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {program}"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "a.json\n", "")


def printed_on_a_terminal(arguments: list[str], *, cwd: os.PathLike[str]) -> str:
    """Return what the program writes to a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    environment.pop("NO_COLOR", None)
    with subprocess.Popen(
        [sys.executable, "-m", "evennia_ai.cli", *arguments],
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
    ) as process:
        os.close(theirs)
        chunks = []
        while chunk := _read(ours):
            chunks.append(chunk)
    os.close(ours)
    assert process.returncode == 0
    return b"".join(chunks).decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    # Linux raises EIO when the other side of the terminal is closed.
    except OSError:
        return b""


def assert_one_line(text: str) -> None:
    assert text.endswith("\n")
    line = text[:-1]
    assert 0 < len(line) <= 600
    assert line.isprintable()
