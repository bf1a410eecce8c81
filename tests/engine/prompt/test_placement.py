"""Placement: outside the history by ID, inside it by depth."""

import pytest

from evennia_ai.engine.compose import compose
from evennia_ai.engine.prompt.components import HISTORY_ID
from evennia_ai.engine.prompt.fragments import Claim, Fragment, SharedMessage, make_fragment
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.placement import interleave_fragments, place_messages
from evennia_ai.engine.prompt.tokens import ESTIMATE
from tests.engine.prompt.builders import (
    a_component,
    a_history,
    first_words,
    injected,
    the_inputs,
    the_prompt,
    verdicts_of,
)


@pytest.mark.req("S3-15")
def test_injected_components_are_not_placed_at_their_ids() -> None:
    normal = [a_component(f"id{i}", id=i) for i in (4999, 101, 5001)]
    deep = [injected("deep", 1, id=102, key="deep")]
    prompt = the_prompt([*normal, *deep], history=a_history(2), event="now")
    assert first_words(prompt) == ["id101", "id4999", "m1", "deep", "m2", "id5001", "now"]
    assert [m.injected for m in prompt.messages] == [False, False, False, True, *[False] * 3]


@pytest.mark.req("S3-13")
def test_injected_texts_are_only_in_the_history_block() -> None:
    ordered = [a_component("before", id=1201), a_component("after", id=5201)]
    without = the_prompt(ordered, history=a_history(4), event="now")
    deep = [injected("deep", 2, id=1301), injected("top", 99, id=1302)]
    with_both = the_prompt([*ordered, *deep], history=a_history(4), event="now")
    others = [message.wire() for message in with_both.messages if not message.injected]
    assert others == [message.wire() for message in without.messages]
    assert len(with_both.messages) == len(without.messages) + 2


@pytest.mark.req("S3-16", "S3-17")
def test_depths_are_computed_on_the_history_without_injected_texts() -> None:
    components = [
        injected("four", 4, id=1201),
        injected("two-b", 2, id=1203),
        injected("two-a", 2, id=1202),
    ]
    prompt = the_prompt(components, history=a_history(4))
    assert first_words(prompt) == ["four", "m1", "m2", "two-a", "two-b", "m3", "m4"]


def test_equal_depths_and_orders_are_sorted_by_id_then_key() -> None:
    components = [injected(f"k{i}", 1, id=1300 - i, key=f"k{i}") for i in range(1, 4)]
    prompt = the_prompt(components, history=a_history(1))
    assert first_words(prompt) == ["k3", "k2", "k1", "m1"]


def test_verdicts_distinguish_a_disabled_component_from_an_empty_component() -> None:
    components = [
        a_component("never", key="pending_event", id=6000, enabled=False),
        a_component("mood", id=1201, key="mood", enabled=False),
    ]
    prompt = compose(the_inputs(components, event="now"))
    assert prompt.messages == ()
    assert verdicts_of(prompt, "component:mood") == [("expand", False, "disabled")]


@pytest.mark.req("S3-12")
def test_text_with_the_id_of_the_history_is_placed_before_the_history() -> None:
    own = a_component("head", id=5000, key="conversation_history")
    assert first_words(the_prompt([own], history=a_history(1))) == ["head", "m1"]


def a_fragment(name: str, depth: int, *, order: float = 100, from_oldest: bool = False) -> Fragment:
    claim = Claim(
        origin=f"lore:{name}",
        id=HISTORY_ID,
        key=name,
        role="system",
        depth=depth,
        order=order,
        from_oldest=from_oldest,
    )
    return make_fragment(name, claim, counter=ESTIMATE)


@pytest.mark.req("S3-18", "S3-26")
def test_reverse_depth_is_sorted_like_the_depth_of_the_same_place() -> None:
    fragments = [
        a_fragment("late", 4, order=200),
        a_fragment("early", 0, order=50, from_oldest=True),
        a_fragment("deeper", 9, order=900),
    ]
    messages = interleave_fragments(fragments, History(a_history(4)), first=0)
    assert [message.content.split(" ")[0] for message in messages] == [
        *("deeper", "early", "late"),
        *("m1", "m2", "m3", "m4"),
    ]


def test_shared_message_has_the_revision_of_each_part() -> None:
    components = [
        a_component("tide", id=1201, key="tide", volatile=True, revision=7),
        a_component("fog", id=1202, key="fog", volatile=True, revision=3),
    ]
    (shared,) = the_prompt(components).messages
    assert [(part.origin, part.revision) for part in shared.parts] == [
        ("component:tide", 7),
        ("component:fog", 3),
    ]


def a_fragment_at_the_note(name: str, key: str, *, depth: int = 1) -> Fragment:
    """Return a fragment that shares the message of the author's note."""
    shared = SharedMessage(key="note", id=HISTORY_ID, role="user", block="history", separator="\n")
    claim = Claim(
        origin=f"lore:{name}", id=HISTORY_ID, key=key, role="system", depth=depth, shared=shared
    )
    return make_fragment(name, claim, counter=ESTIMATE)


def test_fragments_share_a_message_in_the_history_in_the_order_of_their_keys() -> None:
    fragments = [
        a_fragment_at_the_note("below", "~0"),
        a_fragment_at_the_note("above", "!0"),
        a_fragment("alone", 1),
    ]
    (kept,) = a_history(1)
    alone, shared, last = place_messages(fragments, History([kept]), first=0)
    assert (alone.content, shared.content, last.content) == ("alone", "above\nbelow", kept.content)
    assert (shared.role, shared.block, shared.injected) == ("user", "history", True)
    assert [(p.origin, shared.content[p.start : p.end]) for p in shared.parts] == [
        ("lore:above", "above"),
        ("lore:below", "below"),
    ]


def test_shared_message_with_a_great_depth_is_at_the_top_of_the_history() -> None:
    history = History(a_history(4))
    messages = place_messages([a_fragment_at_the_note("note", "~0", depth=99)], history, first=2)
    assert [message.content.split(" ")[0] for message in messages] == ["note", "m3", "m4"]


def test_text_next_to_a_component_is_placed_at_its_id() -> None:
    def beside(key: str, name: str) -> Fragment:
        shared = SharedMessage(key=key, id=1201, role="system", block="ordered", separator="\n")
        claim = Claim(origin=f"lore:{name}", id=1201, key=name, role="system", shared=shared)
        return make_fragment(name, claim, counter=ESTIMATE)

    own = Claim(origin="component:sea", id=1201, key="sea", role="system")
    fragments = [
        beside("~sea", "after"),
        beside("!sea", "before2"),
        make_fragment("sea", own, counter=ESTIMATE),
        beside("!sea", "before1"),
    ]
    assert [message.content for message in place_messages(fragments, History(), first=0)] == [
        *("before1\nbefore2", "sea", "after")
    ]
