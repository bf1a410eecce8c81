"""Tests that a regular expression finds the same on any machine and with any cache.

A limit in milliseconds would not do: a search that takes about that long would sometimes end in
time, and sometimes not.
"""

import hashlib
import json
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from time import sleep
from typing import Any

import pytest

from evennia_ai.engine.lorebook.rules import read_rules
from evennia_ai.engine.lorebook.scan.regex.pattern import (
    STEP_LIMITS,
    TEXT_STEPS,
    TURN_STEPS,
    Pattern,
    StepsExceededError,
    read_pattern,
)
from evennia_ai.engine.lorebook.scan.window import Scan
from evennia_ai.engine.prompt.components import ALL_GRANTS
from evennia_ai.formats.scenario import run_scenario
from tests.engine.lorebook.builders import (
    a_book,
    a_history,
    an_entry,
    an_event,
    awake,
    reasons,
    texts,
)

# Each row has a key, a text to repeat, and a text that matches at the end. With each repetition,
# the search takes about twice as many steps.
GROWING = (
    ("(?:a|b|ab)+[0-9]", "ab", " ab7"),
    ("(?:x+x+)+[yz]", "x", " xxz"),
    (r"(?:\w+\s?)*[!?]", "word ", " no!"),
    ("(?:a|aa)+[$]", "a", " a$"),
    (r"(?:\w|\w\w)+[,;]", "q", " qq;"),
    ("(?:.*.*)*[=]", "z", "\nzz="),
    (r"(?:(a|b)\1?)+[0-9]", "aab", " ab7"),
    ("(?:(?=a*)a|aa)+[0-9]", "a", " a7"),
    (r"(?<![0-9])(?:\d\d?,?)+[x-z]", "12", " 1,z"),
    (r"(?:\p{L}+ ?)+[0-9]", "né ", " né7"),
)
PATTERNS_A_BOOK = 20
BOOKS = 20


def scenarios() -> Iterator[dict[str, Any]]:
    """Yield scenarios with 400 regular expressions, most of them near their limit of steps."""
    numbers = random.Random(35)
    for number in range(BOOKS):
        entries, lines = [], []
        for at in range(PATTERNS_A_BOOK):
            key, text, end = GROWING[(number + at) % len(GROWING)]
            # A group around the key makes a different pattern that takes about as many steps. Each
            # key ends with a text that only one message has, so that the key is searched in that
            # message.
            opening, closing = "(?:" * (at % 7), ")" * (at % 7)
            pattern = f"{opening}{key}{closing}@{at}@"
            if number % 2:
                pattern = f"/{pattern}/{'u' if 'p{' in key else ''}"
            entries.append(an_entry(f"Lore {at}.", keys=[pattern], use_regex=True))
            lines.append(f"{text * numbers.randint(3, 14)}{end}@{at}@")
        yield {
            "settings": {"lore": {"rules": ("evennia_ai", "sillytavern")[number % 2]}},
            "lorebooks": [{"book": {"name": "near", "entries": entries, "scan_depth": 20}}],
            "history": [{"role": "user", "content": line} for line in lines],
        }


def prompts(*, backwards: bool = False) -> dict[int, str]:
    """Return a digest of the prompt and the trace of each scenario, by number of the scenario."""
    numbered = list(enumerate(scenarios()))
    return {
        number: hashlib.sha256(json.dumps(run_scenario(one)).encode()).hexdigest()
        for number, one in (reversed(numbered) if backwards else numbered)
    }


def said_while_interrupted(process: subprocess.Popen[str]) -> str:
    """Stop and continue a process again and again, as on a busy machine; return its output."""
    while process.poll() is None:
        for number in (signal.SIGSTOP, signal.SIGCONT):
            process.send_signal(number)
            sleep(0.02)
    said, _ = process.communicate()
    assert process.returncode == 0
    return said


IN_A_FRESH_PROCESS = """
import json
from tests.engine.lorebook.scan.regex.test_counted_steps import prompts
print(json.dumps(prompts(backwards=True)))
"""


