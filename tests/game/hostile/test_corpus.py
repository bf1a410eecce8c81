"""Every hostile text of the corpus, in two of its ways in: none becomes more than its words."""

import pytest

from tests.game.hostile.corpus import MARK, Case, corpus

pytestmark = pytest.mark.minutes(2)

CASES = corpus()
_HARMLESS = {}


@pytest.fixture
def hostile_stage(stage):
    from tests.game.hostile.playing import prepared

    return prepared(stage)


def like(stage, logged, *, way, roles):
    """What comes of a harmless text, played once for all while the model is well.

    Prompts that are made later are compared with none.
    """
    from tests.game.hostile.playing import play
    from tests.game.hostile.ways import HARMLESS

    if (way, roles) not in _HARMLESS:
        _HARMLESS[way, roles] = play(
            stage, HARMLESS, way=way, roles=roles, logged=logged, to_the_end=False
        )
    return _HARMLESS[way, roles]


def ways_of(case):
    """The first of its ways in, and one of the others: not the same of each case."""
    first, *others = case.into
    return [first, *(others and [others[CASES.index(case) % len(others)]])]


FIRST = {way: case for case in reversed(CASES) for way in case.into}


@pytest.mark.long
@pytest.mark.parametrize("way", sorted(FIRST))
def test_one_hostile_text_is_nothing_but_text_by_this_way(hostile_stage, logged, way):
    check(hostile_stage, logged, FIRST[way], ways=[way])


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_it_is_nothing_but_text_by_two_of_its_ways(hostile_stage, logged, case: Case):
    ways = [way for way in ways_of(case) if FIRST[way] is not case]
    check(hostile_stage, logged, case, ways=ways)


def check(hostile_stage, logged, case, *, ways):
    """Play the case in these of its ways, and look at what comes of it.

    The kinds of servers that are asked take turns.
    """
    from tests.game.hostile.invariants import problems
    from tests.game.hostile.playing import ROLES, play

    for way in ways:
        roles = list(ROLES)[(CASES.index(case) + case.into.index(way)) % len(ROLES)]
        harmless = like(hostile_stage, logged, way=way, roles=roles)
        played = play(
            hostile_stage,
            case.text,
            way=way,
            roles=roles,
            logged=logged,
            to_the_end=way == case.into[0],
        )
        found = problems(case, played, harmless, way=way, roles=roles)
        assert found == [], f"by way of {way}, {roles}"


def test_the_corpus_is_large_and_tells_why():
    assert len(CASES) >= 80
    assert len({case.name for case in CASES}) == len(CASES)
    assert all(case.why and case.into for case in CASES)
    assert all(case.unmarked or MARK in case.text for case in CASES)


def test_every_way_in_is_tried_and_each_one_there_is():
    from tests.game.hostile.ways import WAYS

    assert {way for case in CASES for way in case.into} == set(WAYS)
