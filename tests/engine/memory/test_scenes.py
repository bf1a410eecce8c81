"""Scenes: the words that are stored with a new memory."""

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


def test_scene_of_a_memory_is_the_run_of_messages_with_most_shared_words() -> None:
    found = scene("Anna lost a lantern, and Ben pays.")
    assert found == {"storm", "dark", "way", "home", "shall"}


def test_scene_of_a_memory_has_the_place_and_the_people() -> None:
    assert {"quay", "hedda"} <= scene("Anna lost a lantern.", there=("The quay", "Hedda"))


def test_scene_of_a_memory_leaves_out_the_memorys_own_words() -> None:
    assert "lanter" not in scene("Anna lost a lantern.")


def test_scene_of_a_memory_ignores_tools_and_inserted_messages() -> None:
    call = ToolCall(id="1", name="search", arguments='{"query": "treasure"}')
    lines = [
        Message(role="assistant", content="treasure", tool_calls=(call,)),
        Message(role="tool", content="the treasure of the pirates", tool_call_id="1"),
        Message(role="user", content="treasure map", counted=False, stays=True, of="dynamic"),
        said("user", "Where is it?", name="Anna"),
    ]
    assert scene("The treasure is at the quay.", *lines) == {"anna"}


def test_scene_of_a_memory_has_a_limited_number_of_words() -> None:
    long = said("user", " ".join(f"word{i}" for i in range(100)), name="Anna")
    assert len(scene("It rains.", long)) == MOST_WORDS


def test_scene_of_a_memory_is_empty_without_messages_and_names() -> None:
    assert scene_of("It rains.", [], there=()) == ""
