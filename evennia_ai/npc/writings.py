"""Writings: letters and books that NPCs wrote, as things of the game.

A writing is an ordinary object: it is carried, given, dropped and locked like any other. What a
model wrote is kept as plain text and shown as plain text. Its name is shown by Evennia itself,
which interprets names, so that nothing but letters, digits and a few signs is ever in it.
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
from evennia_ai.npc.senses.text import LINE_BREAK, one_line, plain_name, unmarked
from evennia_ai.npc.speech.output import escaped
from evennia_ai.services.settings.kinds import WritingLimits

TYPECLASS: Final = "evennia_ai.npc.writings.Writing"
WRITER: Final = "evennia_ai_writer"
"""The category of the tag that names who wrote it."""

MAX_TITLE: Final = 50
DAY_SECONDS: Final = 86_400.0

_TIMES: Final = "written_at"
_TIMES_CATEGORY: Final = "evennia_ai"
_IN_TITLES: Final = frozenset(" '’-,!?")
_LETTERS_AND_DIGITS: Final = frozenset("LN")
_EMPTY_LINES: Final = re.compile(r"\n{3,}")


class Writing(DefaultObject):
    """A letter or a book that can be read with the command `read`, by whom its lock `read` lets.

    `written_text` is what it says, `writer_name` by whom, `form` what it is.
    """

    written_text = AttributeProperty("", autocreate=False)
    writer_name = AttributeProperty("", autocreate=False)
    form = AttributeProperty("letter", autocreate=False)

    def at_object_creation(self) -> None:
        """Evennia's hook: everybody may read it who has it before them."""
        super().at_object_creation()
        self.locks.add("read:all()")

    def get_display_desc(self, looker: Any, **kwargs: Any) -> str:
        """Evennia's hook: what it looks like, and how it is opened."""
        own = self.db.desc or f"A {self.form}, written by {escaped(self.writer_name)}."
        return f"{own}\nIt can be read: read {escaped(self.key)}"


def writing_by(npc: NPC, *, form: str, title: str, text: str) -> Writing:
    """A new writing in the hands of `npc`, and one more that it wrote today."""
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
    made.location = npc  # nobody gets it yet, so that no hook of receiving is asked
    npc.attributes.add(_TIMES, [*_times(npc), time.time()], category=_TIMES_CATEGORY)
    return made


def why_no_more(npc: NPC, limits: WritingLimits) -> str:
    """Why the NPC writes nothing now, "" where it may; told to its model."""
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
    """What the thing is called: `letter "Low water"`, or `letter` where no title is left."""
    shown = "".join(letter if _is_plain(letter) else " " for letter in unmarked(title))
    words = one_line(shown)[:MAX_TITLE].strip(" -,'’")
    return f'{form} "{words}"' if any(map(str.isalnum, words)) else form


def plain_text(text: str) -> str:
    """What a model wrote as lines of plain text: no markup, nothing unseen, no frame of a chat."""
    lines = [one_line(line) for line in LINE_BREAK.split(unmarked(text))]
    return neutralize_markup(_EMPTY_LINES.sub("\n\n", "\n".join(lines)).strip())


def _is_plain(letter: str) -> bool:
    return letter in _IN_TITLES or unicodedata.category(letter)[0] in _LETTERS_AND_DIGITS


def _times(npc: NPC) -> list[float]:
    """When the NPC wrote, in the last 24 hours; those that are gone are counted too."""
    since = time.time() - DAY_SECONDS
    kept = npc.attributes.get(_TIMES, default=(), category=_TIMES_CATEGORY)
    return [at for at in kept if at > since]
