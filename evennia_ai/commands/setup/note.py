"""The command `note`: the author's notes of an NPC, each with a key."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from evennia_ai.commands.base import (
    BUILDER_LOCK,
    CommandError,
    Run,
    StrictCommand,
    alike,
    revision_in_words,
)
from evennia_ai.commands.naming import (
    any_whole_number,
    conditions_typed,
    depth_typed,
    is_npc_name,
    npc_and_key,
    whole_number,
)
from evennia_ai.commands.screens import diffed
from evennia_ai.commands.setup.editor import EDITOR_KINDS, Edited, EditorKind, open_editor
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.foreign.fields import suggest_name
from evennia_ai.engine.prompt.components import (
    DEFAULT_ORDER,
    MAX_DEPTH,
    PLUGGABLE_IDS,
    depth_in_words,
    of_npc,
)
from evennia_ai.engine.prompt.messages import TEXT_ROLES
from evennia_ai.engine.prompt.notes import NOTE_MODES
from evennia_ai.engine.prompt.prefix_rules import describe_dependence
from evennia_ai.engine.prompt.tokens import ESTIMATE
from evennia_ai.engine.text.columns import (
    WIDTH,
    clip_text,
    escape_controls,
    first_line,
    pad_text,
    wrap_hanging,
    wrap_text,
)
from evennia_ai.engine.text.differences import diff_members
from evennia_ai.npc.senses.presence import NPC
from evennia_ai.store.authored import notes as store
from evennia_ai.store.authored.components import registry
from evennia_ai.store.authored.life_cycle import Revision, with_values_before
from evennia_ai.store.authored.notes import NOTE, NOTES, StoredNote

_NAMED: Final = "<npc>[/<key>]"
_KIND: Final = "note"
_MOST_SHOWN: Final = 50


class CmdNote(StrictCommand):
    """
    Show or set the author's notes of an NPC

    Usage:
      note <npc>[/<key>]
      note <npc>[/<key>] = <text>
      note/<switch> <npc>[/<key>] [= <value>]

    Switches:
      depth - <n | bottom>: place it with n messages after it; 0 or bottom:
              after the newest message
      order - <n>: at the same depth, a lower order comes first
      every - <n>: use it only at every n-th message to the NPC; 1: always,
              0: never
      role  - <system | user | assistant>: who speaks the note
      mode  - <floating | anchored | tail>: whether it moves, see below
      place - <before | after> <component>: place it next to that component;
              history: back in the conversation
      when  - <fact> <test> <value>, <value>; ...: use it only while all these
              conditions are met, see below; off: use it always
      edit  - <text>: write its text, like the command without a switch;
              without a text the editor opens
      off   - keep it, but leave it out of every prompt
      on    - use it in prompts again
      remove - remove it; without a key: all notes of the NPC
      revisions - show who changed it, and when; with a number: show what that
              revision changed
      revert - <number>: go back to an earlier revision; you see what would
              change and are asked first

    Examples:
      note oren
      note oren = Oren has just heard that the ferry is lost.
      note oren/scene = The tavern is about to close.
      note/depth oren = 2
      note/every oren/scene = 3
      note/mode oren = tail
      note/place oren = after card_system_prompt
      note/when oren/scene = time.hour >= 18; room.tags has_any tavern
      note/off oren/scene
      note/revisions oren = 2
      note/remove oren/scene

    A note is a short text near the end of what an NPC is told, for example what
    it has in mind or where the scene is going. Unless you choose another depth,
    4 messages follow it. An NPC may have several notes, each with a key; without
    a key you mean the note called 'note'. A note that you place next to a
    component is outside the conversation; its depth, order and mode have no
    effect there.

    A floating note moves on with every message. An anchored note keeps its place
    until 16 more messages follow it than its depth says; that way a provider can
    reuse more of the last prompt. A tail note is added after the newest message
    and stays there. It is added again after as many messages as /every says, or
    when it is no longer in the prompt. Its depth has no effect, and /remove does
    not take back what was added already.

    The conditions of /when are those of lore (help lore): they test facts such
    as time.hour, time.part, time.month, npc.tags, room.tags, speaker.kind or a
    fact of your game. The tests are is_any, is_none, has_any, has_none, >= and
    <=. While a condition is not met, no prompt has the note, and ai/why says so.
    """

    key = "note"
    locks = BUILDER_LOCK.format(key="note")
    help_category = "Building"
    auto_help = True
    verbs = {
        "": "look_or_write",
        **alike("depth order every role mode place when edit"),
        "off": "switch_off",
        "on": "switch_on",
        **alike("remove revisions revert"),
    }
    without_value = frozenset({"on", "off", "remove"})

    def names_something(self, text: str) -> bool:
        return is_npc_name(self.caller, text.partition("/")[0].strip())

    def look_or_write(self) -> None:
        npc, key = npc_and_key(self.caller, self.wanted(f"note {_NAMED} [= <text>]"))
        if self.rhs is None:
            self._show_notes(npc, key)
            return
        self.refuse_empty(off="note/remove")
        self._write(npc, key or NOTE, content=self.rhs)

    def depth(self) -> None:
        self.both(f"note/depth {_NAMED} = <n | bottom>")
        depth = depth_typed(self.rhs)
        if depth is None:
            raise CommandError(
                "A note has no ID, so 'normal' means nothing here; type a number of messages or"
                " bottom. Nothing was changed."
            )
        self._rewrite(depth=depth)

    def order(self) -> None:
        self.both(f"note/order {_NAMED} = <n>")
        self._rewrite(order=any_whole_number(self.rhs, what="order"))

    def every(self) -> None:
        self.both(f"note/every {_NAMED} = <n>")
        self._rewrite(every=whole_number(self.rhs, what="interval"))

    def role(self) -> None:
        self._set_word("role", TEXT_ROLES)

    def mode(self) -> None:
        self._set_word("mode", NOTE_MODES)

    def place(self) -> None:
        """Place a note next to a component, or back in the history."""
        self.both(f"note/place {_NAMED} = <before | after> <component>, or history")
        self._rewrite(place=_place_typed(self.rhs))

    def when(self) -> None:
        """Set the conditions under which a note is used, or remove them."""
        self.both(f"note/when {_NAMED} = <conditions>, or off")
        self._rewrite(when=conditions_typed(self.rhs))

    def edit(self) -> None:
        """Write the text of a note, which may be a new one, or open the editor on it."""
        npc, key = npc_and_key(self.caller, self.wanted(f"note/edit {_NAMED} [= <text>]"))
        if self.rhs is not None:
            self.refuse_empty(off="note/remove")
            self._write(npc, key or NOTE, content=self.rhs)
            return
        note = _note(npc, key or NOTE) or StoredNote(key=key or NOTE)
        edited = _edited(npc.ai.ref, note)
        open_editor(self.caller, _KIND, edited, label=f"note {labelled(npc, note.key)}")

    def switch_on(self) -> None:
        self._switch(enabled=True)

    def switch_off(self) -> None:
        self._switch(enabled=False)

    def remove(self) -> None:
        npc, key = npc_and_key(self.caller, self.wanted(f"note/remove {_NAMED}"))
        if key and _note(npc, key) is None:
            raise CommandError(_no_such(npc, key))
        known = [note.key for note in store.notes_for(npc.ai.ref)]
        gone = store.clear_notes(npc.ai.ref, key or None, by=self.actor)
        if not gone:
            self.say(f"{npc.key} had no note.")
            return
        left = ", ".join(name for name in known if key and name != key)
        last = NOTES.revisions(key or known[0], scope=of_npc(npc.ai.ref))[-2].number
        back = f"note/revert {labelled(npc, key or known[0])} = {last} brings it back."
        if not key and len(known) > 1:
            back = (
                f"note/revisions {npc.key}/<key> lists the revisions of a note; note/revert brings"
                " one back."
            )
        self.say(
            f"{npc.key} still has the notes {left}. {back}"
            if left
            else f"{npc.key} has no note now. {back}"
        )

    def revisions(self) -> None:
        """Show who changed a note. With a number, show what that revision changed."""
        npc, key, changes = self._changes(f"note/revisions {_NAMED} [= <revision>]")
        if self.rhs is None:
            self.show(_history(labelled(npc, key), changes))
            return
        number = whole_number(self.rhs, what="revision")
        then = NOTES.revision(key, number, scope=of_npc(npc.ai.ref))
        before = NOTES.revision_before(key, number, scope=of_npc(npc.ai.ref))
        told = _differences(_value(before), _value(then)) or ["Nothing is different."]
        head = f"Note {labelled(npc, key)}, revision {revision_in_words(then).strip()}:"
        self.show([clip_text(escape_controls(head), WIDTH), *diffed(told)])

    def revert(self) -> Run:
        """Revert a note to a revision, after a question. A removed note comes back."""
        usage = f"note/revert {_NAMED} = <revision>"
        self.both(usage)
        npc, key, _ = self._changes(usage)
        number = whole_number(self.rhs, what="revision")
        return self._revert_after_yes(npc, NOTES.then(key, number, scope=of_npc(npc.ai.ref)))

    def _revert_after_yes(self, npc: NPC, then: StoredNote) -> Generator[str, Any, None]:
        label, number = labelled(npc, then.key), then.revision
        changes = _differences(_fields_of(_note(npc, then.key)), _fields_of(then))
        seen = NOTES.revisions(then.key, scope=of_npc(npc.ai.ref))[-1].number
        revert = partial(
            NOTES.revert,
            *(then.key, number),
            scope=of_npc(npc.ai.ref),
            by=self.actor,
            seen_revision=seen,
        )
        going = self.goes_back(f"note {label}", number, changes=changes, revert=revert)
        if not (yield from going):
            return
        after = revert()
        self.say(f"It is what it was at revision {number}. {label}: {in_words(after)}")

    def _set_word(self, field: str, known: Sequence[str]) -> None:
        self.both(f"note/{field} {_NAMED} = <{' | '.join(known)}>")
        if self.rhs.lower() not in known:
            *others, last = known
            raise CommandError(
                f"'{self.rhs}' is no {field} of a note: it is {', '.join(others)} or {last}."
                " Nothing was changed."
            )
        self._rewrite(**{field: self.rhs.lower()})

    def _switch(self, *, enabled: bool) -> None:
        self.wanted(f"note/{'on' if enabled else 'off'} {_NAMED}")
        self._rewrite(enabled=enabled)

    def _show_notes(self, npc: NPC, key: str) -> None:
        """Show the note of this key in full, or list all notes. A single note is shown in full."""
        notes = store.notes_for(npc.ai.ref)
        if not notes:
            self.say(f"{npc.key} has no note; write one with: note {npc.key} = <text>")
            return
        if not key and len(notes) > 1:
            self.show(list_notes(npc, notes))
            return
        note = _note(npc, key) if key else notes[0]
        if note is None:
            raise CommandError(_no_such(npc, key))
        said = f"{labelled(npc, note.key)}: {in_words(note)}"
        self.show([*wrap_hanging(said), "", *wrap_text(note.content, WIDTH)])

    def _rewrite(self, **fields: Any) -> None:
        """Change fields of a note. CommandError if there is no note: only a text creates one."""
        npc, typed = npc_and_key(self.caller, self.lhs)
        key = typed or NOTE
        if _note(npc, key) is None:
            if not typed and not store.notes_for(npc.ai.ref):
                raise CommandError(
                    f"{npc.key} has no note yet; write one first: note {npc.key} = <text>"
                )
            raise CommandError(_no_such(npc, key))
        self._write(npc, key, **fields)

    def _write(self, npc: NPC, key: str, **fields: Any) -> None:
        """Store the given fields and show what they replaced."""
        before = _note(npc, key)
        after = store.set_note(npc.ai.ref, key, by=self.actor, **fields)
        if before is not None and after.revision == before.revision:
            self.say(f"Note {labelled(npc, key)} has these values already; nothing was changed.")
            return
        lines = wrap_text(f"{labelled(npc, key)}: {in_words(after)}{_remark(after)}", WIDTH)
        if before is not None:
            lines += _differences(_fields_of(before), _fields_of(after))
        self.show(diffed(lines))

    def _changes(self, usage: str) -> tuple[NPC, str, tuple[Revision[StoredNote], ...]]:
        """Return the NPC, the key and the changes of a note, which may have been removed."""
        npc, key = npc_and_key(self.caller, self.wanted(usage))
        changes = NOTES.revisions(key or NOTE, scope=of_npc(npc.ai.ref))
        if not changes:
            raise CommandError(_no_such(npc, key or NOTE))
        return npc, key or NOTE, changes


def _place_typed(typed: str) -> str:
    """Return the place as it is stored; "" means in the history."""
    words = typed.lower().split()
    if words == ["history"]:
        return ""
    if len(words) != 2 or words[0] not in ("before", "after"):
        raise CommandError(
            f"'{clip_text(escape_controls(typed), 40)}' is no place of a note: it is before"
            " <component>,"
            " after <component> or history. Nothing was changed."
        )
    known = {*PLUGGABLE_IDS, *(component.key for component in registry())}
    if words[1] not in known:
        raise CommandError(
            f"There is no component '{clip_text(escape_controls(words[1]), 40)}'"
            f"{suggest_name(words[1], known)}."
            " `component` lists them. Nothing was changed."
        )
    return " ".join(words)


def _remark(note: StoredNote) -> str:
    """Return a sentence if the note is next to a component but cannot stay there, else ""."""
    sentence = describe_dependence(note.content, trust="builder") if note.place else ""
    return f" Its text {sentence}." if sentence else ""


def _note(npc: NPC, key: str) -> StoredNote | None:
    return next((note for note in store.notes_for(npc.ai.ref) if note.key == key), None)


def _no_such(npc: NPC, key: str) -> str:
    known = ", ".join(note.key for note in store.notes_for(npc.ai.ref))
    there = f"there are {known}" if known else "it has none"
    return (
        f"{npc.key} has no note '{key}'; {there}. To write one:"
        f" note {labelled(npc, key)} = <text>. Nothing was changed."
    )


def _history(label: str, changes: Sequence[Revision[StoredNote]]) -> Iterator[str]:
    """Yield the changes of a note, oldest first, with the fields that each changed."""
    yield f"Revisions of note {label}; /revert goes back to one of them:"
    if len(changes) > _MOST_SHOWN:
        yield f"       and {len(changes) - _MOST_SHOWN} older ones"
    for before, change in [*with_values_before(changes)][-_MOST_SHOWN:]:
        yield clip_text(escape_controls(revision_in_words(change)), WIDTH)
        was, now = _typed_fields(_value(before)), _typed_fields(_value(change))
        told = ", ".join(name for name in now if now[name] != was.get(name))
        yield from [clip_text(f"         {told}", WIDTH)] if was and told else ()


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the fields of a note that differ, in the words that builders type."""
    return list(diff_members(_typed_fields(before), _typed_fields(after)))


