"""Test `kill -9` at every step of a compaction: the old or the new segment remains, whole."""

import pytest

from evennia_ai.engine.history.compaction.summaries import FRAME
from tests.acceptance.doomed import Act, Game
from tests.acceptance.test_kill import Deaths, Recovery, Scene, deaths_of

pytestmark = pytest.mark.service

TALKS: list[Act] = [
    act
    for number in range(4)
    for act in (["says", "Anna", f"Oren, is it foggy on day {number}?"], ["passes", 2])
]
COMPACTS: list[Act] = [["compacts"]]


@pytest.fixture(scope="module")
def deaths(doomed_game: Game) -> Deaths:
    """The deaths at each step of a compaction, with their recoveries."""
    begun = doomed_game.new("compacting", before=TALKS)
    whole = doomed_game.lives(doomed_game.copy(begun), COMPACTS)
    ((told,),) = whole.all("compacted")
    assert "a summary of the model" in told
    return deaths_of(doomed_game, begun, Scene(acts=tuple(COMPACTS)))


def summaries(records: list[list]) -> int:
    return sum(body.startswith(FRAME) for *_, body in records)


def shown_summaries(death: Recovery) -> int:
    """Return the number of summaries in the next prompt.

    Checks that each committed summary is in the prompt and replaces its messages.
    """
    (prompt,) = death.after.all("asked")
    said = [message["content"] for message in prompt if message["role"] != "system"]
    shown = sum(FRAME in text for text in said)
    assert shown == summaries(death.left)
    assert sum("foggy on day 0" in text for text in said) == 1 - shown
    assert sum("foggy on day 3" in text for text in said) == 1
    return shown


@pytest.mark.req("S2-20")
def test_prompt_shows_the_whole_old_or_new_segment_after_a_kill_in_compaction(deaths):
    assert {shown_summaries(death) for death in deaths.recovered} == {0, 1}


def test_records_and_chains_are_intact_after_a_kill_in_compaction(deaths):
    for death in deaths.recovered:
        assert death.after.stored[: len(death.left)] == death.left
        assert [report["broken"] for report in death.after.reports] == [[], []]


def test_npc_answers_after_a_kill_in_compaction(deaths):
    for death in deaths.recovered:
        assert any(line.startswith("Aye") for line in death.after.heard)
        assert "Traceback" not in death.after.log


def test_status_tells_whether_compaction_was_committed_before_a_kill(deaths):
    for death in deaths.recovered:
        status = " ".join(" ".join(death.after.reports[0]["status"]).split())
        assert ("compacted by a model" in status) == bool(summaries(death.left))


def test_summary_request_is_committed_before_the_model_is_asked(deaths):
    asked = [death for death in deaths.each if death.step == "asked"]

    assert asked
    for death in asked:
        assert any("<transcript>" in body for *_, body in death.left)
