"""Test injection depth, from a builder's command to the messages that a model gets.

The real command changes the real store, and the stored component is composed with a conversation of
known length. `H1` is the oldest message of the conversation, the highest number the newest.
"""

from dataclasses import replace

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.compose import compose
from evennia_ai.engine.inputs import ComposeRules, Inputs
from evennia_ai.engine.prompt.budget import BudgetRules
from evennia_ai.engine.prompt.components import GAME, Scope
from evennia_ai.engine.prompt.expansion import ComponentSet
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import event_message, said
from evennia_ai.store.authored import components as store
from evennia_ai.store.core.snapshots import forget_everything
from tests.commands.stage import Stage, a_cast, component, everything

pytestmark = pytest.mark.req("S3-24")


@pytest.fixture(scope="module")
def _cast(world):
    """The harbour, with a system prompt, goals and the builder's own component `mood`."""
    with world():
        cast = a_cast()
        store.update("system_prompt", by=trusted("Mara"), content="RULES")
        store.update("goals", by=trusted("Mara"), content="GOALS")
        store.update("dynamic_context", by=trusted("Mara"), content="FACTS")
        Stage(cast).builds("component/create mood = 1200: MOOD")
        yield cast


@pytest.fixture
def stage(_cast, db):
    return Stage(_cast)


def prompt(length, *, scopes=(GAME,), layout="cache"):
    """Return the contents of the prompt over a number of messages, top to bottom."""
    numbered = length if isinstance(length, list) else range(1, length + 1)
    history = History([said("user", f"H{n}") if isinstance(n, int) else n for n in numbered])
    composed = compose(
        Inputs(
            components=ComponentSet(store.registry().resolved(scopes)),
            rules=ComposeRules(budget=BudgetRules(limit_tokens=10**6), layout=layout),
            history=history,
            event=event_message("EVENT", name="Pim"),
        )
    )
    return [message.content for message in composed.messages]


@pytest.mark.req("S3-22")
def test_depth_command_puts_a_component_before_that_many_messages(stage):
    assert prompt(4) == ["RULES", "MOOD", "GOALS", "H1", "H2", "H3", "H4", "FACTS", "EVENT"]
    stage.builds("component/depth mood = 2")
    assert prompt(4) == ["RULES", "GOALS", "H1", "H2", "MOOD", "H3", "H4", "FACTS", "EVENT"]


@pytest.mark.req("S3-22")
@pytest.mark.parametrize("layout", ["cache", "classic"])
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_component_is_followed_by_exactly_depth_messages(stage, depth, layout):
    stage.builds(f"component/depth mood = {depth}")
    contents = prompt(4, layout=layout)
    after = contents[contents.index("MOOD") + 1 :]
    assert [text for text in after if text.startswith("H")] == [
        f"H{n}" for n in range(5 - depth, 5)
    ]


@pytest.mark.req("S3-22")
def test_depth_command_without_value_shows_the_depth(stage):
    assert "is placed at ID 1200" in stage.builds("component/depth mood")
    stage.builds("component/depth mood = 3")
    assert "depth 3: 3 messages follow it" in stage.builds("component/depth mood")


@pytest.mark.req("S3-22")
@pytest.mark.parametrize("word", ["normal", "NORMAL", "0"])
def test_depth_command_clears_the_depth(stage, word):
    before = prompt(4)
    stage.builds("component/depth mood = 2", f"component/depth mood = {word}")
    assert prompt(4) == before
    assert component("mood").placement == "ordered"


def moved(text):
    """Return an event in which somebody comes or goes."""
    return replace(said("user", text), is_movement=True)


@pytest.mark.req("S3-22")
def test_speech_depth_ignores_arrivals_and_departures(stage):
    lines = [said("user", "H1"), moved("Pim comes in."), said("user", "H2"), moved("Pim leaves.")]
    stage.builds("component/depth mood = 2")
    assert prompt(lines)[2:-2] == ["H1", "Pim comes in.", "MOOD", "H2", "Pim leaves."]

    told = stage.builds("component/depth mood = 2 speech")
    assert "depth 2: 2 messages of speech follow it" in told
    assert prompt(lines)[2:-2] == ["MOOD", "H1", "Pim comes in.", "H2", "Pim leaves."]
    stage.builds("component/depth mood = 1 SPEECH")
    assert prompt(lines)[2:-2] == ["H1", "Pim comes in.", "MOOD", "H2", "Pim leaves."]
    stage.builds("component/depth mood = 9 speech")
    assert prompt(lines)[2:-2] == ["MOOD", "H1", "Pim comes in.", "H2", "Pim leaves."]

    stage.builds("component/depth mood = 2")
    assert component("mood").depth_counts == "messages"


@pytest.mark.req("S3-22")
def test_depth_of_another_thing_is_refused(stage):
    told = stage.builds("component/depth mood = 2 poses")
    assert "A depth counts `messages` or `speech`" in told
    assert component("mood").placement == "ordered"


@pytest.mark.req("S3-22")
def test_depth_zero_is_after_the_newest_message_inside_the_history(stage):
    told = stage.builds("component/depth mood = bottom")
    assert "after the newest message (bottom)" in told
    assert prompt(2) == ["RULES", "GOALS", "H1", "H2", "MOOD", "FACTS", "EVENT"]


