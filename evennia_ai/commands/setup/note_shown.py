"""Notes as the command `note` shows them: their place, how often they are used, their text."""

from collections.abc import Iterator, Sequence
from typing import Final

from evennia_ai.engine.prompt.components import DEFAULT_ORDER, MAX_DEPTH, depth_in_words
from evennia_ai.engine.prompt.tokens import ESTIMATE
from evennia_ai.engine.text.columns import WIDTH, clip_text, escape_controls, first_line, pad_text
from evennia_ai.npc.senses.presence import NPC
from evennia_ai.store.authored.notes import NOTE, StoredNote

_KEY_COLUMNS: Final = 16


def labelled(npc: NPC, key: str) -> str:
    """Return a note as the command takes it: the NPC's name, and the key unless it is `note`."""
    return str(npc.key) if key == NOTE else f"{npc.key}/{key}"


def in_words(note: StoredNote) -> str:
    """Describe in words where a note is placed and how often it is used."""
    tokens = ESTIMATE.count(note.content)
    order = "" if note.order == DEFAULT_ORDER else f", order {note.order}"
    off = "" if note.enabled else "off, "
    return (
        f"note {_place(note)}{order}, role {note.role}, {off}{_interval(note)},"
        f" about {tokens} tokens, revision {note.revision}."
    )


def list_notes(npc: NPC, notes: Sequence[StoredNote]) -> Iterator[str]:
    """Yield all notes of an NPC, one line each, in the order of the prompt."""
    yield f"Notes of {npc.key}; note {npc.key}/<key> shows one:"
    columns = f"{'depth':>6} {'every':>5} {'role':9} {'mode':8} tokens text"
    yield f"{pad_text('key', _KEY_COLUMNS)} on  {columns}"
    yield "-" * WIDTH
    for note in sorted(notes, key=lambda one: (-one.depth, one.order, one.key)):
        row = (
            f"{pad_text(note.key, _KEY_COLUMNS)} {'on' if note.enabled else 'off':3}"
            f" {_depth(note):>6} {note.every:5} {note.role:9} {note.mode:8}"
            f" {ESTIMATE.count(note.content):6} {first_line(note.content)}"
        )
        yield clip_text(escape_controls(row), WIDTH)


def _depth(note: StoredNote) -> str:
    """Return a depth in the words that builders type, short enough for a column."""
    if note.place:
        return "placed"
    return "-" if note.mode == "tail" else depth_in_words(note.depth)


def _place(note: StoredNote) -> str:
    if note.place:
        side, _, key = note.place.partition(" ")
        return f"right {side} the component {key}"
    if note.mode == "tail":
        return "of the mode tail (it stays where it was said)"
    anchored = ", anchored" if note.mode == "anchored" else ""
    if note.depth == MAX_DEPTH:
        return f"at the top of the history{anchored}"
    if note.depth == 0:
        return f"at the bottom (after the newest message){anchored}"
    follow = "1 message follows" if note.depth == 1 else f"{note.depth} messages follow"
    return f"at depth {note.depth} ({follow} it){anchored}"


def _interval(note: StoredNote) -> str:
    if note.every == 0:
        return "never used"
    if note.mode == "tail" and not note.place:
        messages = "message" if note.every == 1 else f"{note.every} messages"
        return f"said again after every {messages}"
    return "always used" if note.every == 1 else f"used once every {note.every} messages"
