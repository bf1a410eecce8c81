"""Scenes: the words around what was learnt."""

from evennia_ai.engine.memory.scenes import MOST_WORDS, scene_of
from evennia_ai.engine.prompt.messages import Message, ToolCall, said

LINES = [
    said("user", "Good evening!", name="Ben"),
    said("assistant", "Sit down."),
    said("user", "I lost my lantern in the storm.", name="Anna"),
    said("assistant", "Then it is a dark way home."),
    said("user", "Ben shall pay for it.", name="Anna"),
    said("user", "The soup is salty.", name="Hedda"),
]


def scene(text: str, *lines: Message, there: tuple[str, ...] = ()) -> set[str]:
    return {*scene_of(text, lines or LINES, there=there).split()}


def test_the_lines_in_a_row_that_have_most_of_its_words_are_its_scene() -> None:
    found = scene("Anna lost a lantern, and Ben pays.")
    assert found == {"storm", "dark", "way", "home", "shall"}


def test_the_place_and_those_there_belong_to_it() -> None:
    assert {"quay", "hedda"} <= scene("Anna lost a lantern.", there=("The quay", "Hedda"))


def test_its_own_words_are_not_said_twice() -> None:
    assert "lanter" not in scene("Anna lost a lantern.")


def test_what_tools_told_and_what_a_prompt_was_given_was_said_by_nobody() -> None:
    call = ToolCall(id="1", name="search", arguments='{"query": "treasure"}')
    lines = [
        Message(role="assistant", content="treasure", tool_calls=(call,)),
        Message(role="tool", content="the treasure of the pirates", tool_call_id="1"),
        Message(role="user", content="treasure map", counted=False, stays=True, of="dynamic"),
        said("user", "Where is it?", name="Anna"),
    ]
    assert scene("The treasure is at the quay.", *lines) == {"anna"}


def test_of_many_words_some_are_kept() -> None:
    long = said("user", " ".join(f"word{i}" for i in range(100)), name="Anna")
    assert len(scene("It rains.", long)) == MOST_WORDS


def test_nothing_was_said_nowhere() -> None:
    assert scene_of("It rains.", [], there=()) == ""
