"""`card/export`: a card as a new file in the card folder."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evennia_ai.cards.dumping import FORMS, Form, dump_card, left_out
from evennia_ai.cards.limits import CardLimits
from evennia_ai.cards.loading import load_card
from evennia_ai.cards.progress import Progress
from evennia_ai.commands.setup import card_named as named
from evennia_ai.commands.setup.card_shown import size_in_words
from evennia_ai.commands.setup.card_work import CardWork, Steps, waits
from evennia_ai.commands.setup.folder import new_file
from evennia_ai.commands.strict import CommandError
from evennia_ai.conf import conf
from evennia_ai.store import card_revisions as log
from evennia_ai.store.card_files import CardFile
from evennia_ai.text.columns import WIDTH, wrapped

_USAGE: Final = "card/export <card>[/<number>] [= json | png | charx [with v2]]"
_MOST_LEFT_OUT: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """What is to be written: as which kind of file, and whether with the copy for V2 programs."""

    form: Form
    with_v2: bool
    modified_at: int
    limits: CardLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What was written, and what a file of that kind could not hold."""

    path: Path
    size_bytes: int
    left_out: tuple[str, ...]


class CardExport(CardWork):
    """Writing cards into the folder."""

    @waits
    def export(self) -> Steps:
        """Write a card, in force or of any revision, into a file that was not there."""
        name, number = named.revision_named(self.wanted(_USAGE))
        _, file = log.revision(name, number)
        wanted = self._wanted(file)
        folder = conf().card_folder
        written = yield self.worked(
            f"Writing card {name}",
            lambda progress: _written(file, wanted, folder, name, progress),
        )
        told = (
            f"Wrote card {name}, revision {number}, to {written.path.name} in {folder}"
            f" ({size_in_words(written.size_bytes)})."
        )
        left = written.left_out[:_MOST_LEFT_OUT]
        more = len(written.left_out) - len(left)
        lines = [*left, *([f"and {more} more like these"] if more else [])]
        self.show("\n".join(line for one in (told, *lines) for line in wrapped(one, WIDTH)))

    def _wanted(self, file: CardFile) -> Export:
        """What was typed, or the kind of file that the card came in."""
        own = "png" if file.carrier == "apng" else file.carrier
        words = [own] if self.rhs is None else self.rhs.lower().split()
        form, rest = (words[0] if words else ""), words[1:]
        if form not in FORMS or rest not in ([], ["with", "v2"]):
            raise CommandError(
                f"'{self.rhs}' is no kind of card file; there are json, png and charx, and png with"
                " v2. Nothing was written."
            )
        return Export(
            form=form, with_v2=bool(rest), modified_at=int(time.time()), limits=conf().card_limits
        )


def _written(
    file: CardFile, wanted: Export, folder: Path, name: str, progress: Progress
) -> Written:
    """Write the card; this runs in another thread."""
    found = load_card(file.content, limits=wanted.limits, progress=progress)
    content = dump_card(
        found,
        wanted.form,
        with_v2=wanted.with_v2,
        modified_at=wanted.modified_at,
        limits=wanted.limits,
    )
    progress("the file", 0, 1)
    path = new_file(folder, name, content, suffix=f".{wanted.form}")
    return Written(path=path, size_bytes=len(content), left_out=left_out(found, wanted.form))
