"""Letters and books that NPCs wrote, as things of the game.

A writing is an ordinary object, which players can carry, give, drop and lock. The model's text is
stored and shown as plain text. Evennia interprets the names of objects, so the name of a writing
contains only letters, digits and a few signs.
"""

import re
import time
import unicodedata
from typing import Any, Final

from evennia.objects.models import ObjectDB
from evennia.objects.objects import DefaultObject
from evennia.typeclasses.attributes import AttributeProperty
from evennia.utils.create import create_object

from evennia_ai.engine.history.role_markup import neutralize_markup
from evennia_ai.npc.senses.presence import NPC
from evennia_ai.npc.senses.text import LINE_BREAK, one_line, plain_name, strip_markup
from evennia_ai.npc.speech.output import escape_markup
from evennia_ai.services.settings.kinds import WritingLimits

TYPECLASS: Final = "evennia_ai.npc.writings.Writing"
WRITER: Final = "evennia_ai_writer"
"""The category of the tag that holds the id of the NPC that wrote it."""

MAX_TITLE: Final = 50
DAY_SECONDS: Final = 86_400.0

_TIMES: Final = "written_at"
_TIMES_CATEGORY: Final = "evennia_ai"
_IN_TITLES: Final = frozenset(" '’-,!?")
_LETTERS_AND_DIGITS: Final = frozenset("LN")
_EMPTY_LINES: Final = re.compile(r"\n{3,}")


class Writing(DefaultObject):
    """A letter or a book, which players open with the command `read`.

    The lock `read` decides who may read it. `written_text` is its text, `writer_name` the name of
    the writer, and `form` "letter" or "book".
    """

    written_text = AttributeProperty("", autocreate=False)
    writer_name = AttributeProperty("", autocreate=False)
    form = AttributeProperty("letter", autocreate=False)

    def at_object_creation(self) -> None:
        """Set the lock: anybody who holds the writing may read it. Evennia calls this hook."""
        super().at_object_creation()
        self.locks.add("read:all()")

    def get_display_desc(self, looker: Any, **kwargs: Any) -> str:
        """Return the description, and how to open the writing. Evennia calls this hook."""
        own = self.db.desc or f"A {self.form}, written by {escape_markup(self.writer_name)}."
        return f"{own}\nIt can be read: read {escape_markup(self.key)}"

    def at_read(self, reader: Any) -> None:
        """Do something after a player has read the writing. A hook for games."""


def writing_by(npc: NPC, *, form: str, title: str, text: str) -> Writing:
    """Create a writing in the hands of `npc`. It counts for the NPC's limit of today."""
    made: Writing = create_object(
        TYPECLASS,
        key=name_of(form, title),
        home=npc.home,
        nohome=npc.home is None,
        tags=[(str(npc.id), WRITER)],
        attributes=[
            ("written_text", text),
            ("writer_name", plain_name(npc.key)),
            ("form", form),
        ],
    )
    made.location = npc  # set directly, without hooks, because nobody gets the writing yet
    npc.attributes.add(_TIMES, [*_times(npc), time.time()], category=_TIMES_CATEGORY)
    return made


def why_no_more(npc: NPC, limits: WritingLimits) -> str:
    """Return why the NPC may write nothing now, as a text for its model; "" if it may."""
    if not limits.most:
        return "You may not write anything."
    own = {"db_tags__db_key": str(npc.id), "db_tags__db_category": WRITER}
    if ObjectDB.objects.filter(**own).count() >= limits.most:
        return (
            f"You have written {limits.most} letters and books that are still about;"
            " write no more until some of them are gone."
        )
    if len(_times(npc)) >= limits.a_day:
        return "You have written enough for today; write again tomorrow."
    return ""


def name_of(form: str, title: str) -> str:
    """Return the name of a writing: `letter "Low water"`, or `letter` without a usable title."""
    shown = "".join(letter if _is_plain(letter) else " " for letter in strip_markup(title))
    words = one_line(shown)[:MAX_TITLE].strip(" -,'’")
    return f'{form} "{words}"' if any(map(str.isalnum, words)) else form


def plain_text(text: str) -> str:
    """Return a model's text as plain lines, without markup and invisible characters.

    Text that looks like a message of a chat is defused.
    """
    lines = [one_line(line) for line in LINE_BREAK.split(strip_markup(text))]
    return neutralize_markup(_EMPTY_LINES.sub("\n\n", "\n".join(lines)).strip())


def _is_plain(letter: str) -> bool:
    return letter in _IN_TITLES or unicodedata.category(letter)[0] in _LETTERS_AND_DIGITS


def _times(npc: NPC) -> list[float]:
    """Return when the NPC wrote in the last 24 hours. Writings that are gone count too."""
    since = time.time() - DAY_SECONDS
    kept = npc.attributes.get(_TIMES, default=(), category=_TIMES_CATEGORY)
    return [at for at in kept if at > since]
