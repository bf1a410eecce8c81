"""`component/context`: builders switch components off in one kind of turn."""

import pytest

from evennia_ai.store.authored import contexts


def off(name):
    return set(contexts.context(name).off)


@pytest.mark.req("S3-20")
def test_a_component_is_switched_off_and_on_in_one_context(stage):
    told = stage.builds("component/context whisper = off goals")
    assert told == "Context whisper: off: goals."
    assert (off("whisper"), off("conversation")) == ({"goals"}, set())
    told = stage.builds("component/context Whisper = ON goals")
    assert told == "Context whisper: every component is on."
    assert off("whisper") == set()


def test_a_reset_switches_everything_on(stage):
    stage.builds("component/context whisper = off goals", "component/context whisper = off 0")
    assert off("whisper") == {"goals", "system_prompt"}
    stage.builds("component/context whisper = reset")
    assert off("whisper") == set()


def test_contexts_are_listed_with_what_is_off(stage):
    stage.builds("component/context autonomous = off dialogue_examples")
    told = stage.builds("component/context")
    assert "autonomous    off: dialogue_examples" in told
    assert "conversation  every component is on" in told


def test_one_context_is_shown_with_who_changed_it(stage):
    stage.builds("component/context autonomous = off goals")
    told = stage.builds("component/context autonomous")
    assert "Time passes and the NPC may act by itself." in told
    assert "Mara: goals off" in told


def test_a_component_says_in_which_contexts_it_is_off(stage):
    stage.builds("component/context autonomous = off goals")
    assert "off in the contexts autonomous" in stage.builds("component goals")
    assert "off in the contexts" not in stage.builds("component system_prompt")


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("component/context whispers = off goals", "whisper"),
        ("component/context whisper = off gaols", "goals"),
        ("component/context whisper = goals", "Usage: component/context"),
        ("component/context whisper = off", "Usage: component/context"),
        ("component/context = off goals", "Usage: component/context"),
    ],
)
def test_context_errors_change_nothing_and_show_the_usage(stage, typed, told):
    assert told in stage.builds(typed)
    assert [context.off for context in contexts.contexts()] == [frozenset()] * 3


def test_switching_off_twice_makes_no_change(stage):
    stage.builds("component/context whisper = off goals")
    told = stage.builds("component/context whisper = off goals")
    assert "nothing was changed" in told
    assert len(contexts.context_revisions("whisper")) == 1
