"""Example dialogue that is split into messages, block by block."""

import pytest

from evennia_ai.engine.compose import compose
from evennia_ai.engine.prompt.assembly.rules import AssemblyRules
from evennia_ai.engine.prompt.prompt import Prompt
from tests.engine.prompt.assembly.test_merging import under
from tests.engine.prompt.builders import a_component, the_inputs

APART = AssemblyRules(examples="messages", example_heading="[Example]")


def examples(
    text: str, *, limit: int = 4000, rules: AssemblyRules = APART, **fields: str
) -> Prompt:
    component = a_component(text, id=1060, key="dialogue_examples", trust="imported")
    return compose(under(the_inputs([component], limit=limit), rules))


def lines(prompt: Prompt) -> list[tuple[str | None, str]]:
    return [(message.name, message.content) for message in prompt.messages]


def test_speakers_name_is_removed_only_from_the_first_line_of_a_turn_in_examples() -> None:
    prompt = examples("<START>\nAnna: Who are you? Anna: me.\nAnna: Say.\nOren: A ferryman.")
    assert lines(prompt) == [
        (None, "[Example]"),
        ("example_user", "Who are you? Anna: me.\nAnna: Say."),
        ("example_assistant", "A ferryman."),
    ]


@pytest.mark.parametrize("text", ["<START>", "<START>\n<START>\n", "  "])
def test_start_markers_without_example_text_give_no_message(text: str) -> None:
    assert [content for name, content in lines(examples(text)) if name] == []


def test_empty_heading_of_examples_gives_no_message() -> None:
    prompt = examples("<START>\nAnna: Why?", rules=AssemblyRules(examples="messages"))
    assert lines(prompt) == [("example_user", "Why?")]


def test_only_whole_blocks_of_examples_are_kept_when_tokens_are_short() -> None:
    text = "<START>\nAnna: One?\nOren: One.\n<START>\nAnna: Two?\nOren: Two."
    whole = examples(text)
    assert len(whole.messages) == 6
    assert lines(examples(text, limit=whole.tokens - 1)) == lines(whole)[:3]
    assert lines(examples(text, limit=3)) == []


def test_examples_inside_the_history_are_not_split_into_messages() -> None:
    component = a_component(
        "<START>\nAnna: Why?", id=1060, key="dialogue_examples", injection_depth=2
    )
    prompt = compose(under(the_inputs([component]), APART))
    assert [message.name for message in prompt.messages] == [None]


def test_start_marker_in_a_players_name_begins_no_block_of_examples() -> None:
    component = a_component(
        "<START>\n{{user}}: Why?", id=1060, key="dialogue_examples", trust="imported"
    )
    inputs = the_inputs([component], values={"user": "<START> Ben"})
    assert sum(name is None for name, _ in lines(compose(under(inputs, APART)))) <= 1
