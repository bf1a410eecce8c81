"""`evennia-ai replay`: past turns in another process, after everything in the game was edited."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.cli.conftest import Called
from tests.cli.test_card_in_game import Game

pytestmark = pytest.mark.long


@dataclass
class Played:
    """A game that was edited after eight turns. `sent` is what the model got."""

    game: Game
    ref: str
    sent: list[list[str]]
    hashes: list[str]

    def replay(self, *words: str, npc: str = "Ned") -> Called:
        """Return the output of a forked process that has only read the game's settings."""
        return self.game.calls("replay", "--game", "game", "--npc", npc, *words)

    def replay_anew(self, *words: str) -> Called:
        """Return the output of a newly started process, as users start it."""
        return self.game.call("replay", "--game", "game", "--npc", "Ned", *words)

    def write(self, name: str, edit: object) -> str:
        return self.game.write(name, edit)


@pytest.fixture(scope="module")
def played(tmp_path_factory) -> Iterator[Played]:
    game = Game(tmp_path_factory.mktemp("replay"))
    game.migrate()
    done = game.run("-m", "tests.cli.play_in_folder", cwd=game.folder)
    assert done.status == 0, done.err
    yield Played(game=game, **json.loads(done.out.splitlines()[-1]))
    game.close()


def lines_of(called: Called) -> list[dict]:
    return [json.loads(line) for line in called.out.splitlines()]


def unindented(text: str) -> str:
    """Return a text without the indentation that the screen adds."""
    return "\n".join(line.lstrip() for line in text.split("\n"))


@pytest.mark.req("S2-03", "S2-12", "S2-30")
def test_replay_is_exact_after_everything_was_edited(played: Played) -> None:
    for number, replay in ((1, played.replay), (8, played.replay_anew)):
        told = replay("--turn", str(number), "--json")
        assert told.status == 0, told.err
        assert told.json["same"] is True
        assert told.json["sha256"] == played.hashes[number - 1]
        bare = [message["content"] for message in told.json["messages"]]
        for text, sent in zip(bare, played.sent[number - 1], strict=True):
            assert unindented(sent).endswith(unindented(text))
        assert told.json["composed_again"].endswith("it has the same bytes")


def test_replay_text_confirms_the_bytes_and_prints_the_messages(played: Played) -> None:
    told = played.replay("--turn", "2")
    assert told.status == 0
    assert "the same bytes as were sent, rebuilt from records only" in told.out
    assert f"sha256 {played.hashes[1]}" in told.out
    assert "Oren rows" in told.out
    assert "Somebody else." not in told.out


def test_npc_is_found_by_its_present_name_or_number(played: Played) -> None:
    by_number = played.replay("--turn", "1", npc=f"#{played.ref}")
    assert by_number.out == played.replay("--turn", "1", npc="ned").out
    assert by_number.status == 0


def test_a_diff_shows_what_the_edits_since_would_change(played: Played) -> None:
    told = played.replay("--turn", "1", "--diff")
    assert told.status == 1
    assert "-- with the texts of today:" in told.out
    assert "+ Somebody else." in told.out


def test_an_edit_is_shown_for_every_turn_with_a_summary(played: Played) -> None:
    edit = played.write("gruff.json", {"components": [{"key": "spare", "content": "Be gruff."}]})
    told = played.replay("--against", edit, "--json")
    assert told.status == 1
    *turns, summary = lines_of(told)
    assert [turn["turn"] for turn in turns] == list(range(1, 9))
    assert {turn["outcome"] for turn in turns} == {"changed"}
    assert "+ Be gruff." in turns[0]["differences"][0]["lines"]
    tokens = sum(turn["tokens"] - turn["tokens_before"] for turn in turns)
    counts = {"turns": 8, "unchanged": 0, "changed": 8, "unknown": 0, "tokens": tokens}
    cost = summary["summary"].pop("cost")
    assert summary == {"summary": counts}
    assert (cost["turns"], cost["unknown"], cost["nanodollars"]) == (8, 0, 0)
    assert cost["tokens"] > cost["tokens_before"]


def test_edit_without_effect_has_status_0(played: Played) -> None:
    edit = played.write("same.json", {"settings": {"lore": {"recursive": True}}})
    told = played.replay("--against", edit, "--last", "3")
    assert told.status == 0
    assert told.out.splitlines() == [
        "turn 6: unchanged",
        "turn 7: unchanged",
        "turn 8: unchanged",
        "3 turns: 0 changed, 3 unchanged, 0 not known; +0 tokens in all",
        "A turn costs nothing: 140 -> 140 tokens over the last 3 turns.",
    ]


def test_an_edit_can_be_shown_for_one_turn(played: Played) -> None:
    edit = played.write("note.json", {"notes": []})
    told = played.replay("--against", edit, "--turn", "2")
    assert told.status == 1
    assert told.out.startswith("turn 2: changed, ")
    assert "gulls." in told.out


@pytest.mark.parametrize(
    ("words", "npc", "told"),
    [
        (["--turn", "99"], "Ned", "there is no turn of NPC"),
        (["--turn", "1"], "Nobody", "no NPC called 'Nobody' had a turn"),
        (["--turn", "1"], "#999999", "is no NPC that had a turn"),
        ([], "Ned", "name one turn with --turn N"),
        (["--against", "nowhere.yaml"], "Ned", "nowhere.yaml: cannot be read"),
        (["--against", "x.yaml", "--diff"], "Ned", "no --diff"),
        (["--turn", "0"], "Ned", "0 is not in the range"),
    ],
)
def test_bad_input_is_one_line(played: Played, words: list[str], npc: str, told: str) -> None:
    called = played.replay(*words, npc=npc)
    assert (called.status, called.out) == (2, "")
    (line,) = [line for line in called.err.splitlines() if line != "settings may print"]
    assert told in line
