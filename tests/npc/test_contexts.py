"""Contexts in real turns: a component can be off in one kind of prompt and on in others."""

from typing import Any

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.prompt.components import PromptComponent
from evennia_ai.npc.floor.ticks import QUIET, tick_of
from evennia_ai.npc.views.recomposing import PastReader, compare_turn, compose_again, see_all
from evennia_ai.store.authored import components, contexts
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.history import turns
from evennia_ai.store.history.past_turns import turns_in_order

MOOD = "Oren is tired."


@pytest.fixture
def tired(stage: Any) -> Any:
    stage.talks_with(lambda request: "Aye.")
    component = PromptComponent(id=1201, key="mood", content="{{char}} is tired.")
    components.create(component, by=trusted("builder"))
    return stage


def has_mood(stage: Any) -> list[bool]:
    """Return for each sent prompt whether it contains the component."""
    return [any(m.content == MOOD for m in one.messages) for one in stage.model.requests]


def all_three(stage: Any) -> None:
    """Cause a prompt of each context: a line in the room, a whisper, and a tick."""
    stage.says(stage.anna, "Oren, good evening.")
    stage.whispers(stage.anna, "Good evening.")
    stage.npc.ai.hear(tick_of(stage.npc, QUIET))
    stage.passes()


@pytest.mark.req("S3-20")
@pytest.mark.parametrize(
    ("context", "shown"),
    [
        ("conversation", [False, True, True]),
        ("whisper", [True, False, True]),
        ("autonomous", [True, True, False]),
    ],
)
def test_component_off_in_one_context_is_in_the_prompts_of_the_others(
    tired, context, shown
) -> None:
    contexts.switch_off(context, {"mood"}, by=trusted("Mara"))
    all_three(tired)
    assert has_mood(tired) == shown


@pytest.mark.req("S3-20")
def test_component_switched_on_again_is_in_the_next_prompt(tired) -> None:
    contexts.switch_off("conversation", {"mood"}, by=trusted("Mara"))
    tired.says(tired.anna, "Oren, one.")
    contexts.switch_off("conversation", (), by=trusted("Mara"))
    tired.says(tired.anna, "Oren, two.")
    assert has_mood(tired) == [False, True]


@pytest.mark.req("S3-20")
def test_why_says_that_a_component_is_off_in_the_turns_context(tired) -> None:
    contexts.switch_off("whisper", {"mood"}, by=trusted("Mara"))
    tired.whispers(tired.anna, "Good evening.")
    assert "left out: off in the context whisper" in "\n".join(tired.npc.ai.why("mood"))
    tired.says(tired.anna, "Oren, good evening.")
    assert "off in the context" not in "\n".join(tired.npc.ai.why("mood"))


def test_preview_of_a_line_uses_the_context_conversation(tired) -> None:
    contexts.switch_off("conversation", {"mood"}, by=trusted("Mara"))
    shown = tired.npc.ai.preview("Oren, good evening.", tired.anna)
    assert MOOD not in [message.content for message in shown.messages]
    tired.says(tired.anna, "Oren, good evening.")
    assert turns.last_turn(tired.npc.ai.ref).manifest.sha256 == shown.sha256


def test_facts_of_the_moment_can_be_off_in_a_context(tired) -> None:
    contexts.switch_off("autonomous", {"dynamic_context", "entity_context"}, by=trusted("Mara"))
    all_three(tired)
    sent = ["Place: Ferry Landing." in str(one.messages) for one in tired.model.requests]
    assert sent == [True, True, False]


@pytest.mark.req("S3-20", "S2-30")
def test_recomposed_turn_leaves_out_what_was_off_in_its_context_then(tired) -> None:
    contexts.switch_off("whisper", {"mood"}, by=trusted("Mara"))
    all_three(tired)
    contexts.switch_off("whisper", (), by=trusted("Mara"))
    contexts.switch_off("conversation", {"mood"}, by=trusted("Mara"))
    all_three(tired)
    forget_everything()
    reader = PastReader()
    past = list(turns_in_order(tired.npc.ai.ref))
    assert len(past) == 6
    for turn in past:
        assert compose_again(turn, reader).sha256 == turn.manifest.sha256
        assert compare_turn(turn, lambda past: past.inputs, reader, see_all).outcome == "unchanged"
    told = [turn.manifest.inputs["made_of"]["context"] for turn in past]
    assert sorted(told) == ["autonomous"] * 2 + ["conversation"] * 2 + ["whisper"] * 2


def test_warm_turn_with_contexts_makes_no_query(tired, no_queries) -> None:
    contexts.switch_off("conversation", {"mood"}, by=trusted("Mara"))
    tired.says(tired.anna, "Oren, one.")
    view = tired.npc.ai.view()
    from evennia_ai.npc.inputs.gather import context_of

    with no_queries():
        first = view.components_in(context_of(None), {})
        assert view.components_in(context_of(None), {}) is first
