"""Reading, comparing and writing the file of a card, in another thread.

Everything here gets and returns plain values. Settings are passed in, because another thread must
not read them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from evennia_ai.commands.base import CommandError
from evennia_ai.commands.folder import bytes_of, new_file
from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import Progress
from evennia_ai.engine.prompt.components import NO_GRANTS, Grants
from evennia_ai.engine.text.columns import clip_text, escape_controls
from evennia_ai.formats.cards.comparing import changed_fields
from evennia_ai.formats.cards.exporting import Form, dump_card, export_losses
from evennia_ai.formats.cards.limits import CardLimits
from evennia_ai.formats.cards.loading import CardImport, load_card
from evennia_ai.formats.cards.report.import_report import report_lines
from evennia_ai.formats.cards.report.making import import_report
from evennia_ai.services.settings.game import Conf
from evennia_ai.store.authored.card_files import card_file
from evennia_ai.store.authored.cards import StoredCard
from evennia_ai.store.authored.files import AuthoredFile

_MOST_FIELDS: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadCard:
    """A file, the card in it, and the report on it."""

    file: AuthoredFile
    sha256: str
    found: CardImport
    lines: Sequence[str]
    uses: Mapping[str, str]
    """What the card uses each grant for."""


def read_path(path: Path, conf: Conf, progress: Progress) -> ReadCard:
    """Read the card of a file that no builder has approved yet."""
    progress("the file", 0, 1)
    content = bytes_of(path, most=conf.card_limits.file_bytes)
    try:
        found = load_card(content, limits=conf.card_limits, progress=progress)
    except FormatError as error:
        problem = f"{path.name} is refused: {error.message}. Nothing was imported."
        raise CommandError(problem) from error
    return _reported(card_file(content, found), found, NO_GRANTS, conf, progress)


def read_stored(file: AuthoredFile, grants: Grants, conf: Conf, progress: Progress) -> ReadCard:
    """Return the card in a stored file, with the report for the grants it has."""
    found = load_card(file.content, limits=conf.card_limits, progress=progress)
    return _reported(file, found, grants, conf, progress)


def _reported(
    file: AuthoredFile, found: CardImport, grants: Grants, conf: Conf, progress: Progress
) -> ReadCard:
    report = import_report(
        found,
        grants=grants,
        limit_tokens=conf.limit_tokens,
        post_history_depth=conf.post_history_depth,
        size_bytes=len(file.content),
        progress=progress,
    )
    return ReadCard(
        file=file,
        sha256=sha256(file.content).hexdigest(),
        found=found,
        lines=report_lines(report),
        uses={use.grant: use.gives for use in report.uses},
    )


def differing_fields(old: StoredCard, read: ReadCard) -> str:
    """Return a sentence that names the fields in which a file differs from the current card."""
    changed = [name for name, _, _ in changed_fields(json.loads(old.source), read.found.raw)]
    if not changed:
        return f"No field differs from revision {old.revision}, the approved one."
    more = f" and {len(changed) - _MOST_FIELDS} more" if len(changed) > _MOST_FIELDS else ""
    listed = ", ".join(clip_text(escape_controls(name), 40) for name in changed[:_MOST_FIELDS])
    return f"Differs from revision {old.revision}, the approved one, in: {listed}{more}."


def written(
    file: AuthoredFile,
    folder: Path,
    name: str,
    *,
    form: Form,
    with_v2: bool,
    modified_at: int,
    limits: CardLimits,
    progress: Progress,
) -> tuple[Path, int, tuple[str, ...]]:
    """Write a card into a new file. Return its path, its size, and what it could not hold."""
    found = load_card(file.content, limits=limits, progress=progress)
    content = dump_card(found, form, with_v2=with_v2, modified_at=modified_at, limits=limits)
    progress("the file", 0, 1)
    path = new_file(folder, name, content, suffix=f".{form}")
    return path, len(content), export_losses(found, form)
