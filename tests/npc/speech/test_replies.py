"""Test what players see of replies in the shapes that models write them, and what is recorded."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from evennia_ai.npc.speech.reply_acts import JOINED, acts_of
from evennia_ai.services.llm.odd_replies import oddities
from evennia_ai.services.llm.speech import SPEECH_LINES, SpokenStart, speech_in

OWN_NAMES = ("Mira", "Мира", "ミラ", "米拉")
OTHER_NAMES = ("Anna", "Bo", "Анна", "アンナ", "安娜")
CASTS = (("Mira", "Anna"), ("Мира", "Анна"), ("ミラ", "アンナ"), ("米拉", "安娜"))
"""The names of the NPC and of the player who speaks with it, in the languages of the table."""
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


def cast_of(reply: str) -> tuple[str, str]:
    return next((cast for cast in CASTS if any(name in reply for name in cast)), CASTS[0])


def plain(line: str) -> str:
    """Return a line as it is compared: the screen joins lines and changes quotation marks."""
    return " ".join(line.translate(str.maketrans(dict.fromkeys('"“”„', "'"))).split())


def on_screen(act: str, *, npc: str) -> str:
    """Return what the person to whom an NPC whispers reads of an act."""
    kind, _, text = act.partition(": ")
    if kind == "pose":
        return f"{npc}{'' if text.startswith(JOINED) else ' '}{text}"
    return f'{npc} whispers to you, "{text}"'


@pytest.mark.long
def test_only_the_whisperer_reads_the_speech_and_poses_of_all_replies_to_whispers(
    stage: Any,
) -> None:
    """Play each reply once. `tests/acceptance/test_replies_in_play.py` plays them aloud."""
    replies = iter([row["reply"] for row in ROWS])
    stage.talks_with(lambda request: next(replies) if request.question else "", fallback_line="Hm.")
    stage.ben.key = "Bo"
    for row in ROWS:
        stage.npc.key, stage.anna.key = cast_of(row["reply"])
        stage.anna.screen.sent.clear()
        stage.whispers(stage.anna, "Well?")
        acts = [on_screen(act, npc=stage.npc.key) for act in row["players"] or ["say: Hm."]]
        assert list(map(plain, stage.screen_of(stage.anna)[1:])) == list(map(plain, acts))
    assert stage.screen_of(stage.ben) == []
