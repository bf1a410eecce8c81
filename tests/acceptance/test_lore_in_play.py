"""Test sticky lore on a real server: the entry about the ferry stays active for three turns.

One conversation is held over telnet. The tests read what the game printed after each turn.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from server.evennia_process import Evennia
from server.telnet import Connection
from tests.acceptance.games import (
    builder_beside_npc,
    logs_of,
    reload,
    rows_of,
    running_game,
    shown,
)

pytestmark = pytest.mark.server

FERRY, ICE = "lore:harbour#5", "lore:harbour#4"
SMALL_TALK = "say Oren, what is that whistle for?"
QUESTION = "say Oren, does the ferry run?"
OTHER_THINGS = (
    "say Oren, who taught you to splice?",
    "say Oren, how old is this bench?",
    "say Oren, do you like to read?",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The prompt of one turn, and what `ai/why` prints about the ferry."""

    context: str
    why: str

    def has(self, origin: str) -> bool:
        """True if an entry is one of the prompt's messages. Oren's own words do not count."""
        messages, _, _ = self.context.partition("-- kept")
        return origin in messages.split()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The output of `lore/test`, and the stored lore timers before and after it."""

    told: str
    before: str
    after: str


@dataclass(slots=True, kw_only=True)
class Story:
    """The turns in order, with a trial before the question and one after the reload."""

    turns: list[Turn] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)


@pytest.fixture(scope="module")
def game(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evennia]:
    settings = "EVENNIA_AI_COOLDOWN_SECONDS = 0.0"
    with running_game(tmp_path_factory.mktemp("game"), settings=settings) as evennia:
        yield evennia


@pytest.fixture(scope="module")
def story(game: Evennia) -> Story:
    """Talk about something else, ask about the ferry, then talk about three other things.

    The server is reloaded after the first of these.
    """
    told = Story()
    with builder_beside_npc(game) as builder:
        told.turns.append(said(builder, SMALL_TALK))
        told.trials.append(trial(game, builder, "does the ferry run?"))
        told.turns.append(said(builder, QUESTION))
        told.turns.append(said(builder, OTHER_THINGS[0]))
        reload(game)
        told.trials.append(trial(game, builder, "good evening"))
        told.turns.append(said(builder, OTHER_THINGS[1]))
        told.turns.append(said(builder, OTHER_THINGS[2]))
    return told


def said(builder: Connection, line: str) -> Turn:
    """Say a line to Oren, wait for the reply, and return its prompt."""
    shown(builder, line, until=r'^Oren says, "')
    return Turn(
        context=shown(builder, "ai/context oren = full"),
        why=shown(builder, "ai/why oren = the ferry"),
    )


def trial(game: Evennia, builder: Connection, text: str) -> Trial:
    before = timers(game)
    told = shown(builder, f"lore/test oren = {text}")
    return Trial(told=told, before=before, after=timers(game))


def timers(game: Evennia) -> str:
    """Return the stored lore timers of all conversations."""
    return repr(
        rows_of(game, "SELECT conversation_id, turn, state FROM evennia_ai_lorestate ORDER BY 1")
    )


def one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def test_lore_entry_is_inactive_before_its_key_occurs(story: Story) -> None:
    first = story.turns[0]
    assert not first.has(FERRY)
    assert "left out: no key in the newest message" in one_line(first.why)


def test_lore_entry_is_active_when_its_key_occurs(story: Story) -> None:
    asked = story.turns[1]
    assert asked.has(FERRY)
    assert "kept: key 'ferry' in the event" in one_line(asked.why)


@pytest.mark.parametrize(("turn", "left"), [(2, 2), (3, 1)])
def test_sticky_entry_stays_active_for_two_more_turns(story: Story, turn: int, left: int) -> None:
    later = story.turns[turn]
    assert later.has(FERRY)
    assert f"sticky: activated earlier and stays for {left} more turn" in one_line(later.why)


def test_sticky_entry_is_inactive_in_the_third_turn(story: Story) -> None:
    last = story.turns[4]
    assert not last.has(FERRY)
    assert "left out: no key in the newest message" in one_line(last.why)


def test_recursively_activated_entry_follows_the_sticky_entry(story: Story) -> None:
    assert [turn.has(ICE) for turn in story.turns] == [False, True, True, True, False]


def test_lore_test_command_shows_activations_with_reasons(story: Story) -> None:
    before_the_question = one_line(story.trials[0].told)
    assert "nothing was changed" in before_the_question
    assert "harbour#5 (the ferry)" in before_the_question
    assert "key 'ferry' in the event at 9-14" in before_the_question


def test_lore_test_command_shows_sticky_entries_after_a_reload(story: Story) -> None:
    assert "sticky: activated earlier and stays for 1 more turn" in one_line(story.trials[1].told)


def test_lore_test_command_leaves_stored_timers_unchanged(story: Story) -> None:
    assert [trial.after for trial in story.trials] == [trial.before for trial in story.trials]
    assert ["harbour#5" in trial.before for trial in story.trials] == [False, True]


LONG_BOOK = (
    ("lore/import great", "Imported lorebook great, 10000 entries, revision 1 (new)"),
    ("lore/assign great = game", "Lorebook great is assigned to game now."),
    ("lore/create great/the toll = toll: Two pence.", "Created great#10000 (the toll)"),
    ("lore/keys great/the toll = toll, fare", "now: toll, fare. Revision 3."),
    ("lore/remove great#5", "Removed great#5"),
    ("lore great/the toll", "toll, fare"),
    ("lore/revert great = 2", "Make lorebook great what it was at revision 2?"),
    ("yes", "It has 10001 entries"),
)


def test_lorebook_of_ten_thousand_entries_is_imported_and_edited(
    game: Evennia, story: Story
) -> None:
    blank = {"content": "It rained.", "enabled": True, "insertion_order": 1, "use_regex": False}
    entries = [{**blank, "id": n, "keys": [f"word{n}"], "extensions": {}} for n in range(10_000)]
    book = {"spec": "lorebook_v3", "data": {"name": "great", "entries": entries, "extensions": {}}}
    (game.root / "world" / "demo" / "cards" / "great.json").write_text(
        json.dumps(book), encoding="utf-8"
    )
    with builder_beside_npc(game) as builder:
        for typed, answer in LONG_BOOK:
            told = one_line(shown(builder, typed, until=re.escape(answer.split()[0])))
            assert answer in told
        assert said(builder, "say Oren, what is the toll?").has("lore:great#10000")


def test_server_log_has_no_traceback_after_lore_edits(game: Evennia, story: Story) -> None:
    assert "Traceback" not in logs_of(game)
