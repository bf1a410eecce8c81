"""Test that every hostile text of the corpus stays plain text. Each text enters in one way."""

import pytest

from tests.npc.hostile.corpus import MARK, Case, corpus

pytestmark = pytest.mark.minutes(2)

LINES_APART = 3
CASES = corpus()
_HARMLESS = {}


@pytest.fixture
def hostile_stage(stage):
    from tests.npc.hostile.playing import prepared

    return prepared(stage)


def like(stage, logged, *, way, roles):
    """Return the play of a harmless text in the same way, played once for all tests.

    Its prompts end before the model obeys a text, so later prompts are not compared.
    """
    from tests.npc.hostile.playing import play
    from tests.npc.hostile.ways import HARMLESS

    if (way, roles) not in _HARMLESS:
        _HARMLESS[way, roles] = play(stage, HARMLESS, way=way, roles=roles, logged=logged)
    return _HARMLESS[way, roles]


def way_of(case):
    """Return one of the ways of a case. Cases that follow each other use different ways."""
    return case.into[CASES.index(case) % len(case.into)]


FIRST = {way: case for case in reversed(CASES) for way in case.into}


@pytest.mark.long
@pytest.mark.parametrize("way", sorted(FIRST))
def test_each_way_in_treats_its_first_hostile_text_as_plain_text(hostile_stage, logged, way):
    from tests.npc.hostile.playing import LOOKED_AT

    check(hostile_stage, logged, FIRST[way], way=way, looks=LOOKED_AT)


@pytest.mark.long
@pytest.mark.parametrize(
    "case",
    [case for case in CASES if FIRST[way_of(case)] is not case],
    ids=lambda case: case.name,
)
def test_hostile_text_is_treated_as_plain_text(hostile_stage, logged, case: Case):
    """For every other text, a builder types some of the commands and the model obeys the text."""
    from tests.npc.hostile.playing import LOOKED_AT

    half, is_odd = divmod(CASES.index(case), 2)
    looks = () if is_odd else LOOKED_AT[half % LINES_APART :: LINES_APART]
    check(hostile_stage, logged, case, way=way_of(case), looks=looks)


def check(hostile_stage, logged, case, *, way, looks):
    """Play the case in this way, and fail if an invariant is broken.

    The kinds of servers take turns.
    """
    from tests.npc.hostile.invariants import problems
    from tests.npc.hostile.playing import ROLES, play

    roles = list(ROLES)[(CASES.index(case) + case.into.index(way)) % len(ROLES)]
    harmless = like(hostile_stage, logged, way=way, roles=roles)
    played = play(hostile_stage, case.text, way=way, roles=roles, logged=logged, looks=looks)
    found = problems(case, played, harmless, way=way, roles=roles)
    assert found == [], f"by way of {way}, {roles}"


def test_corpus_has_eighty_unique_cases_with_reasons():
    assert len(CASES) >= 80
    assert len({case.name for case in CASES}) == len(CASES)
    assert all(case.why and case.into for case in CASES)
    assert all(case.unmarked or MARK in case.text for case in CASES)


def test_corpus_uses_every_way_in():
    from tests.npc.hostile.ways import WAYS

    assert {way for case in CASES for way in case.into} == set(WAYS)
