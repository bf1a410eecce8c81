"""The command `lore`: builders list, create, change, try out and move lorebooks.

The command only translates. `lorebook.editing.edits` decides what an entry may contain, and the
store keeps books. The locks of books and entries are checked before anything is shown or changed.
Without a switch the command only reads.
"""

import json
from textwrap import fill
from typing import Any, Final

from twisted.internet.defer import Deferred

from evennia_ai.commands.base import BUILDER_LOCK, Run, alike, and_more, counted
from evennia_ai.commands.naming import is_npc_name, npc_named, whole_number
from evennia_ai.commands.setup.lore import named, shown
from evennia_ai.commands.setup.lore.books import LoreBooks
from evennia_ai.commands.setup.lore.edits import LoreEdits
from evennia_ai.commands.setup.lore.shown import item_to_explain, npc_at_hand, trial_lines
from evennia_ai.commands.turn_shown import why_lines
from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.engine.text.columns import WIDTH, wrap_text
from evennia_ai.formats.lorebooks.editing.lints import lint_book
from evennia_ai.formats.lorebooks.entry_fields import TYPED_FIELDS
from evennia_ai.npc.mind.viewers import lock_allows, viewer_of
from evennia_ai.npc.runtime import runtime
from evennia_ai.npc.views.books import see_book
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.authored.components import shown_outlets

_MOST_LINTS: Final = 60
_FIELDS: Final = "{fields}"


def _with_fields(text: str) -> str:
    """Return the help text with the names of the entry fields, wrapped like its other lines."""
    line = next(line for line in text.splitlines() if _FIELDS in line)
    pad = line[: len(line) - len(line.lstrip())]
    told = line.replace(_FIELDS, ", ".join(TYPED_FIELDS))
    return text.replace(line, fill(told, width=len(pad) + 72, subsequent_indent=pad))