def _typed_fields(said: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a note in the words of the switches that set them."""
    if not said:
        return {}
    fields = {name: value for name, value in said.items() if name != "enabled"}
    fields["depth"] = depth_in_words(said["depth"])
    fields["place"] = said.get("place") or "history"
    fields["when"] = said.get("when") or "always"
    return {**fields, "state": "on" if said.get("enabled", True) else "off"}


def _value(change: Revision[StoredNote] | None) -> Mapping[str, Any]:
    return _fields_of(change.after if change else None)


def _fields_of(note: StoredNote | None) -> Mapping[str, Any]:
    return {} if note is None else NOTES.to_json(note)


def _edited(npc_ref: str, note: StoredNote) -> Edited:
    return {"npc": npc_ref, "key": note.key, "revision": note.revision}


def _load(_caller: Any, edited: Edited) -> str:
    note = NOTES.current(edited["key"], of_npc(edited["npc"]))
    return "" if note is None else note.content


def _save(_caller: Any, edited: Edited, text: str, by: Actor) -> tuple[Edited, str]:
    npc_ref, key, seen = (edited[name] for name in ("npc", "key", "revision"))
    after = store.set_note(npc_ref, key, by=by, seen_revision=seen, content=text)
    told = f"Saved note '{key}', revision {after.revision}: {in_words(after)}{_remark(after)}"
    return _edited(npc_ref, after), told


EDITOR_KINDS[_KIND] = EditorKind(_load, _save, CmdNote.locks)


_KEY_COLUMNS: Final = 16


def labelled(npc: NPC, key: str) -> str:
    """Return a note as the command takes it: the NPC's name, and the key unless it is `note`."""
    return str(npc.key) if key == NOTE else f"{npc.key}/{key}"


def in_words(note: StoredNote) -> str:
    """Describe in words where a note is placed and how often it is used."""
    tokens = ESTIMATE.count(note.content)
    order = "" if note.order == DEFAULT_ORDER else f", order {note.order}"
    off = "" if note.enabled else "off, "
    used = _interval(note)
    if note.when:
        always = note.every == 1 and note.mode != "tail"
        used = f"{'used' if always else f'{used},'} only when {escape_controls(note.when)}"
    return (
        f"note {_place(note)}{order}, role {note.role}, {off}{used},"
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
