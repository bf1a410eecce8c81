"""Contexts in the store: what builders switched off in each, and who did."""

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import NotStoredError
from evennia_ai.store.authored import contexts
from evennia_ai.store.core.snapshots import forget_everything


@pytest.fixture(autouse=True)
def _fresh(db):
    forget_everything()
    yield
    forget_everything()


def off():
    return {context.name: set(context.off) for context in contexts.contexts()}


def test_at_first_every_component_takes_part_in_every_context():
    assert off() == {"autonomous": set(), "whisper": set(), "conversation": set()}


def test_what_is_off_is_off_in_one_context_alone_and_outlasts_a_restart():
    contexts.switch_off("whisper", {"mood", "goals"}, by=trusted("Mara"))
    forget_everything()
    assert off() == {"autonomous": set(), "whisper": {"mood", "goals"}, "conversation": set()}


def test_the_newest_change_counts_and_every_change_is_kept():
    contexts.switch_off("whisper", {"mood"}, by=trusted("Mara"))
    contexts.switch_off("whisper", {"mood"}, by=trusted("Pim"))
    contexts.switch_off("whisper", (), by=trusted("Ida"))
    assert off()["whisper"] == set()
    told = [
        (one.number, one.changed_by, set(one.off)) for one in contexts.context_revisions("whisper")
    ]
    assert told == [(1, "Mara", {"mood"}), (2, "Ida", set())]


def test_a_context_that_is_not_there_is_refused_with_those_there_are():
    with pytest.raises(NotStoredError, match="whisper"):
        contexts.switch_off("whispers", {"mood"}, by=trusted("Mara"))


def test_warm_contexts_ask_the_database_nothing(no_queries):
    contexts.contexts()
    with no_queries():
        contexts.contexts()
