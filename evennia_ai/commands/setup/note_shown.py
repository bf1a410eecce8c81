"""Notes as the command `note` shows them: where each stands and how often."""

from collections.abc import Iterator, Sequence
from typing import Final

from evennia_ai.engine.prompt.components import DEFAULT_ORDER, MAX_DEPTH, depth_in_words
from evennia_ai.engine.prompt.tokens import ESTIMATE
from evennia_ai.engine.text.columns import WIDTH, clip_text, escape_controls, first_line, pad_text
from evennia_ai.npc.senses.presence import NPC
from evennia_ai.store.authored.notes import NOTE, StoredNote

_KEY_COLUMNS: Final = 16


def labelled(npc: NPC, key: str) -> str:
    """A note as the command takes it: the NPC's name, with the key where it is not `note`."""
    return str(npc.key) if key == NOTE else f"{npc.key}/{key}"


def in_words(note: StoredNote) -> str:
    """Where a note stands and how often, in words."""
    tokens = ESTIMATE.count(note.content)
    order = "" if note.order == DEFAULT_ORDER else f", order {note.order}"
    off = "" if note.enabled else "off, "
    return (
        f"note {_place(note)}{order}, role {note.role}, {off}{_interval(note)},"
        f" about {tokens} tokens, revision {note.revision}."
    )


def listed(npc: NPC, notes: Sequence[StoredNote]) -> Iterator[str]:
    """All notes of an NPC, a line each; deep ones first, as they stand in the prompt."""
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
    """A depth by the words that are typed, in few columns."""
    if note.place:
        return "beside"
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
        return "never due"
    if note.mode == "tail" and not note.place:
        messages = "message" if note.every == 1 else f"{note.every} messages"
        return f"said again after every {messages}"
    return "always due" if note.every == 1 else f"due once every {note.every} messages"