@pytest.mark.long
def test_regex_keys_give_equal_prompts_on_an_idle_and_a_busy_machine():
    idle = prompts()
    command = [sys.executable, "-c", IN_A_FRESH_PROCESS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as fresh:
        said = said_while_interrupted(fresh)
    assert {int(number): digest for number, digest in json.loads(said).items()} == idle


@pytest.mark.long
def test_tested_regex_keys_are_on_both_sides_of_the_step_limit():
    """If all keys were fast, the test on a busy machine would prove nothing."""
    outcomes = {"found": 0, "given up": 0, "with the last two limits": 0}
    for one in scenarios():
        entries = one["lorebooks"][0]["book"]["entries"]
        for entry, line in zip(entries, one["history"], strict=True):
            pattern = read_pattern(entry["keys"][0])
            assert isinstance(pattern, Pattern)
            steps = steps_needed(pattern, line["content"])
            outcomes["given up" if steps is None else "found"] += 1
            outcomes["with the last two limits"] += steps in STEP_LIMITS[-2:]
    assert min(outcomes.values()) > 20, outcomes


def steps_needed(pattern: Pattern, text: str) -> int | None:
    """Return the smallest limit of steps with which a search ends; None if it never ends."""
    for limit in STEP_LIMITS:
        try:
            pattern.search(text, steps=limit)
        except StepsExceededError:
            continue
        return limit
    return None


@pytest.mark.parametrize("use_regex", [True, False])
def test_regex_key_near_the_step_limit_is_found_in_each_of_many_runs(use_regex):
    key = "(?:a|b|ab)+[0-9]"
    entry = an_entry("Found.", keys=[key if use_regex else f"/{key}/"], use_regex=use_regex)
    scenario = {
        "settings": {"lore": {"rules": "evennia_ai" if use_regex else "sillytavern"}},
        "lorebooks": [{"book": {"name": "report", "entries": [entry]}}],
        "history": [{"role": "user", "content": "ab" * 12 + " ab7"}],
    }
    results = {json.dumps(run_scenario(scenario)) for _ in range(20)}
    assert len(results) == 1
    assert "Found." in results.pop()


# Each search takes all steps of one text. So a few messages use up the steps of a turn.
COSTLY = [f"(?:{'x+' * number}x+)+[yz]" for number in range(1, 9)]
LINES = ["user: " + "x" * (40 + number) for number in range(12)]


@pytest.mark.long
@pytest.mark.req("S3-11")
@pytest.mark.parametrize("preset", ["evennia_ai", "sillytavern"])
@pytest.mark.parametrize("event", [None, "Eve: " + "x" * 60])
def test_cached_regex_results_equal_those_of_a_fresh_process(preset, event):
    """In each turn, other messages are searched before the steps of the turn are used up."""
    rules = read_rules({"rules": preset, "scan_depth": 9, "recursive": True})

    def a_costly_book():
        entries = [
            an_entry(
                f"xxx {n}", keys=[key if preset == "evennia_ai" else f"/{key}/"], use_regex=True
            )
            for n, key in enumerate([*COSTLY, "x!"])
        ]
        entries.append(an_entry("x" * 50 + " tide", keys=["tide"]))
        return a_book(*entries, grants=ALL_GRANTS)

    def outcome(book, history):
        scan = Scan(history=history, event=an_event(event), texts=("x" * 70,))
        result = awake(book, scan=scan, rules=rules)
        return texts(result), reasons(result)

    lines = [*LINES[:3], "user: x! and the tide", *LINES[3:]]
    kept_book, history = a_costly_book(), a_history(*lines[:1])
    given_up = 0
    for number in range(1, len(lines)):
        kept = outcome(kept_book, history)
        fresh = outcome(a_costly_book(), a_history(*lines[:number]))
        assert kept == fresh
        given_up += "used up the steps" in str(kept)
        history = history.appended(a_history(lines[number])[0])
    assert given_up, "the steps of a turn were never used up"


@pytest.mark.req("S3-11")
@pytest.mark.parametrize("preset", ["evennia_ai", "sillytavern"])
@pytest.mark.parametrize("books", [1, 3])
def test_regex_searches_of_a_turn_never_exceed_its_steps(preset, books, monkeypatch):
    """The last text of each kind may exceed the limit of the turn."""
    allowed = []
    search = Pattern.search

    def counted(pattern, text, *, steps):
        allowed.append(steps)
        return search(pattern, text, steps=steps)

    monkeypatch.setattr(Pattern, "search", counted)
    entries = [
        an_entry(keys=[key if preset == "evennia_ai" else f"/{key}/"], use_regex=True)
        for key in COSTLY
    ]
    several = [a_book(*entries, grants=ALL_GRANTS, label=f"book {n}") for n in range(books)]
    scan = Scan(history=a_history(*LINES * 20), event=an_event("x" * 60), texts=("x" * 70,) * 30)
    awake(*several, scan=scan, rules=read_rules({"rules": preset, "scan_depth": 240}))
    kinds = 2
    assert TURN_STEPS <= sum(allowed) <= kinds * (TURN_STEPS + books * TEXT_STEPS)
