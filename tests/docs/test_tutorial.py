"""Test the tutorial: each command is typed in an empty room, and must print what the page shows.

Numbers of records and objects differ from game to game, but each must always mean the same thing. A
script answers for the NPC, with the words of the page.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from evennia_ai.engine.prompt.messages import ToolCall
from evennia_ai.services.llm.chat import ChatReply
from tests.docs.fences import ROOT

PAGE = ROOT / "docs" / "play" / "a-character-from-nothing.md"
MOST_COMMANDS = 24
_FENCE = re.compile(r"^```text\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_OBJECT = r"\(#\d+\)|npc:#\d+"
_RECORD = r"(?<![a-z:])#\d+"
_VARIES = re.compile(
    rf"({_OBJECT}|{_RECORD}|conversation \d+|\d{{4}}-\d\d-\d\d \d\d:\d\d UTC|\d+\.\d s\b)"
)
_JAR = ToolCall(
    id="jar", name="pose", arguments='{"action": "holds a jar of dried leaves to the light."}'
)
ANSWERS = (
    "Good evening. Mind the nettles.",
    "Fenbane? Four leaves in hot water. Two pennies the jar.",
    ChatReply(text="", tool_calls=(_JAR,), model="script"),
    "The last of this summer's.",
    "Then you would have your jar, and I my supper.",
)


def steps() -> Iterator[tuple[str, str]]:
    """Return the commands of the page, each with the output that it shows."""
    for block in _FENCE.findall(PAGE.read_text(encoding="utf-8")):
        for step in re.split(r"^> ", block, flags=re.MULTILINE)[1:]:
            typed, _, printed = step.partition("\n")
            yield typed, printed


def played(game: Any) -> Iterator[tuple[str, str]]:
    """Return the commands whose output differs from the page, with both outputs."""
    answers = iter(ANSWERS)
    game.install(model=lambda request: next(answers))
    numbers: dict[str, str] = {}
    for typed, printed in steps():
        told = game.types(_renumbered(typed, numbers)).partition("\n")[2]
        pattern = _pattern(printed, numbers)
        found = re.fullmatch(pattern, _joined(told))
        if found:
            numbers.update(found.groupdict())
        yield f"{typed}: {told}", "" if found else pattern


def _renumbered(typed: str, numbers: Mapping[str, str]) -> str:
    """Return a line of the page with the numbers of this game's records."""
    return re.sub(_RECORD, lambda found: f"#{numbers[f'record{found[0][1:]}']}", typed)


def _joined(text: str) -> str:
    """Return a text without line breaks, because longer numbers change them."""
    return " ".join(text.split())


def _pattern(printed: str, numbers: Mapping[str, str]) -> str:
    """Return a pattern for what this game prints where the page shows `printed`."""
    pattern, met = "", set()
    for index, part in enumerate(_VARIES.split(_joined(printed))):
        before, hash_mark, number = part.rstrip(")").partition("#")
        if index % 2 == 0:
            pattern += re.escape(part)
            continue
        if not hash_mark:
            pattern += re.sub(r"\d+", r"\\d+", part)
            continue
        name = f"{'object' if before else 'record'}{number}"
        told = f"(?P={name})" if name in met else rf"(?P<{name}>\d+)"
        told = numbers.get(name, told)
        met.add(name)
        pattern += f"{re.escape(before)}#{told}{re.escape(part[len(part.rstrip(')')) :])}"
    return pattern


def test_tutorial_commands_print_the_shown_output(own_game: Any) -> None:
    wrong = [told for told, pattern in played(own_game) if pattern]
    assert wrong == []


def test_tutorial_makes_a_character_with_few_commands() -> None:
    assert 15 < len(list(steps())) <= MOST_COMMANDS


def test_tutorial_tables_fit_80_columns() -> None:
    tables = [line for _, printed in steps() for line in printed.splitlines()[1:]]
    assert max(map(len, tables)) <= 80
