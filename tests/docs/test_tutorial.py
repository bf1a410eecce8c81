"""Test the tutorials: each command is typed in an empty room, and must print what the page shows.

Numbers of records and objects differ from game to game, but each must always mean the same thing. A
script answers for the NPC, with the words of the page.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from evennia_ai.engine.prompt.messages import ToolCall
from evennia_ai.formats.cards.exporting import dump_card
from evennia_ai.formats.cards.loading import load_card
from evennia_ai.services.llm.chat import ChatReply
from tests.docs.fences import ROOT

PAGES = ROOT / "docs" / "play"
FROM_NOTHING = PAGES / "a-character-from-nothing.md"
OF_SILLYTAVERN = PAGES / "your-sillytavern-character.md"
MOST_COMMANDS = 24
_FENCE = re.compile(r"^```text\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_OBJECT = r"\(#\d+\)|npc:#\d+"
_RECORD = r"(?<![a-z:])#\d+"
_VARIES = re.compile(
    rf"({_OBJECT}|{_RECORD}|conversation \d+|\d+ bytes|\d+\.\d KB"
    r"|\d{4}-\d\d-\d\d \d\d:\d\d UTC|\d+\.\d s\b)"
)
_JAR = ToolCall(
    id="jar", name="pose", arguments='{"action": "holds a jar of dried leaves to the light."}'
)
ANSWERS = {
    FROM_NOTHING: (
        "Good evening. Mind the nettles.",
        "Fenbane? Four leaves in hot water. Two pennies the jar.",
        ChatReply(text="", tool_calls=(_JAR,), model="script"),
        "The last of this summer's.",
        "Then you would have your jar, and I my supper.",
    ),
    OF_SILLYTAVERN: (
        "Evening. Sit by the stove.",
        "Not at night, love. Twice a day she goes.",
        "A smith, are you? Mind my floor.",
    ),
}
# The entry and the card have the fields that SillyTavern 1.19 writes.
_ENTRY = {
    "id": 0,
    "keys": ["ferry"],
    "secondary_keys": [],
    "comment": "the ferry",
    "content": "The ferry crosses twice a day, and never at night.",
    "constant": False,
    "selective": True,
    "insertion_order": 100,
    "enabled": True,
    "position": "after_char",
    "use_regex": True,
    "extensions": {"position": 1, "exclude_recursion": False, "depth": 4, "role": 0},
}
_CARD = {
    "spec": "chara_card_v3",
    "spec_version": "3.0",
    "data": {
        "name": "Tilda",
        "description": "{{char}} keeps the ferry house at Sedgewater.",
        "personality": "blunt, kind",
        "scenario": "",
        "first_mes": "Shut the door, it's raining in.",
        "mes_example": "<START>\n{{user}}: Is it late?\n{{char}}: Later than it was.",
        "creator": "Mara",
        "creator_notes": "",
        "character_version": "1",
        "tags": [],
        "system_prompt": "",
        "post_history_instructions": "",
        "alternate_greetings": [],
        "group_only_greetings": [],
        "extensions": {"talkativeness": "0.5", "fav": False, "world": "Sedgewater"},
        "character_book": {"name": "Sedgewater", "entries": [_ENTRY], "extensions": {}},
    },
}


def put_card(folder: Path) -> None:
    """Put the picture that a tutorial imports into the card folder."""
    card = load_card(json.dumps(_CARD).encode())
    (folder / "Tilda.png").write_bytes(dump_card(card, "png", with_v2=True, modified_at=1))


def steps(page: Path) -> Iterator[tuple[str, str]]:
    """Return the commands of a page, each with the output that it shows."""
    for block in _FENCE.findall(page.read_text(encoding="utf-8")):
        for step in re.split(r"^> ", block, flags=re.MULTILINE)[1:]:
            typed, _, printed = step.partition("\n")
            yield typed, printed


def played(game: Any, page: Path) -> Iterator[tuple[str, str]]:
    """Return the commands whose output differs from the page, with both outputs."""
    answers = iter(ANSWERS[page])
    game.install(model=lambda request: next(answers))
    numbers: dict[str, str] = {}
    for typed, printed in steps(page):
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


@pytest.mark.parametrize("page", [*ANSWERS], ids=lambda page: page.stem)
def test_tutorial_commands_print_the_shown_output(own_game: Any, page: Path) -> None:
    put_card(own_game.folder / "cards")
    wrong = [told for told, pattern in played(own_game, page) if pattern]
    assert wrong == []


def test_tutorial_makes_a_character_with_few_commands() -> None:
    assert 15 < len(list(steps(FROM_NOTHING))) <= MOST_COMMANDS
    assert 5 < len(list(steps(OF_SILLYTAVERN))) <= 10


def test_tutorial_tables_fit_80_columns() -> None:
    tables = [
        line for page in ANSWERS for _, printed in steps(page) for line in printed.splitlines()[1:]
    ]
    assert max(map(len, tables)) <= 80
