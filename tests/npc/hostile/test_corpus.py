"""Test that every hostile text of the corpus stays plain text. Each text enters in one way."""

from collections import defaultdict
from contextlib import contextmanager

import pytest

from tests.npc.conftest import _set
from tests.npc.hostile.corpus import MARK, corpus

pytestmark = pytest.mark.minutes(2)

LINES_APART = 3
CASES = corpus()
FIRST = {way: case for case in reversed(CASES) for way in case.into}


def cases_by_way():
    """Return the cases of each way in. The first case that fits a way is also tried in it.

    Every other case is tried in one of its ways. Cases that follow each other use different ways.
    """
    found = defaultdict(list, {way: [case] for way, case in FIRST.items()})
    for number, case in enumerate(CASES):
        way = case.into[number % len(case.into)]
        if FIRST[way] is not case:
            found[way].append(case)
    return found


WAYS_OF_CASES = cases_by_way()


@pytest.fixture
def new_stage(_cast, world):
    """Return a block with a stage on which nothing has happened yet."""
    from tests.npc.hostile.playing import prepared

    @contextmanager
    def block():
        with world(), _set(_cast) as stage:
            yield prepared(stage)

    return block


@pytest.mark.long
@pytest.mark.parametrize("way", sorted(WAYS_OF_CASES))
def test_hostile_texts_are_treated_as_plain_text(new_stage, logged, way):
    """A harmless text is played once in the same way, for comparison, with each kind of server.

    For every other text, a builder types some of the commands and the model obeys the text. For the
    first text of a way, the builder types all of them. The kinds of servers take turns.
    """
    from tests.npc.hostile.invariants import problems
    from tests.npc.hostile.playing import LOOKED_AT, ROLES, play
    from tests.npc.hostile.ways import HARMLESS

    harmless, wrong = {}, {}
    for case in WAYS_OF_CASES[way]:
        number = CASES.index(case)
        half, is_odd = divmod(number, 2)
        looks = () if is_odd else LOOKED_AT[half % LINES_APART :: LINES_APART]
        if FIRST[way] is case:
            looks = LOOKED_AT
        roles = list(ROLES)[(number + case.into.index(way)) % len(ROLES)]
        if roles not in harmless:
            with new_stage() as stage:
                # Its prompts end before the model obeys a text, so later ones are not compared.
                harmless[roles] = play(stage, HARMLESS, way=way, roles=roles, logged=logged)
        with new_stage() as stage:
            played = play(stage, case.text, way=way, roles=roles, logged=logged, looks=looks)
        if found := problems(case, played, harmless[roles], way=way, roles=roles):
            wrong[case.name, roles] = found
    assert wrong == {}


def test_every_case_is_tried():
    tried = {case.name for cases in WAYS_OF_CASES.values() for case in cases}
    assert tried == {case.name for case in CASES}


def test_corpus_has_eighty_unique_cases_with_reasons():
    assert len(CASES) >= 80
    assert len({case.name for case in CASES}) == len(CASES)
    assert all(case.why and case.into for case in CASES)
    assert all(case.unmarked or MARK in case.text for case in CASES)


def test_corpus_uses_every_way_in():
    from tests.npc.hostile.ways import WAYS

    assert {way for case in CASES for way in case.into} == set(WAYS)
