"""`evennia-ai import-folder`: judge the files of a folder, and import them one by one.

A thing that the game already has is recognised by its content. So an interrupted import can be
started again: it writes nothing twice and keeps no list of what is done.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from evennia_ai.cli.game import machine_owner
from evennia_ai.cli.game.cast import Cast
from evennia_ai.cli.game.folder import authored
from evennia_ai.cli.game.folder.authored import Taking
from evennia_ai.cli.game.folder.conversations import judged_chat, judged_group, judged_group_chat
from evennia_ai.cli.game.folder.judged import Judged, left_out, report_lines, report_object
from evennia_ai.cli.game.folder.personas import judged_personas
from evennia_ai.cli.game.folder.places import FolderFile, Kind, Places, places_in
from evennia_ai.cli.game.folder.presets import judged_preset
from evennia_ai.cli.output import write_json, write_lines
from evennia_ai.cli.terminal import shown_progress
from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.engine.foreign.documents import Progress
from evennia_ai.services.settings.game import Conf

_PARTS: Final = 10


_JUDGES: Final[Mapping[Kind, Callable[[FolderFile, Taking], Iterable[Judged]]]] = {
    "world": authored.judged_world,
    "card": authored.judged_card,
    "loose": authored.judged_loose,
    "group": judged_group,
    "chat": judged_chat,
    "group chat": judged_group_chat,
    "persona": judged_personas,
    "preset": judged_preset,
}


def take_in(path: Path, shown: Path, conf: Conf, *, is_meant: bool, as_json: bool) -> int:
    """Print what the things in a folder become in the game. Import them if `is_meant`.

    `shown` is the path as it was typed.
    """
    places = places_in(path, shown=shown)
    with _progress() as progress:
        judged = [*_followed(places, conf, is_meant=is_meant, progress=progress)]
    judged += [left_out("other", one.where, one.why) for one in places.others]
    if as_json:
        write_json(report_object(shown, judged, is_written=is_meant), indent=2)
    else:
        write_lines(report_lines(shown, judged, is_written=is_meant))
    return 0


def _followed(
    places: Places, conf: Conf, *, is_meant: bool, progress: Progress
) -> Iterator[Judged]:
    """Yield what becomes of each thing. Each is written before the next is judged."""
    taking = Taking(conf=conf, by=machine_owner(), cast=Cast())
    for done, file in enumerate(places.files):
        progress(f"{file.kind}s", done, len(places.files))
        for one in _of_file(file, taking):
            yield _written(one) if is_meant and one.write is not None else one.without_write()


def _of_file(file: FolderFile, taking: Taking) -> Iterable[Judged]:
    """Judge the things in a file. An unreadable file is left out, with the reason."""
    try:
        return [*_JUDGES[file.kind](file, taking)]
    except EvenniaAIError as error:
        return [authored.refused(file, error)]


def _written(one: Judged) -> Judged:
    assert one.write is not None
    try:
        one.write()
    except EvenniaAIError as error:
        return replace(one, fate="left out", why=str(error)).without_write()
    return replace(one, fate="taken").without_write()


@contextmanager
def _progress() -> Iterator[Progress]:
    """Yield a function that shows progress: a bar on a terminal, else a line for each tenth."""
    if sys.stderr.isatty():
        with shown_progress() as bar:
            yield bar
        return
    told = 0

    def tell(what: str, done: int, total: int) -> None:
        nonlocal told
        if total >= _PARTS and done * _PARTS // total > told:
            told = done * _PARTS // total
            sys.stderr.write(f"{done} of {total} files, {what}\n")
            sys.stderr.flush()

    yield tell
