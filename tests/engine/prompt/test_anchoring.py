"""Anchored notes keep their place until many messages follow, or an edit or a cut moves them."""

from itertools import pairwise

from evennia_ai.engine.prompt.notes import AuthorsNote
from evennia_ai.engine.prompt.placement import MOST_DRIFT
from evennia_ai.engine.prompt.prompt import Prompt
from tests.engine.lorebook.builders import a_book, an_entry
from tests.engine.prompt.builders import a_component, texts, verdicts_of
from tests.engine.prompt.chats import Chat, index_of, shared

NOTE = AuthorsNote(content="A note.", depth=4, mode="anchored")
RULES = a_component("Rules.", id=1, key="rules")


def followers(prompt: Prompt) -> int:
    """Return how many messages of the history follow the note."""
    at = index_of(prompt, NOTE.content)
    return sum(message.block == "history" for message in prompt.messages[at + 1 :])


def test_anchored_note_keeps_its_place_while_the_history_grows() -> None:
    chat = Chat([RULES], notes=[NOTE])
    chat.say(10)
    places = {index_of(chat.say(1), NOTE.content) for _ in range(4)}
    assert len(places) == 1


def test_anchored_note_returns_to_its_depth_after_too_many_messages() -> None:
    chat = Chat(notes=[NOTE])
    chat.say(3)
    follow = [followers(chat.say(1)) for _ in range(20)]
    assert max(follow) == NOTE.depth + MOST_DRIFT - 2
    assert [one for before, one in pairwise(follow) if one < before] == [4, 4]


def test_anchored_note_keeps_the_cached_prefix_while_it_does_not_move() -> None:
    chat = Chat([RULES], notes=[NOTE])
    older = chat.say(12)
    newer = chat.say(1)
    assert older.anchors == newer.anchors
    assert shared(older, newer) == len(older.messages)


def test_anchored_note_returns_to_its_depth_when_edited() -> None:
    note = AuthorsNote(content="{{mood}}", depth=2, mode="anchored")
    chat = Chat(notes=[note])
    chat.say(3, values={"mood": "Calm."})
    kept = chat.say(1, values={"mood": "Calm."})
    moved = chat.say(1, values={"mood": "Angry."})
    assert texts(kept).index("Calm.") < len(texts(kept)) - 4
    assert texts(moved).index("Angry.") == len(texts(moved)) - 4


def test_anchored_note_returns_to_its_depth_when_the_messages_around_it_leave_the_history() -> None:
    note = AuthorsNote(content="A note.", depth=4, mode="anchored")
    chat = Chat(notes=[note], limit=120)
    prompts = [chat.turn("a few more words of talk") for _ in range(30)]
    assert any(prompt.cut for prompt in prompts)
    for prompt in prompts:
        assert prompt.cut <= prompt.anchors["note:0"].at
        assert texts(prompt).count(note.content) == 1


def test_anchor_from_another_history_is_ignored() -> None:
    chat = Chat(notes=[NOTE])
    before = chat.say(30).anchors
    fresh = Chat(notes=[NOTE])
    fresh.say(2)
    assert before["note:0"].at > len(fresh.history)
    assert fresh.turn("three", anchors=before).anchors["note:0"].at == 0


def test_floating_note_has_no_anchor() -> None:
    prompt = Chat(notes=[AuthorsNote(content="A note.")]).say(2)
    assert prompt.anchors == {}


def test_verdict_says_that_the_note_is_anchored() -> None:
    prompt = Chat(notes=[NOTE]).say(4)
    assert verdicts_of(prompt, "note:0")[-1] == (
        *("place", True),
        "in the history, anchored: 6 messages follow",
    )


def test_lore_around_an_anchored_note_has_the_place_of_the_note() -> None:
    book = a_book(an_entry("Above.", keys=["m7"], extensions={"position": 2}))
    chat = Chat(notes=[NOTE], books=(book,))
    chat.say(7)
    woken = chat.say(1)
    assert texts(woken)[-6] == "Above.\nA note."


def test_anchored_note_returns_to_its_depth_after_old_messages_leave_the_history() -> None:
    chat = Chat([RULES], notes=[NOTE], limit=300)
    prompt = chat.say(1)
    while not prompt.cut:
        prompt = chat.turn("a few words")
    assert followers(prompt) == NOTE.depth
