"""Test what players see of replies in the shapes that models write them, and what is recorded."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from evennia_ai.npc.speech.reply_acts import acts_of
from evennia_ai.services.llm.odd_replies import oddities
from evennia_ai.services.llm.speech import SPEECH_LINES, SpokenStart, speech_in

OWN_NAMES = ("Mira", "Мира", "ミラ", "米拉")
OTHER_NAMES = ("Anna", "Bo", "Анна", "アンナ", "安娜")
ROWS: list[dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("replies.yaml").read_text(encoding="utf-8")
)


def seen(said: str) -> list[str]:
    acts = acts_of(said, own_names=OWN_NAMES)
    return [f"{act.kind}{f' to {act.to}' if act.to else ''}: {act.text}" for act in acts]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["reply"][:60])
def test_players_and_the_history_get_speech_without_its_wrapping(row: dict[str, Any]) -> None:
    said = speech_in(row["reply"], own_names=OWN_NAMES, other_names=OTHER_NAMES)
    assert (said, seen(said)) == (row["recorded"], row["players"])
    assert list(oddities(said)) == row.get("odd", [])


@pytest.mark.parametrize("size", [1, 7])
def test_early_sentences_are_the_start_of_each_cleaned_reply(size: int) -> None:
    for row in ROWS:
        start = SpokenStart(OWN_NAMES, OTHER_NAMES, early=True, max_lines=SPEECH_LINES)
        pieces = (row["reply"][at : at + size] for at in range(0, len(row["reply"]), size))
        early = "".join(sentence for piece in pieces for sentence in start.feed(piece))
        assert start.whole(row["reply"]).startswith(early)
