"""Blocks of dialogue examples: the last ones are left out first, each as a whole."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evennia_ai.engine.compose import compose
from evennia_ai.engine.inputs import ComposeRules, Inputs
from evennia_ai.engine.prompt.blocks import DynamicBlock
from evennia_ai.engine.prompt.budget import BudgetRules
from evennia_ai.engine.prompt.components import MAX_DEPTH, PromptComponent
from evennia_ai.engine.prompt.expansion import ComponentSet
from evennia_ai.engine.prompt.fragments import (
    Claim,
    Fragment,
    Tier,
    block_breaks,
    leading_blocks,
    make_fragment,
)
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import Message, said
from evennia_ai.engine.prompt.prompt import Prompt
from evennia_ai.engine.prompt.registry import with_statics
from evennia_ai.engine.prompt.tokens import TokenCounter, ratio_counter
from tests.engine.prompt.builders import a_component, texts, verdicts_of
from tests.properties import up_to

# One token for each character and four for each message. Every prompt costs 3.
LETTERS = ratio_counter(1)
ORIGIN = "component:dialogue_examples"
# the first one, two and three blocks have 11, 23 and 37 characters
THREE = "<START>\none\n<START>\ntwo\n<START>\nthree"
quick = settings(max_examples=up_to(200), deadline=None)


def examples(text: str, **fields: Any) -> PromptComponent:
    return a_component(text, id=1060, key="dialogue_examples", **fields)


def inputs_of(
    *components: PromptComponent,
    limit: int,
    history: list[Message] | None = None,
    counter: TokenCounter = LETTERS,
    values: dict[str, str] | None = None,
    **more: Any,
) -> Inputs:
    budget = BudgetRules(limit_tokens=limit)
    return Inputs(
        components=ComponentSet(with_statics(components)),
        rules=ComposeRules(budget=budget, counter=counter),
        history=History(history or []),
        values=values or {},
        **more,
    )


def the_prompt(*components: PromptComponent, **given: Any) -> Prompt:
    return compose(inputs_of(*components, **given))


def a_fragment(text: str, *, counter: TokenCounter = LETTERS) -> Fragment:
    claim = Claim(origin=ORIGIN, id=1060, key="dialogue_examples", role="system", tier=Tier(4))
    return make_fragment(text, claim, counter=counter, breaks=block_breaks(text))


def blocks_of(text: str) -> list[str]:
    """Return the blocks of example dialogue in a text, each as written."""
    edges = [0, *block_breaks(text), len(text)]
    return [text[start:end] for start, end in pairwise(edges)]


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("Ann: Hi.", ["Ann: Hi."]),
        ("<START>\na\n<START>\nb", ["<START>\na\n", "<START>\nb"]),
        ("<start>a<Start>b", ["<start>a", "<Start>b"]),
        ("Before.\n<START>\na", ["Before.\n", "<START>\na"]),
        ("\n <START>\na", ["\n <START>\na"]),
        ("<START>\n<START>\na\n<START>", ["<START>\n<START>\na\n<START>"]),
        ("<\u017ftart>a<\u017fTART>b", ["<\u017ftart>a<\u017fTART>b"]),
        ("", [""]),
        ("<START>", ["<START>"]),
    ],
)
def test_blocks_of_examples_begin_at_start_markers_and_are_not_empty(
    text: str, blocks: list[str]
) -> None:
    assert blocks_of(text) == blocks


def test_first_blocks_of_examples_that_fit_are_kept_whole() -> None:
    prompt = the_prompt(examples(THREE), limit=3 + 4 + 23)
    assert texts(prompt) == ["<START>\none\n<START>\ntwo"]
    assert verdicts_of(prompt, ORIGIN)[0] == (
        "budget",
        True,
        "kept 2 of 3 blocks, the rest gives way to the history: 3 need 41 tokens, 27 were left",
    )


def test_examples_are_sent_as_written_in_the_card_when_all_fit() -> None:
    prompt = the_prompt(examples(THREE + "\n"), limit=3 + 4 + 38)
    assert texts(prompt) == [THREE + "\n"]
    assert verdicts_of(prompt, ORIGIN)[0] == ("budget", True, "fits")


def test_examples_are_left_out_when_their_first_block_does_not_fit() -> None:
    prompt = the_prompt(examples(THREE), limit=3 + 4 + 10)
    assert texts(prompt) == []
    assert verdicts_of(prompt, ORIGIN) == [
        (
            "budget",
            False,
            "gives way to the history: the first of 3 blocks needs 15 tokens, 14 were left",
        )
    ]


def test_verdict_on_kept_blocks_of_examples_lists_unknown_macro_names() -> None:
    prompt = the_prompt(examples(THREE.replace("one", "{{moood}}")), limit=3 + 4 + 20)
    assert verdicts_of(prompt, ORIGIN)[0][2].endswith("; left as written: moood")


def test_only_kept_blocks_of_examples_count_against_the_budget() -> None:
    prompt = the_prompt(examples(THREE), limit=50, history=[said("user", "m" * 10)])
    assert dict(prompt.by_origin) == {ORIGIN: 4 + 23, "history": 14, "framing": 3}
    assert prompt.tokens == sum(prompt.by_origin.values()) <= 50


def test_message_part_of_kept_blocks_of_examples_spans_the_sent_text() -> None:
    (message,) = the_prompt(examples(THREE, revision=7), limit=3 + 4 + 23).messages
    (part,) = message.parts
    assert (part.origin, part.start, part.end, part.revision) == (ORIGIN, 0, 23, 7)


def test_dialogue_examples_take_no_tokens_from_history_messages() -> None:
    history = [said("user", f"m{i:05}") for i in range(1, 12)]
    prompt = the_prompt(examples(THREE), limit=103, history=history)
    assert prompt.cut == 5
    assert all(message.block == "history" for message in prompt.messages)
    assert verdicts_of(prompt, ORIGIN)[0][2].endswith("needs 15 tokens, 0 were left")


def test_one_more_block_of_examples_is_left_out_for_each_further_history_message() -> None:
    kept = []
    for said_so_far in range(5):
        history = [said("user", f"m{i:05}") for i in range(said_so_far)]
        prompt = the_prompt(examples(THREE), limit=3 + 41 + 10, history=history)
        kept.append(sum(message.content.count("<START>") for message in prompt.messages))
    assert kept == [3, 3, 2, 1, 0]


def test_blocks_of_examples_are_left_out_in_the_same_way_inside_and_before_the_history() -> None:
    contained = examples(THREE, role="user", placement="history", injection_depth=MAX_DEPTH)
    history = [said("user", "m00001"), said("assistant", "m00002")]
    prompt = the_prompt(contained, limit=3 + 20 + 4 + 23, history=history)
    assert [(m.role, m.injected, m.content) for m in prompt.messages] == [
        ("user", True, "<START>\none\n<START>\ntwo"),
        ("user", False, "m00001"),
        ("assistant", False, "m00002"),
    ]


def test_examples_pay_for_their_message_only_when_no_other_text_shares_it() -> None:
    shared = examples(THREE, volatile=True)
    alone = the_prompt(shared, limit=3 + 4 + 2 + 23 - 1)
    assert texts(alone) == ["<START>\none"]
    assert alone.tokens == sum(alone.by_origin.values()) == 20
    facts = (DynamicBlock(key="time", text="noon"),)
    joined = the_prompt(shared, limit=3 + 4 + 6 + 2 + 11, blocks=facts)
    assert texts(joined) == ["<START>\none\n\nnoon"]
    (message,) = joined.messages
    assert [message.content[p.start : p.end] for p in message.parts] == ["<START>\none", "noon"]


def test_required_examples_are_never_kept_in_part() -> None:
    prompt = the_prompt(examples(THREE, required=True), limit=3 + 41)
    assert texts(prompt) == [THREE]


def test_components_other_than_examples_are_never_kept_in_part() -> None:
    prompt = the_prompt(a_component(THREE, key="char_description"), limit=3 + 4 + 23)
    assert texts(prompt) == []


def test_start_marker_in_a_players_name_begins_no_block() -> None:
    text = "<START>\n{{user}}: Good morning.\n<START>\nTwo."
    prompt = the_prompt(examples(text, role="user"), limit=50, values={"user": "Ann <start>"})
    assert texts(prompt) == []


def test_unused_value_with_a_start_marker_does_not_change_the_blocks() -> None:
    assert texts(the_prompt(examples(THREE), limit=18, values={"user": "<START>"})) == [
        "<START>\none"
    ]


def test_kept_blocks_of_examples_are_reused_when_composed_again() -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text)

    given = inputs_of(
        examples(THREE), limit=3 + 4 + 23, counter=TokenCounter("counting", "1", count)
    )
    first = compose(given)
    counted.clear()
    second = compose(given)
    assert counted == []
    assert second.messages[0] is first.messages[0]
    assert second.verdicts == first.verdicts


TEXTS = st.lists(
    st.sampled_from(["<START>", "<start>\n", "\n", "Ann: Hi.", "Oren: Aye.\n", "\u00e9", " "]),
    max_size=12,
).map("".join)


@quick
@given(text=TEXTS)
def test_joined_blocks_of_examples_equal_the_whole_text(text: str) -> None:
    blocks = blocks_of(text)
    assert "".join(blocks) == text
    assert all(block.lower().startswith("<start>") for block in blocks[1:])
    assert all(block.lower().replace("<start>", "").strip() for block in blocks[1:])


@quick
@given(text=TEXTS, room=st.integers(-5, 120))
def test_kept_blocks_of_examples_are_the_longest_run_that_fits(text: str, room: int) -> None:
    blocks = blocks_of(text)
    whole = [text] if LETTERS.of_message(text) <= room else []
    shorter = ["".join(blocks[:count]).rstrip() for count in range(len(blocks) - 1, 0, -1)]
    fitting = [*whole, *(t for t in shorter if LETTERS.of_message(t) <= room), None]
    kept = leading_blocks(a_fragment(text), room, counter=LETTERS)
    assert (kept and kept.message.content) == fitting[0]


# A counter that gives some longer texts fewer tokens than shorter ones.
UNSTEADY = TokenCounter("unsteady", "1", lambda text: len(text) * 7 % 41)


@quick
@given(text=TEXTS, room=st.integers(0, 60), more=st.integers(0, 60))
@pytest.mark.parametrize("counter", [LETTERS, UNSTEADY], ids=["letters", "unsteady"])
def test_more_room_never_keeps_fewer_blocks_of_examples(
    counter: TokenCounter, text: str, room: int, more: int
) -> None:
    fragment = a_fragment(text, counter=counter)
    less = leading_blocks(fragment, room, counter=counter)
    greater = leading_blocks(fragment, room + more, counter=counter)
    assert less is None or less.tokens <= room
    assert (less.blocks if less else 0) <= (greater.blocks if greater else 0)


@quick
@given(text=TEXTS, length=st.integers(0, 4), limit=st.integers(3, 160))
def test_no_example_displaces_a_history_message_at_any_token_limit(
    text: str, length: int, limit: int
) -> None:
    history = [said("user", f"m{i:05}") for i in range(length)]
    prompt = the_prompt(examples(text), limit=limit, history=history)
    assert prompt.cut == the_prompt(limit=limit, history=history).cut
    sent = LETTERS.per_prompt + sum(message.tokens(LETTERS) for message in prompt.messages)
    assert sent == prompt.tokens == sum(prompt.by_origin.values()) <= limit
