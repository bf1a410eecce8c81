"""Test that the conformance kit runs alone, survives broken adapters and says what it found."""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest

from conformance.run import CASES, LEVELS, load_cases
from tests.absent import need
from tests.conformance.scores import RESULTS, render_scores
from tests.docs.fences import PAGES, blocks_of

KIT = CASES.parent
PAGE = PAGES / "extend" / "conformance-kit.md"
GUIDE = PAGES / "extend" / "write-an-adapter.md"
MEMBERS = {"id", "level", "task", "features", "about", "authority", "since", "until"}
OPTIONAL = {"strength", "checks"}
AUTHORITIES = {"card v3", "sillytavern 1.19.0", "sillytavern 1.12.6", "both", "undefined"}
ANSWERING = """
import json, sys, time

def first():
    try:
        open("broken", "x").close()
    except FileExistsError:
        return False
    return True

for line in sys.stdin:
    question = json.loads(line)
    if question["task"] == "hello":
        answer = {"name": "kept", "version": "1", "tasks": ["card"]}
    else:
        FAULT
        given = question["input"]
        if "base64" in given:
            answer = {"unsupported": "no bytes"}
        else:
            answer = {"output": {"written": given.get("card")}}
    print(json.dumps({"id": question["id"], **answer}), flush=True)
"""
# What the adapter does once, with what the runner says about it and its exit code.
FAULTS = {
    "sys.exit('out of memory') if first() else None": ("ended with code 1: out of memory", 1),
    "time.sleep(60) if first() else None": ("no answer in 2 seconds", 1),
    "question['id'] = 'x' if first() else question['id']": ("no answer in 2 seconds", 1),
    "print('hello?') if first() else None": ("no answers; the first: 'hello?'", 0),
}


@pytest.fixture
def kit(tmp_path: Path) -> Path:
    """Return a copy of the kit's folder that is all there is."""
    return shutil.copytree(KIT, tmp_path / "kit", ignore=shutil.ignore_patterns("__pycache__"))


def run_alone(kit: Path, code: str, *options: str) -> tuple[int, str, dict]:
    """Run the kit in an empty environment. Return the exit code, the output and the report."""
    adapter = kit.parent / "adapter.py"
    adapter.write_text(code, "utf-8")
    command = (sys.executable, "-I", "-S", "run.py", "--adapter", f"{sys.executable} {adapter}")
    done = subprocess.run(
        [*command, "--json", "report.json", *options],
        cwd=kit,
        env={},
        capture_output=True,
        text=True,
        check=False,
    )
    path = kit / "report.json"
    report = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return done.returncode, done.stdout + done.stderr, report


def test_kit_runs_from_a_copy_of_its_folder_in_an_empty_environment(kit: Path) -> None:
    code, output, report = run_alone(
        kit, ANSWERING.replace("FAULT", "pass"), "--badge", "badge.svg", "--level", "0"
    )
    assert code == 0, output
    assert report["levels"]["0"]["agree"] > 200
    assert "0 read and write" in output
    assert report["cases"]["card/v1/required-spec"]["status"] == "differ"
    assert report["cases"]["card/png/ccv3"]["status"] == "unsupported"
    badge = ElementTree.fromstring((kit / "badge.svg").read_text("utf-8"))
    assert badge.attrib["aria-label"].startswith("roleplay prompts: 0 ")


def test_runner_reports_the_fault_and_asks_the_remaining_questions_when_an_adapter_breaks(
    kit: Path,
) -> None:
    for fault, (said, expected) in FAULTS.items():
        (kit / "broken").unlink(missing_ok=True)
        code, output, report = run_alone(
            kit, ANSWERING.replace("FAULT", fault), "--timeout", "2", "--id", "card/book/*"
        )
        assert said in output, f"{fault}: {output}"
        assert report["levels"]["0"]["agree"] >= 9, fault
        assert report["levels"]["0"].get("broken", 0) == expected, fault
        assert code == expected, fault


def test_runner_names_an_adapter_that_cannot_be_started(kit: Path) -> None:
    code, output, _ = run_alone(kit, "raise SystemExit(3)")
    assert code == 2
    assert "it ended with code 3" in output


def test_adapter_that_dies_at_every_case_ends_with_the_limit_of_starts(kit: Path) -> None:
    _, output, report = run_alone(
        kit, ANSWERING.replace("FAULT", "sys.exit()"), "--starts", "3", "--id", "card/book/*"
    )
    assert "was started too often" in str(report["cases"])
    assert set(report["levels"]["0"]) == {"broken"}, output


def test_kit_imports_only_the_standard_library() -> None:
    names = {
        line.split()[1].partition(".")[0]
        for line in (KIT / "run.py").read_text("utf-8").splitlines()
        if line.startswith(("import ", "from "))
    }
    assert names <= sys.stdlib_module_names


def test_cases_have_all_members_and_a_name_of_their_own() -> None:
    defaults = json.loads((CASES / "defaults.json").read_text("utf-8"))
    lines = [
        line for path in CASES.glob("*.jsonl") for line in path.read_text("utf-8").split("\n")[:-1]
    ]
    cases = [json.loads(line) for line in lines]
    assert len(cases) >= 2000
    assert max(Counter(case["id"] for case in cases).values()) == 1
    for case in cases:
        assert case.keys() - OPTIONAL == MEMBERS | {"input", "expected"}, case["id"]
        assert case["level"] in LEVELS, case["id"]
        assert case["authority"] in AUTHORITIES, case["id"]
        assert case["features"], case["id"]
        assert case["about"].endswith("."), case["id"]
        assert case["task"] in {*defaults, "card", "card_prompt"}, case["id"]
    assert {case["level"] for case in cases} == LEVELS.keys()
    assert len(load_cases()) == len(cases)


def test_no_answer_of_a_case_is_empty_by_mistake() -> None:
    """A case without any expectation would agree with every program."""
    assert [case["id"] for case in load_cases() if not case["expected"]] == []


def test_adapters_have_at_most_80_lines() -> None:
    lengths = {
        path.name: sum(bool(line.strip()) for line in path.read_text("utf-8").splitlines())
        for path in (KIT / "adapters").iterdir()
        if path.is_file()
    }
    assert {name: length for name, length in lengths.items() if length > 80} == {}


def test_page_has_the_number_of_cases_of_each_level() -> None:
    counts = Counter(case["level"] for case in load_cases())
    text = PAGE.read_text("utf-8")
    assert f"{counts.total():,} cases" in text
    rows = {line.split("|")[1].strip(): line for line in text.splitlines() if line.startswith("| ")}
    assert {level: rows[level].split("|")[3].strip() for level in counts} == {
        level: str(count) for level, count in counts.items()
    }


def test_page_has_the_scores_of_the_reports() -> None:
    """`python -m tests.conformance` writes the table."""
    assert len(list(RESULTS.glob("*.json"))) >= 4
    assert render_scores() in PAGE.read_text("utf-8")


@pytest.mark.long
def test_adapter_of_the_guide_answers_in_javascript(kit: Path) -> None:
    [block] = [block for block in blocks_of(GUIDE) if block.language == "js"]
    need("playwright", undone="the adapter in JavaScript")
    from playwright._impl._driver import compute_driver_executable

    node = shutil.which("node") or compute_driver_executable()[0]
    (kit / block.name).write_text(block.text, "utf-8")
    done = subprocess.run(
        [sys.executable, "run.py", "--adapter", f"{node} {block.name}", "--level", "0"],
        cwd=kit,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "keeps everything 1.0: card" in done.stdout
