"""Test that output shown on a page is really printed. `...` on a page matches anything."""

import re
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from evennia.utils import logger

from evennia_ai.cli import run
from evennia_ai.cli.game.kept import check
from evennia_ai.formats.scenario import run_scenario
from evennia_ai.services.llm.chat import ChatReply, Usage
from evennia_ai.services.llm.probes import Answer
from evennia_ai.services.llm.profiles import ModelProfile
from evennia_ai.services.settings.conf import conf
from tests.docs.fences import ROOT, Block, blocks
from tests.npc.watch.test_watchdog import Loop, Watched
from tests.services.llm.test_doctor import CALLED, IN_FORM, Server, found_by


def _trace_of(scenario: str) -> Callable[..., str]:
    """Return what the command line prints for a scenario of the demo."""

    def prints(village: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> str:
        monkeypatch.chdir(ROOT)
        capsys.readouterr()
        assert run(["compose", f"world/demo/scenarios/{scenario}"]) == 0
        return str(capsys.readouterr().out)

    return prints


def _a_talk(village: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> str:
    """Return the conversation of the README, without the typed lines that a client repeats."""
    [block] = [one for one in blocks("output") if one.page == "README.md"]
    typed = [line.removeprefix("> ") for line in block.lines if line.startswith("> ")]
    assert len(typed) == 4
    told = village.types("\n".join(typed))
    return "".join(f"{line}\n" for line in told.splitlines() if not line.startswith("You say"))


def _reasons_of_lore(village: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> str:
    """Return the verdicts of a book in the turn that the page describes.

    The turn before was about the lamp.
    """
    entries = [
        _entry(7, "ferry"),
        _entry(8, "night", secondary_keys=["wreck"], selective=True),
        _entry(9, "fog", extensions={"probability": 40, "useProbability": True}),
        _entry(10, "rain", extensions={"group": "weather", "group_weight": 30}),
        _entry(11, "lamp", extensions={"cooldown": 3}),
        _entry(12, "rain", extensions={"group": "weather", "group_weight": 70}),
    ]
    said = ("Is the lamp lit?", "Rain, night and fog: where is the ferry, and who has the lamp?")
    result = run_scenario(
        {
            "lorebooks": [{"name": "harbour", "book": {"entries": entries}}],
            "turns": [{"event": {"name": "Anna", "content": text}} for text in said],
        }
    )
    verdicts = [one for one in result["turns"][1]["verdicts"] if one["stage"] == "activate"]
    return "".join(f"{one['item']}: {one['reason']}\n" for one in verdicts[:5])


def _entry(uid: int, key: str, **fields: Any) -> dict[str, Any]:
    text = f"About {key}, what everybody here knows of it."
    usual = {"id": uid, "keys": [key], "content": text, "enabled": True, "insertion_order": uid}
    return {**usual, "use_regex": False, "extensions": {}, **fields}


def _request_log(village: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> str:
    """Return both log lines of a call, with the numbers and the time of the page."""
    logged: list[str] = []
    monkeypatch.setattr(logger, "log_msg", logged.append)
    village.install(model=["It leaves at the slack."], EVENNIA_AI_LOG_LLM_REQUESTS=True)
    village.types("say Oren, when does the ferry leave?")
    log = "".join(f"{line}\n" for line in logged if line.startswith("LLM_"))
    log = re.sub(r'("id": ")\w+', r"\g<1>5f0c", log).replace(f'"{village.npc.id}"', '"12"')
    return re.sub(r'("seconds": )[\d.]+', r"\g<1>1.2", log).replace('"turn": 1', '"turn": 3')


def _what_is_slow(village: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> str:
    """Return the report about a slow function of a game, with the time of the page."""
    weather: dict[str, Any] = {"time": time}
    lines = "\n" * 38 + "def blow():\n    time.sleep(0.2)\n"
    exec(compile(lines, "world/weather.py", "exec"), weather)
    loop = Loop()
    watched = Watched(loop)
    try:
        loop.done(weather["blow"])
        return re.sub(r"for \d+ ms", "for 63 ms", watched.waits_until_told())
    finally:
        watched.dog.end()
        loop.stop()


def _a_check(village: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> str:
    """Return the findings about an Ollama server with its default window."""
    rows = {"data": [{"id": "llama3.2:3b"}]}
    loaded = {"models": [{"name": "llama3.2:3b", "context_length": 4096}]}
    reply = ChatReply(
        text="Grey and windy, with rain from the sea before night.",
        model="",
        usage=Usage(input_tokens=30, output_tokens=38),
    )
    server = Server(
        {"/v1/models": Answer(status=200, json=rows), "/api/ps": Answer(status=200, json=loaded)},
        replies=[reply, CALLED, IN_FORM],
        seconds=0.4,
    )
    where = "http://localhost:11434/v1"
    profile = ModelProfile(name="default", base_url=where, model="llama3.2:3b")
    found = found_by(server, profile, has_key=False)
    return "".join(f"{one.line()}\n" for one in found.values())


def _a_check_of_kept_answers(village: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> str:
    """Return the report of a check after the edit that the page describes."""
    village.types("say Oren, why did the night ferry stop running?")
    village.types("ai/keep oren = asks about the night ferry\nlore/off harbour/the night ferry")
    capsys.readouterr()
    options = {"accept": (), "only_changed": False, "ask": False, "as_json": False, "junit": None}
    assert check(village.folder / "kept", conf(), **options) == 1
    return str(capsys.readouterr().out)


PRINTED: Mapping[tuple[str, str], Callable[..., str]] = {
    ("cli.md", "`evennia-ai doctor [PROFILE] [--game DIR] [--json]`"): _a_check,
    ("README.md", "What you see"): _a_talk,
    ("kept-answers.md", "On the command line"): _a_check_of_kept_answers,
    ("demo.md", "What a trace looks like"): _trace_of("oren.yaml"),
    ("demo.md", "A card that wants to stand above everything"): _trace_of("hostile_card.yaml"),
    ("lorebook.md", "Why, and why not"): _reasons_of_lore,
    ("watching.md", "The request log"): _request_log,
    ("watching.md", "What holds the game up"): _what_is_slow,
}
"""Functions that print the outputs under each heading."""


@pytest.mark.parametrize("block", blocks("output"), ids=lambda block: block.place)
def test_output_shown_on_a_page_is_the_printed_output(
    block: Block, village: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    prints = PRINTED.get((block.page, block.heading))
    assert prints, f"{block.place}: nothing prints it; write what does into PRINTED"
    printed = prints(village, monkeypatch, capsys)
    assert _pattern(block).fullmatch(_without_blanks(printed)), printed


def test_known_output_is_shown_on_a_page() -> None:
    assert {(one.page, one.heading) for one in blocks("output")} == set(PRINTED)


def _without_blanks(text: str) -> str:
    return "".join(f"{line}\n" for line in text.splitlines() if line.strip())


def _pattern(block: Block) -> re.Pattern[str]:
    """Return a pattern for a block, in which `...` matches any lines, or anything inside JSON."""
    lines = []
    for line in block.lines:
        exact = re.escape(f"{line}\n")
        if line.strip() == "...":
            lines.append("(?:.*\n)*?")
        else:
            lines.append(exact.replace(r"\.\.\.", ".*") if line.startswith("LLM_") else exact)
    return re.compile("".join(lines))
