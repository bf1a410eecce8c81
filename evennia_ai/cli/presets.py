"""`evennia-ai preset`: show, check and convert the file of a preset, and report on it."""

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evennia_ai.cli.output import FINDING, json_bytes, said_of, write_file, write_json, write_lines
from evennia_ai.engine.foreign.documents import read_bytes
from evennia_ai.engine.prompt.components import Grants
from evennia_ai.engine.text.columns import WIDTH, escape_controls, wrap_text
from evennia_ai.formats.cards.components import DEFAULT_DEPTH
from evennia_ai.formats.presets.export import Form, convert_preset
from evennia_ai.formats.presets.lints import lint_preset
from evennia_ai.formats.presets.mapping import preset_assembly
from evennia_ai.formats.presets.preset import KIND, Preset
from evennia_ai.formats.presets.reading import read_preset
from evennia_ai.formats.presets.report import (
    PresetReport,
    preset_report,
    report_lines,
    report_object,
)
from evennia_ai.formats.presets.switches import find_prompt, switch_lines, switch_prompt


def show(path: Path, *, prompt: str | None, as_json: bool) -> int:
    """Print the list of the preset's prompts, or the text of one."""
    preset = read(path)
    if prompt is not None:
        return _show_prompt(preset, prompt, as_json=as_json)
    if as_json:
        write_json(described(preset), indent=2)
    else:
        write_lines(_lines(preset))
    return 0


def lint(path: Path) -> int:
    """Print the problems of a preset. Return 1 if one of them is an error."""
    findings = list(lint_preset(read(path)))
    write_lines(escape_controls(f"{path}: {finding}") for finding in findings)
    return FINDING if any(finding.is_error for finding in findings) else 0


def convert(
    source: Path,
    target: Path,
    *,
    form: Form,
    on: Iterable[str],
    off: Iterable[str],
    force: bool,
) -> int:
    """Write the preset in a form, with prompts switched.

    A file is overwritten only with `force`.
    """
    preset = read(source)
    with said_of(source):
        for wanted, is_on in [*((one, True) for one in on), *((one, False) for one in off)]:
            preset = switch_prompt(preset, wanted, is_on)
        made = convert_preset(preset, form)
    write_file(target, json_bytes(made, indent=4) + b"\n", kind=KIND, force=force)
    lines = [*(f"{source}: {notice}" for notice in preset.notices), f"{target}: {_told(preset)}"]
    write_lines(escape_controls(line) for line in lines)
    return 0


def report_on(path: Path, *, grants: Grants, as_json: bool) -> int:
    """Print what the preset would be in a game. Nothing is stored."""
    _, report = read_reported(path, grants=grants)
    end = "Nothing was stored: name a game with --game DIR, and the import waits there."
    write_report(report, stored=None, end=end, as_json=as_json)
    return 0


def read(path: Path) -> Preset:
    """Return the preset in a file, named after the file. FormatError names the file."""
    content = read_bytes(path, kind=KIND)
    with said_of(path):
        return read_preset(content, name=path.stem)


def read_reported(
    path: Path,
    *,
    grants: Grants,
    name: str | None = None,
    shown: Path | None = None,
    after_depth: int = DEFAULT_DEPTH,
) -> tuple[Preset, PresetReport]:
    """Return the preset of a file and the report on it. FormatError names the file as `shown`.

    A preset that could not be approved is refused here already.
    """
    content = read_bytes(path, kind=KIND)
    with said_of(shown or path):
        preset = read_preset(content, name=name or path.stem)
        report = preset_report(
            preset, grants=grants, size_bytes=len(content), after_depth=after_depth
        )
    return preset, report


def write_report(
    report: PresetReport, *, stored: dict[str, Any] | None, end: str, as_json: bool
) -> None:
    if as_json:
        write_json({**report_object(report), "stored": stored}, indent=2)
    else:
        write_lines([*report_lines(report), "", *wrap_text(end, WIDTH)])


def described(preset: Preset) -> dict[str, Any]:
    """Return the preset as the object that `preset show --json` prints."""
    return {
        "name": preset.name,
        "prompts": [
            {**asdict(one), "enabled": preset.switches.get(one.identifier)}
            for one in preset.prompts
        ],
        "order": [item.identifier for item in preset.order],
        "texts": dict(preset.texts),
        "rules": preset_assembly(preset).changed,
        "secrets": list(preset.secrets),
        "notices": list(preset.notices),
    }


def _show_prompt(preset: Preset, wanted: str, *, as_json: bool) -> int:
    found = find_prompt(preset, wanted)
    if as_json:
        write_json({**asdict(found), "enabled": preset.switches.get(found.identifier)}, indent=2)
    else:
        write_lines(escape_controls(line) for line in found.content.split("\n"))
    return 0


def _lines(preset: Preset) -> list[str]:
    head = escape_controls(f"{preset.name}: {_told(preset)}")
    return [
        head,
        *switch_lines(preset),
        *(escape_controls(f"notice: {notice}") for notice in preset.notices),
    ]


def _told(preset: Preset) -> str:
    on = sum(item.enabled for item in preset.order)
    return f"{len(preset.order)} prompts in its order, {on} switched on"
