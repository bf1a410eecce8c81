"""The command `note`: the author's note of an NPC."""

from typing import Any

from evennia_ai.commands.naming import npc_named, whole_number
from evennia_ai.commands.strict import BUILDER_LOCK, CommandError, StrictCommand
from evennia_ai.prompt.messages import TEXT_ROLES
from evennia_ai.prompt.tokens import ESTIMATE
from evennia_ai.store import notes as store
from evennia_ai.store.notes import StoredNote

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
      clear - remove the NPC's notes

    Examples:
      note oren
      note oren = Oren has just heard that the ferry is lost.
      note/depth oren = 2
      note/every oren = 3
      note/clear oren

    A note is a short text that stays near the end of what an NPC is told: what
    it has in mind, what the scene should come to. It stands 4 messages before
    the newest unless you say otherwise, and never outside the conversation.
    """

    key = "note"
    locks = BUILDER_LOCK.format(key="note")
    help_category = "Building"
    auto_help = True
    verbs = {
        "": "look_or_write",
        "depth": "depth",
        "every": "every",
        "role": "role",
        "clear": "clear",
    }

    def look_or_write(self) -> None:
        """Show the notes of an NPC, or set its note."""
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
        """Set how many messages follow the note."""
        name, value = self.both("note/depth <npc> = <n>")
        self._rewrite(npc_named(self.caller, name), depth=whole_number(value, what="depth"))

    def every(self) -> None:
        """Set how often the note is due."""
        name, value = self.both("note/every <npc> = <n>")
        self._rewrite(npc_named(self.caller, name), every=whole_number(value, what="interval"))

    def role(self) -> None:
        """Set as whom the note speaks."""
        name, value = self.both("note/role <npc> = <system | user | assistant>")
        if value.lower() not in TEXT_ROLES:
            raise CommandError(
                f"'{value}' is no role of a note: it is system, user or assistant."
                " Nothing was changed."
            )
        self._rewrite(npc_named(self.caller, name), role=value.lower())

    def clear(self) -> None:
        """Remove an NPC's notes."""
        if self.rhs is not None:
            raise CommandError("Usage: note/clear <npc>, without '='. Nothing was changed.")
        npc = npc_named(self.caller, self.wanted("note/clear <npc>"))
        removed = store.clear_notes(npc.ai.ref, by=self.typed_by)
        self.say(f"{npc.key} has no note any more." if removed else f"{npc.key} had no note.")

    def _look(self, npc: Any) -> None:
        notes = store.notes_for(npc.ai.ref)
        if not notes:
            self.say(f"{npc.key} has no note; write one with: note {npc.key} = <text>")
            return
        lines = []
        for note in notes:
            lines += [f"{npc.key}: {in_words(note)}", note.content]
        self.show("\n".join(lines))

    def _rewrite(self, npc: Any, **fields: Any) -> None:
        """Change the note there is; one that is not there is not made by setting its depth."""
        if not any(note.position == POSITION for note in store.notes_for(npc.ai.ref)):
            raise CommandError(
                f"{npc.key} has no note yet; write one first: note {npc.key} = <text>"
            )
        self._write(npc, **fields)

    def _write(self, npc: Any, **fields: Any) -> None:
        note = store.set_note(npc.ai.ref, POSITION, by=self.typed_by, **fields)
        self.say(f"{npc.key}: {in_words(note)}")


def in_words(note: StoredNote) -> str:
    """Where a note stands and how often, in words."""
    every = {0: "never due", 1: "always due"}.get(
        note.every, f"due once every {note.every} messages"
    )
    follow = "1 message follows" if note.depth == 1 else f"{note.depth} messages follow"
    tokens = ESTIMATE.count(note.content)
    return (
        f"note at depth {note.depth} ({follow} it), role {note.role}, {every},"
        f" about {tokens} tokens, revision {note.revision}."
    )