@pytest.mark.parametrize("depth", [5, 99999, 1000000000])
@pytest.mark.parametrize("length", [0, 1, 4])
def test_excessive_depth_is_the_top_of_the_history(stage, depth, length):
    stage.builds(f"component/depth mood = {depth}")
    history = [f"H{n}" for n in range(1, length + 1)]
    assert prompt(length) == ["RULES", "GOALS", "MOOD", *history, "FACTS", "EVENT"]


@pytest.mark.req("S3-23")
def test_order_command_decides_at_equal_depth(stage):
    stage.builds("component/create tide = 1100: TIDE")
    stage.builds("component/depth mood = 1", "component/depth tide = 1")
    assert prompt(2)[2:5] == ["H1", "TIDE", "MOOD"]
    stage.builds("component/order mood = 5")
    assert prompt(2)[2:5] == ["H1", "MOOD", "TIDE"]
    stage.builds("component/order tide = -10")
    assert prompt(2)[2:5] == ["H1", "TIDE", "MOOD"]


@pytest.mark.req("S3-23")
def test_order_command_without_value_shows_the_order(stage):
    assert "order 100" in stage.builds("component/order mood")
    stage.builds("component/order mood = 7")
    assert "order 7" in stage.builds("component/order mood")


def test_order_has_no_effect_between_different_depths(stage):
    stage.builds("component/create tide = 1100: TIDE")
    stage.builds("component/depth mood = 1", "component/depth tide = 2")
    stage.builds("component/order mood = 1", "component/order tide = 900")
    assert prompt(2)[2:6] == ["TIDE", "H1", "MOOD", "H2"]


def test_depths_beyond_the_history_keep_their_order_at_its_top(stage):
    for key, number, depth, order in (("aa", 11, 9, 100), ("bb", 12, 7, 1), ("cc", 13, 9, 50)):
        stage.builds(
            f"component/create {key} = {number}: {key.upper()}",
            f"component/depth {key} = {depth}",
            f"component/order {key} = {order}",
        )
    assert prompt(1)[3:7] == ["CC", "AA", "BB", "H1"]


def test_components_at_two_depths_do_not_displace_each_other(stage):
    for key, number, depth in (("aa", 1301, 3), ("bb", 1302, 1), ("cc", 1303, 3)):
        stage.builds(
            f"component/create {key} = {number}: {key.upper()}", f"component/depth {key} = {depth}"
        )
    assert prompt(4)[3:10] == ["H1", "AA", "CC", "H2", "H3", "BB", "H4"]


def test_setting_a_depth_changes_only_the_history(stage):
    stage.builds("component/create tide = 1100: TIDE", "component/off tide")
    before = prompt(4)
    stage.builds("component/on tide", "component/depth tide = 3")
    after = prompt(4)
    assert [text for text in after if text != "TIDE"] == before
    assert after[: before.index("H1")] == before[: before.index("H1")]


def test_narrower_scope_has_its_own_depth(stage):
    stage.builds(
        "component/create mood@npc:oren = 1200: CROSS",
        "component/depth mood@npc:oren = 1",
        "component/depth mood = 2",
    )
    oren = Scope(kind="npc", ref=str(stage.npc.id))
    assert prompt(2)[2:5] == ["MOOD", "H1", "H2"]
    assert prompt(2, scopes=(GAME, oren))[2:5] == ["H1", "CROSS", "H2"]


@pytest.mark.req("S3-33")
def test_disabled_component_is_not_injected(stage):
    stage.builds("component/depth mood = 2", "component/off mood")
    assert "MOOD" not in prompt(4)


@pytest.mark.req("S3-22", "S3-23")
@pytest.mark.parametrize(
    "typed",
    [
        "component/depth mood = -1",
        "component/depth mood = 2.5",
        "component/depth mood = deep",
        "component/depth mood =",
        "component/depth mood = 4000000000",
        "component/depth nobody = 2",
        "component/depth pending_event = 2",
        "component/order mood = 1.5",
        "component/order mood = first",
        "component/order mood =",
        "component/order nobody = 2",
        "component/order pending_event = 2",
        "component/detph mood = 2",
        "component/ordr mood = 2",
        "component/d/o mood = 2",
    ],
)
def test_invalid_depth_is_answered_in_one_line_and_changes_nothing(stage, typed):
    stage.builds("component/depth mood = 2", "component/order mood = 50")
    before, composed = everything(), prompt(4)
    told = stage.builds(typed).strip()
    assert told
    assert "\n" not in told
    assert everything() == before
    assert prompt(4) == composed


@pytest.mark.req("S3-22", "S3-23")
@pytest.mark.parametrize("typed", ["component/depth mood = 2", "comp/order mood = 1"])
def test_player_cannot_use_the_depth_command(stage, typed):
    before = everything()
    stage.plays(typed)
    assert everything() == before


def test_depth_and_order_survive_dropping_the_caches(stage):
    stage.builds("component/depth mood = 2", "component/order mood = 50")
    forget_everything()
    stored = component("mood")
    assert (stored.injection_depth, stored.injection_order) == (2, 50)
    assert prompt(4)[4] == "MOOD"


def test_next_prompt_of_the_npc_has_the_component(stage):
    stage.builds("component/depth mood = 2")
    report = stage.builds("component/preview/full oren")
    assert "component:mood" in report
    assert "MOOD" in report
