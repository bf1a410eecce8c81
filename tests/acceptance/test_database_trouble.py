"""Test a full disk, a locked database and a second writer, at every step of a turn.

Each scene is played once for each of its steps. The trouble begins at that step and ends after a
while, and the process goes on.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, pairwise, takewhile
from pathlib import Path

import pytest

from tests.acceptance.doomed import Act, Game, Life
from tests.acceptance.doomed_steps import committed_open_turns, committed_records

pytestmark = [pytest.mark.service, pytest.mark.minutes(1)]

ASKS: list[Act] = [["says", "Anna", "Oren?"], ["passes", 3]]
GOES_ON: list[Act] = [
    ["heals"],
    ["passes", 12],
    ["reports"],
    ["says", "Anna", "Oren, again?"],
    ["passes", 3],
    ["reports"],
]
OTHER_ASKS: list[Act] = [["says", "Ben", "Oren, and me?"], ["passes", 12]]
TRIED_AGAIN = (
    "events are not recorded yet",
    "no model is asked",
    "nothing more is said",
    "another process has locked the database; waiting",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Troubled:
    """A life with trouble at one step, and the records after it."""

    trouble: str
    step: str
    life: Life
    open_turns: int
    records: list[list]


@dataclass(frozen=True, slots=True, kw_only=True)
class Meeting:
    """A life that was paused at one step while another process let the NPC answer a player."""

    step: str
    life: Life
    other: Life
    open_turns: int
    records: list[list]
    broken: list[list[str]]


@pytest.fixture(scope="module", params=["fill", "lock"])
def troubled(request: pytest.FixtureRequest, doomed_game: Game) -> list[Troubled]:
    """One life for each step, with the trouble at that step.

    The number of steps differs between lives, because the writer may put two jobs into one
    commit. The series ends with the life that reached `heals` before its step.
    """
    begun = doomed_game.new(f"trouble_{request.param}")
    each = (_troubled(doomed_game, begun, request.param, at) for at in count(1))
    found = [case for case in takewhile(lambda case: case is not None, each) if case]
    assert found
    return found


@pytest.fixture(scope="module")
def meetings(doomed_game: Game) -> list[Meeting]:
    """One meeting for each step."""
    begun = doomed_game.new("meeting", before=[["says", "Anna", "Fog again."]])
    return [_meeting(doomed_game, begun, at) for at in _step_numbers(doomed_game, begun)]


def _step_numbers(game: Game, begun: Path) -> Iterator[int]:
    whole = game.lives(game.copy(begun), ASKS)
    assert whole.is_over
    return iter(range(1, len(whole.steps) + 1))


def _troubled(game: Game, begun: Path, trouble: str, at: int) -> Troubled | None:
    """Play with the trouble at a step. Return None if `heals` comes before that step."""
    database = game.copy(begun)
    life = game.lives(database, [*ASKS, *GOES_ON], trouble=trouble, at=at)
    assert life.is_over, life.told[-3:]
    if life.before_trouble().all("healed"):
        return None
    return Troubled(
        trouble=trouble,
        step=life.all("trouble")[0],
        life=life,
        open_turns=committed_open_turns(database),
        records=committed_records(database),
    )


def _meeting(game: Game, begun: Path, at: int) -> Meeting:
    database = game.copy(begun)
    with game.playing(database, [*ASKS, *GOES_ON], trouble="pause", at=at) as running:
        running.until("paused")
        other = game.lives(database, OTHER_ASKS)
        running.send()
        life = running.rest()
    assert life.is_over, life.told[-3:]
    assert other.is_over, other.told[-3:]
    return Meeting(
        step=life.all("trouble")[0],
        life=life,
        other=other,
        open_turns=committed_open_turns(database),
        records=committed_records(database),
        broken=[report["broken"] for report in game.lives(database, [["reports"]]).reports],
    )


@pytest.mark.req("S2-27")
def test_model_is_asked_only_for_committed_turns_during_database_trouble(troubled):
    for case in troubled:
        asked = [line for line in case.life.told if "asked" in line]
        assert [line["open_turns"] for line in asked] == [1] * len(asked)


@pytest.mark.req("S2-27")
def test_log_explains_that_nothing_is_written_during_database_trouble(troubled):
    cases = [case for case in troubled if not case.life.all("came_too_late")]
    assert len(cases) > 3
    for case in cases:
        stopped = case.life.in_trouble()
        assert stopped.stored == []
        has_spoken = bool(case.life.before_trouble().heard | stopped.heard)
        assert has_spoken or any(line in stopped.log for line in TRIED_AGAIN), case.step
        assert "Traceback" not in case.life.log, case.step


def test_npc_says_only_committed_lines_during_database_trouble(troubled):
    assert [case.step for case in troubled if case.life.heard_too_early] == []


def test_npc_answers_and_no_turn_is_open_after_database_trouble(troubled):
    for case in troubled:
        assert case.open_turns == 0, case.step
        assert "open" not in case.life.reports[0]["status"][-1]
        again = next(n for n, line in enumerate(case.life.told) if "report" in line)
        assert Life(told=case.life.told[again:]).heard, case.step


def test_turn_records_that_its_reply_broke_off_when_the_disk_was_full(troubled):
    cases = [case for case in troubled if "nothing more is said" in case.life.log]
    assert bool(cases) == (troubled[0].trouble == "fill")  # the writer waits for a lock to end
    for case in cases:
        assert any("broke off, nothing more is said" in body for *_, body in case.records)


def test_all_questions_are_answered_after_a_lock_and_one_after_a_full_disk(troubled):
    for case in troubled:
        answers = len(case.life.heard)
        assert answers == 2 if case.trouble == "lock" else answers >= 1, case.step


def test_record_chains_are_intact_after_database_trouble(troubled):
    for case in troubled:
        assert [report["broken"] for report in case.life.reports] == [[], []]


@pytest.mark.req("S2-31")
def test_records_of_a_turn_stay_together_when_two_processes_write(meetings):
    for met in meetings:
        roles = [role for _, _, role, _ in met.records]
        ends = [after for role, after in pairwise(roles) if role == "assistant"]
        assert ends == ["system"] * len(ends), met.step
        assert met.broken == [[]]


@pytest.mark.req("S2-31")
def test_second_writer_logs_one_conflict_without_traceback(meetings):
    conflicts = 0
    for met in meetings:
        for life in (met.life, met.other):
            assert life.log.count("another writer changed") <= 1, met.step
            assert "Traceback" not in life.log, met.step
        conflicts += met.life.log.count("another writer changed")
    assert conflicts


def test_both_writers_get_an_answer_or_a_log_line_and_leave_no_open_turn(meetings):
    for met in meetings:
        assert met.open_turns == 0
        assert met.life.heard, met.step
        is_told = any(line in met.other.log for line in ("nothing was written", *TRIED_AGAIN))
        assert met.other.heard or is_told, met.step
        assert met.life.heard_too_early == met.other.heard_too_early == set()
