"""The collector of a running server: what is new is searched often, everything seldom."""

import gc
import weakref

import pytest

from evennia_ai.game.garbage import Garbage


class Ring:
    """Something that only a search finds when nobody reaches it."""

    def __init__(self):
        self.itself = self


@pytest.fixture
def garbage():
    was, frozen = gc.get_threshold(), gc.get_freeze_count()
    made = Garbage()
    made.begin()
    yield made
    made.end()
    assert gc.get_threshold() == was
    if frozen:  # what the tests themselves had frozen
        gc.freeze()


def test_what_was_there_at_the_beginning_is_frozen(garbage):
    assert gc.get_freeze_count() > 1000
    assert gc.get_threshold()[2] > 1000


def test_what_became_garbage_since_is_found(garbage):
    found = weakref.ref(Ring())
    garbage.search_new()
    assert found() is None


def test_what_became_garbage_while_it_was_frozen_is_found_when_all_is_searched(garbage, logged):
    ring = Ring()
    garbage.search_new()
    found = weakref.ref(ring)
    del ring
    garbage.search_new()
    assert found() is not None
    garbage.search_everything()
    assert found() is None
    assert "searched for garbage" in logged[-1]
