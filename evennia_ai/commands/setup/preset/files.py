"""Reading, comparing and writing the file of a preset, in another thread.

Everything here gets and returns plain values. Settings are passed in, because another thread must
not read them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from evennia_ai.commands.base import CommandError
from evennia_ai.commands.folder import PRESETS, bytes_of, new_file
from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import Progress
from evennia_ai.engine.prompt.components import NO_GRANTS, Grants, PromptComponent
from evennia_ai.engine.text.differences import diff_members
from evennia_ai.formats.presets.export import dump_preset, stored_text
from evennia_ai.formats.presets.mapping import preset_components
from evennia_ai.formats.presets.preset import Preset
from evennia_ai.formats.presets.reading import DEFAULT_LIMITS, read_preset
from evennia_ai.formats.presets.report import preset_report, report_lines
from evennia_ai.npc.views.presets import parsed_preset
from evennia_ai.store.authored.presets import StoredPreset

# The members of a file that hold the prompts and their order.
_READ: Final = ("prompts", "prompt_order", "data")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPreset:
    """A file of a preset, and the report on it."""

    source: str
    """The JSON of the file without its secrets."""
    sha256: str
    lines: Sequence[str]
    """The lines of the report."""
    uses: None = None
    """Always None: only the report says which grants a preset uses."""


def read_path(path: Path, name: str, progress: Progress) -> ReadPreset:
    """Read the preset of a file that no builder has approved yet."""
    progress("the file", 0, 1)
    content = bytes_of(path, most=DEFAULT_LIMITS.file_bytes)
    try:
        preset = read_preset(content, name=name)
    except FormatError as error:
        problem = f"{path.name} is refused: {error.message}. Nothing was imported."
        raise CommandError(problem) from error
    progress("the report", 0, 1)
    return _reported(stored_text(preset), preset, NO_GRANTS)


def read_stored(stored: StoredPreset, progress: Progress) -> ReadPreset:
    """Read a stored preset, with its grants and switches."""
    progress("the report", 0, 1)
    return _reported(stored.source, parsed_preset(stored), stored.grants)


def _reported(source: str, preset: Preset, grants: Grants) -> ReadPreset:
    return ReadPreset(
        source=source,
        sha256=sha256(source.encode()).hexdigest(),
        lines=report_lines(preset_report(preset, grants=grants)),
    )


def preset_differences(before: Preset | None, after: Preset) -> Iterator[str]:
    """Yield what differs in a preset: first prompt by prompt, then in the rest of its file."""
    yield from diff_members(_said(before) if before else {}, _said(after))
    if before is not None:
        yield from diff_members(_others(before), _others(after))


def written(
    stored: StoredPreset, folder: Path, *, own: Sequence[PromptComponent], progress: Progress
) -> tuple[Path, int, list[str]]:
    """Write a preset into a new file.

    Return its path, its size, and the builders' components in it.

    `own` are the builders' components. Those that replace prompts of the preset are written.
    """
    preset = parsed_preset(stored)
    keys = {one.key for one in preset_components(preset, grants=stored.grants)}
    changes = [one for one in own if one.key in keys]
    text = dump_preset(preset, changes, grants=stored.grants)
    progress("the file", 0, 1)
    content = text.encode()
    path = new_file(folder, stored.name, content, kind=PRESETS)
    return path, len(content), [one.key for one in changes]


def _said(preset: Preset) -> dict[str, Any]:
    """Return the text, the role and the place of each prompt, by its name or identifier."""
    said: dict[str, Any] = {}
    for prompt in preset.by_identifier.values():
        called = prompt.name or prompt.identifier
        label = called if f"{called} is on" not in said else f"{called} ({prompt.identifier})"
        said[f"{label} is on"] = preset.is_on(prompt.identifier)
        if not prompt.is_marker:
            said[label] = prompt.content
            said[f"{label}, role"] = prompt.role
        if prompt.position == "in_chat":
            said[f"{label}, depth"] = f"{prompt.depth}, order {prompt.injection_order}"
        if prompt.triggers:
            said[f"{label}, triggers"] = ", ".join(prompt.triggers)
    return said


def _others(preset: Preset) -> dict[str, Any]:
    return {name: value for name, value in preset.source.items() if name not in _READ}
