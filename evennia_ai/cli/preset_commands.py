"""The commands of `evennia-ai preset`: their options, and nothing else."""

from pathlib import Path
from typing import Literal

import click

from evennia_ai.cli.options import FILE, FORCE, GRANT, JSON, help_alone
from evennia_ai.prompt.components import Grant


@click.group(invoke_without_command=True)
@click.pass_context
def preset(context: click.Context) -> None:
    """SillyTavern's presets for chat completion: what they hold, and what becomes of them here."""
    help_alone(context)


@preset.command("show")
@click.argument("file", type=FILE)
@JSON
@click.option("--prompt", metavar="NAME", help="The text of one prompt, by name or identifier.")
def preset_show(file: Path, as_json: bool, prompt: str | None) -> int:
    """Show the list of a preset's prompts and their switches. Nothing is written."""
    from evennia_ai.cli import presets

    return presets.show(file, prompt=prompt, as_json=as_json)


@preset.command("lint")
@click.argument("file", type=FILE)
def preset_lint(file: Path) -> int:
    """Check a preset: status 1 and the findings, or 0 and nothing."""
    from evennia_ai.cli import presets

    return presets.lint(file)


@preset.command("convert")
@click.argument("source", type=FILE, metavar="IN")
@click.argument("target", type=FILE, metavar="OUT")
@click.option("--to", "form", type=click.Choice(["preset", "prompts"]), default="preset")
@click.option("--on", multiple=True, metavar="NAME", help="Switch a prompt on; once for each.")
@click.option("--off", multiple=True, metavar="NAME", help="Switch a prompt off; once for each.")
@FORCE
def preset_convert(
    source: Path,
    target: Path,
    *,
    form: Literal["preset", "prompts"],
    on: tuple[str, ...],
    off: tuple[str, ...],
    force: bool,
) -> int:
    """Write a preset as one of today, or as an export of the prompt manager; without secrets."""
    from evennia_ai.cli import presets

    return presets.convert(source, target, form=form, on=on, off=off, force=force)


@preset.command("import")
@click.argument("file", type=FILE)
@JSON
@GRANT
def preset_import(file: Path, *, as_json: bool, grants: tuple[Grant, ...]) -> int:
    """Report what a preset would do in a game. Nothing is stored."""
    from evennia_ai.cli import presets

    return presets.report_on(file, grants=frozenset(grants), as_json=as_json)
