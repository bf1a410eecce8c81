"""Presets of a folder: each waits for `preset/approve`, without the secrets in its file."""

import json
from collections.abc import Iterable
from functools import partial
from hashlib import sha256

from evennia_ai.cli.game.folder.authored import Taking
from evennia_ai.cli.game.folder.judged import Judged
from evennia_ai.cli.game.folder.places import FolderFile
from evennia_ai.engine.errors import ComponentValueError, FormatError
from evennia_ai.engine.foreign.documents import read_bytes
from evennia_ai.formats.presets.export import dump_preset
from evennia_ai.formats.presets.reading import read_preset
from evennia_ai.npc.views.presets import parsed_preset
from evennia_ai.store.authored import presets
from evennia_ai.store.authored.files import read_text


def judged_preset(file: FolderFile, taking: Taking) -> Iterable[Judged]:
    """Judge a preset, which gets the name of its file."""
    content = read_bytes(file.path, kind="preset")
    preset = read_preset(content, name=file.path.stem)
    source = json.dumps(preset.source, ensure_ascii=False, allow_nan=False)
    name = _name(file.path.stem)
    if presets.PRESETS.is_known(name, sha256(source.encode()).hexdigest()):
        return [Judged(kind="preset", where=file.where, name=name, fate="there")]
    dropped = [f"without its secret {name}" for name in preset.secrets]
    return [
        Judged(
            kind="preset",
            where=file.where,
            name=name,
            fate="take",
            why=f"waits as preset {name}; preset/report {name} shows what it would do",
            notices=(*dropped, *preset.notices),
            write=partial(presets.import_preset, name, source, by=taking.by),
        )
    ]


def preset_text(name: str) -> str | None:
    """Return the file of a preset: the current one, else the waiting one, else None.

    Builders' components that replace its prompts are not included.
    """
    stored = presets.preset_or_none(name)
    if stored is not None:
        return dump_preset(parsed_preset(stored), grants=stored.grants)
    waiting = presets.PRESETS.waiting(name)
    if not waiting:
        return None
    return read_text(waiting[-1].value.sha256)


def _name(stem: str) -> str:
    try:
        return presets.PRESETS.known_name(presets.PRESETS.typeable_name(stem))
    except ComponentValueError as error:
        raise FormatError("preset", f"{error}; give the file another name") from error