class CmdLore(LoreEdits, LoreBooks):
    """
    List, show, change and try out lorebooks

    Usage:
      lore
      lore <book> [= <page>]
      lore <book>/<entry>
      lore/<switch> <book>[/<entry>] [= <value>]

    A lorebook is a list of entries. Each entry has keys and a text. When one of
    the keys is said, the entry is active: the NPC is told its text. A book is
    used only where it is assigned. Name an entry by its id or its name.

    Switches:
      create    - <book>[/<entry name>] [= <key>, <key>: <content>]: create a
                  book or an entry; without content the editor opens
      edit      - <text>: write the content of an entry; without a text the
                  editor opens
      keys      - <key>, <key> or off: the words that activate an entry; /.../i
                  is a pattern
      on        - use an entry in prompts again
      off       - keep an entry, but never activate it
      assign    - game, zone:<tag>, here, room:<room>, npc:<name> or the name of
                  an NPC, faction:<tag> or player:<name>: use the book there
      unassign  - the same places: no longer use the book there
      test      - [<npc> =] <what you would say>: show which entries would be
                  active if you said this to the NPC here, and why; this changes
                  nothing
      revisions - show who changed a book, and when; with a number: show what
                  that revision changed
      revert    - <number>: go back to an earlier revision of a book; you see
                  what would change and are asked first
      remove    - remove an entry; a whole book after a question

    Examples:
      lore harbour
      lore harbour/the ferry
      lore/create harbour/the toll = toll, fare: Two pennies a head.
      lore/edit harbour/the toll = Three pennies a head.
      lore/assign harbour = zone:coast
      lore/test Oren = When does the ferry sail?

    # subtopics

    ## fields

    Change the other fields of an entry.

    Switches:
      secondary - [any | all | not any | not all] <key>, <key> or off: words
                  that must also be said, or must not be said
      depth     - <n | normal | bottom>: place it inside the history, with n
                  messages after it; bottom: after the newest message; normal:
                  outside of the history
      order     - <n>: at the same place, a lower order comes first
      position  - before, after, note_top, note_bottom, depth:<n>,
                  examples_before, examples_after, outlet:<name>,
                  before:<component>, after:<component> or
                  at_mention [before | after] [newest | oldest]: next to the
                  message that contains its key
      set       - <field> <value>: set any other field

    Examples:
      lore/secondary harbour/the ferry = not any storm, wreck
      lore/depth harbour/the ferry = 4
      lore/set harbour/the ferry = sticky 3
      lore/set harbour/the ferry = chance 50
      lore/set harbour/the ferry = when time.part is_any night, evening

    Fields for /set: {fields}. The value 'default' resets a field.

    ## books

    Move, check and lock whole books.

    Switches:
      import    - <file> [= <name>]: read a book from a JSON file of the game's
                  card folder; without a file: list the files
      export    - [v3 | world]: write it into a new file of that folder
      lint      - list what its author should look at again
      mode      - floating or frozen. Floating: a text is in the prompt only
                  while its entry is active. Frozen: it is told once and stays in
                  the history
      lock      - <lock string> or off: who may view and edit a book or an
                  entry; without a value: show the lock
      why       - <npc> = <book>#<entry>: everything about one entry in the
                  newest prompt of an NPC

    Examples:
      lore/lint harbour
      lore/lock harbour = edit:perm(Builder);view:all()
      lore/export harbour = world

    The lock of a book and the lock of its entry must both allow you to see or
    change the entry. Locks are for builders only: they do not change what an NPC
    is told.

    A card may have its own book. It is called card:<card>, as in lore card:Mira
    and lore/create card:Mira/the toll. A change of it is a revision of the card.
    """

    __doc__ = _with_fields(__doc__ or _FIELDS)
    key = "lore"
    locks = BUILDER_LOCK.format(key="lore")
    help_category = "Building"
    auto_help = True
    verbs = {
        "": "look",
        **alike("create edit keys secondary depth order position"),
        "set": "set_field",
        "on": "switch_on",
        "off": "switch_off",
        **alike("remove assign unassign mode test why lint"),
        "import": "import_file",
        **alike("export revisions revert lock"),
    }
    without_value = frozenset({"on", "off", "remove", "lint"})
    thing = "lorebook"

    def names_something(self, text: str) -> bool:
        book, entry = named.split(text)
        try:
            named.book_named(self.caller, book)
            return not entry or bool(named.entry_named(self.caller, text))
        except EvenniaAIError:
            return is_npc_name(self.caller, text)

    def func(self) -> Run:
        """Run the switch; if it names a long book, first parse the book in another thread."""
        name = named.split(self.lhs)[0] if self.lhs else ""
        reading = self._reading(name)
        if reading is None:
            return super().func()
        waiting = f"Lorebook {name} is being read; the answer follows."
        self.tell_of(reading, by=self._again, waiting=waiting)
        return None

    def _reading(self, name: str) -> "Deferred[Any] | None":
        """Parse the book of this name in another thread, or return None if that is not needed."""
        builds = runtime().book_builds
        if (card := named.card_called(name)) is not None:
            return builds.read_card_first(card)
        book = named.stored_book(name) if name else None
        if book is None or not lock_allows(self.caller, book.locks, "view"):
            return None
        return builds.read_first(book)

    def _again(self, _: object) -> None:
        """Run the typed command again, unless the caller has left."""
        if self.session is None or self.session.logged_in:
            self.caller.execute_cmd(self.raw_string, session=self.session)

    def look(self) -> None:
        book, entry = named.split(self.lhs)
        if entry:
            self.refuse_value(instead=f"lore/edit {self.lhs} = {self.rhs}")
            self.show(shown.entry_shown(named.entry_named(self.caller, self.lhs)))
        elif book:
            self._look_at_book(book)
        else:
            self.refuse_value()
            self._look_at_books()

    def test(self) -> None:
        said = self.wanted("lore/test [<npc> =] <what you would say>")
        if self.rhs is None:
            npc = npc_at_hand(self.caller)
        else:
            name, said = self.both("lore/test [<npc> =] <what you would say>")
            npc = npc_named(self.caller, name)
        self.show(trial_lines(self.caller, npc, said))

    def why(self) -> None:
        name, item = self.both("lore/why <npc> = <book>#<entry>")
        npc = npc_named(self.caller, name)
        item = item_to_explain(self.caller, npc, item)
        self.show(why_lines(self.caller, npc, item))

    def lint(self) -> None:
        book = named.opened(named.book_named(self.caller, self.wanted("lore/lint <book>")))
        found = [
            str(lint)
            for lint in lint_book(
                book.book,
                rules=conf().lore,
                limit_tokens=conf().limit_tokens,
                outlets=shown_outlets(),
                source=json.loads(book.stored.source),
            )
            if named.may_see(self.caller, book, lint.uid)
        ]
        if not found:
            self.say(f"Found no problem in lorebook {book.name}.")
            return
        told = ["\n".join(wrap_text(finding, WIDTH)) for finding in found]
        head = f"Lorebook {book.name}, {counted(len(found), 'finding')}:"
        self.show([head, *and_more(told, most=_MOST_LINTS, more="and {} more")])

    def _look_at_books(self) -> None:
        books, own = list(named.visible_books(self.caller)), named.books_of_cards()
        if not books and not own:
            self.say("There are no lorebooks yet; lore/create <book> makes one.")
            return
        inside = wrap_text(f"Books inside cards: {', '.join(own)}", WIDTH) if own else []
        self.show([*shown.listed(books), *inside])

    def _look_at_book(self, name: str) -> None:
        page = 1 if self.rhs is None else whole_number(self.rhs, what="page")
        book = named.opened(named.book_named(self.caller, name))
        viewer = viewer_of(self.caller)
        seen = see_book(book.stored, book.book, viewer, locks=book.entry_locks)
        self.show(shown.shown(seen, page=page))
