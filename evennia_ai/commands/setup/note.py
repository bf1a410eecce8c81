"""The command `note`: the author's note of an NPC."""

from collections.abc import Sequence
from typing import Any

from evennia_ai.commands.base import BUILDER_LOCK, CommandError, StrictCommand, alike
from evennia_ai.commands.naming import npc_named, whole_number
from evennia_ai.game.senses.presence import NPC
from evennia_ai.prompt.components import MAX_DEPTH
from evennia_ai.prompt.messages import TEXT_ROLES
from evennia_ai.prompt.notes import NOTE_MODES
from evennia_ai.prompt.tokens import ESTIMATE
from evennia_ai.store.authored import notes as store
from evennia_ai.store.authored.notes import StoredNote

POSITION = 0  # the note this command writes; others come from elsewhere and are shown


class CmdNote(StrictCommand):
    """
    Show or set the author's note of an NPC

    Usage:
      note <npc>
      note <npc> = <text>
      note/<switch> <npc> = <value>
      note/clear <npc>

    Switches:
      depth - <n>: with n messages after it; 0 is after the newest one
      every - <n>: only at every n-th message said to the NPC; 1 is always,
              0 is never
      role  - <system | user | assistant>: as whom the note speaks
      mode  - <floating | anchored | tail>: whether it moves, see below
      clear - remove the NPC's notes

    Examples:
      note oren
      note oren = Oren has just heard that the ferry is lost.
      note/depth oren = 2
      note/every oren = 3
      note/mode oren = tail
      note/clear oren

    A note is a short text that stays near the end of what an NPC is told: what
    it has in mind, what the scene should come to. It stands 4 messages before
    the newest unless you say otherwise, and never outside the conversation.

    A floating note moves on with every message. An anchored one keeps its
    place until 16 more messages follow it than its depth says, and a prompt
    cache keeps what stands before and behind it. A note of the mode tail is
    said behind the newest message and stays there; it is said again after as
    many messages as /every says, and when it was cut away. Its depth does not
    count, and what was said is not taken back by clearing the note.
    """

    key = "note"
    locks = BUILDER_LOCK.format(key="note")
    help_category = "Building"
    auto_help = True
    verbs = {
        "": "look_or_write",
        **alike("depth every role mode clear"),
    }

    def look_or_write(self) -> None:
        npc = npc_named(self.caller, self.wanted("note <npc> [= <text>]"))
        if self.rhs is None:
            self._look(npc)
            return
        if not self.rhs:
            raise CommandError(
                f"There is no text behind '='; nothing was changed. note/clear {self.lhs} removes"
                " the note."
            )
        self._write(npc, content=self.rhs)

    def depth(self) -> None:
        self._set_number("depth", what="depth")

    def every(self) -> None:
        self._set_number("every", what="interval")

    def role(self) -> None:
        self._set_word("role", TEXT_ROLES)

    def mode(self) -> None:
        self._set_word("mode", NOTE_MODES)

    def clear(self) -> None:
        if self.rhs is not None:
            raise CommandError("Usage: note/clear <npc>, without '='. Nothing was changed.")
        npc = npc_named(self.caller, self.wanted("note/clear <npc>"))
        removed = store.clear_notes(npc.ai.ref, by=self.typed_by)
        self.say(f"{npc.key} has no note any more." if removed else f"{npc.key} had no note.")

    def _set_number(self, field: str, *, what: str) -> None:
        name, value = self.both(f"note/{field} <npc> = <n>")
        self._rewrite(npc_named(self.caller, name), **{field: whole_number(value, what=what)})

    def _set_word(self, field: str, known: Sequence[str]) -> None:
        name, value = self.both(f"note/{field} <npc> = <{' | '.join(known)}>")
        if value.lower() not in known:
            *others, last = known
            raise CommandError(
                f"'{value}' is no {field} of a note: it is {', '.join(others)} or {last}."
                " Nothing was changed."
            )
        self._rewrite(npc_named(self.caller, name), **{field: value.lower()})

    def _look(self, npc: NPC) -> None:
        notes = store.notes_for(npc.ai.ref)
        if not notes:
            self.say(f"{npc.key} has no note; write one with: note {npc.key} = <text>")
            return
        lines = []
        for note in notes:
            lines += [f"{npc.key}: {in_words(note)}", note.content]
        self.show(lines)

    def _rewrite(self, npc: NPC, **fields: Any) -> None:
        """Change the note there is; one that is not there is not made by setting its depth."""
        if not any(note.position == POSITION for note in store.notes_for(npc.ai.ref)):
            raise CommandError(
                f"{npc.key} has no note yet; write one first: note {npc.key} = <text>"
            )
        self._write(npc, **fields)

    def _write(self, npc: NPC, **fields: Any) -> None:
        note = store.set_note(npc.ai.ref, POSITION, by=self.typed_by, **fields)
        self.say(f"{npc.key}: {in_words(note)}")


def in_words(note: StoredNote) -> str:
    """Where a note stands and how often, in words."""
    tokens = ESTIMATE.count(note.content)
    return (
        f"note {_place(note)}, role {note.role}, {_interval(note)},"
        f" about {tokens} tokens, revision {note.revision}."
    )


def _place(note: StoredNote) -> str:
    if note.mode == "tail":
        return "of the mode tail (it stays where it was said)"
    anchored = ", anchored" if note.mode == "anchored" else ""
    if note.depth == MAX_DEPTH:
        return f"at the top of the history{anchored}"
    follow = "1 message follows" if note.depth == 1 else f"{note.depth} messages follow"
    return f"at depth {note.depth} ({follow} it){anchored}"


def _interval(note: StoredNote) -> str:
    if note.every == 0:
        return "never due"
    if note.mode == "tail":
        messages = "message" if note.every == 1 else f"{note.every} messages"
        return f"said again after every {messages}"
    return "always due" if note.every == 1 else f"due once every {note.every} messages"
