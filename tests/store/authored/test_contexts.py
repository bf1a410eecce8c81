"""Test stored contexts: what builders switched off in each, and who did it."""

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


def test_every_component_is_on_in_every_context_at_first():
    assert off() == {"autonomous": set(), "whisper": set(), "conversation": set()}


def test_switched_off_component_is_off_in_one_context_after_restart():
    contexts.switch_off("whisper", {"mood", "goals"}, by=trusted("Mara"))
    forget_everything()
    assert off() == {"autonomous": set(), "whisper": {"mood", "goals"}, "conversation": set()}


def test_newest_context_change_counts_and_all_are_kept():
    contexts.switch_off("whisper", {"mood"}, by=trusted("Mara"))
    contexts.switch_off("whisper", {"mood"}, by=trusted("Pim"))
    contexts.switch_off("whisper", (), by=trusted("Ida"))
    assert off()["whisper"] == set()
    told = [
        (one.number, one.changed_by, set(one.off)) for one in contexts.context_revisions("whisper")
    ]
    assert told == [(1, "Mara", {"mood"}), (2, "Ida", set())]


def test_unknown_context_error_names_the_known_ones():
    with pytest.raises(NotStoredError, match="whisper"):
        contexts.switch_off("whispers", {"mood"}, by=trusted("Mara"))


def test_cached_contexts_are_read_without_a_query(no_queries):
    contexts.contexts()
    with no_queries():
        contexts.contexts()
