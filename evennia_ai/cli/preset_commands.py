"""The commands of `evennia-ai preset`: their options and calls."""

from pathlib import Path
from typing import Any, Literal

import click

from evennia_ai.cli.game import opened_game
from evennia_ai.cli.options import FILE, FORCE, GAME, GRANT, JSON, help_alone


@click.group(invoke_without_command=True)
@click.pass_context
def preset(context: click.Context) -> None:
    """SillyTavern's presets for chat completion: show, check and convert them, and import them."""
    help_alone(context)


@preset.command("show")
@click.argument("file", type=FILE)
@JSON
@click.option("--prompt", metavar="NAME", help="Show one prompt, by name or identifier.")
def preset_show(file: Path, as_json: bool, prompt: str | None) -> int:
    """Show the list of a preset's prompts and their switches. Nothing is written."""
    from evennia_ai.cli import presets

    return presets.show(file, prompt=prompt, as_json=as_json)


@preset.command("lint")
@click.argument("file", type=FILE)
def preset_lint(file: Path) -> int:
    """Check a preset and print the findings. The status is 1 if one of them is an error."""
    from evennia_ai.cli import presets

    return presets.lint(file)


@preset.command("convert")
@click.argument("source", type=FILE, metavar="IN")
@click.argument("target", type=FILE, metavar="OUT")
@click.option("--to", "form", type=click.Choice(["preset", "prompts"]), default="preset")
@click.option("--on", multiple=True, metavar="NAME", help="Switch a prompt on; may be repeated.")
@click.option("--off", multiple=True, metavar="NAME", help="Switch a prompt off; may be repeated.")
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
    """Write a preset in today's form, or as an export of the prompt manager, without secrets."""
    from evennia_ai.cli import presets

    return presets.convert(source, target, form=form, on=on, off=off, force=force)


@preset.command("import")
@click.argument("file", type=FILE)
@JSON
@click.option("--game", type=FILE, metavar="DIR", help="Import into the game in this folder.")
@click.option("--name", help="The preset's name in the game; default: the file's.")
@click.option("--approve", is_flag=True, help="Approve the import at once.")
@GRANT
def preset_import(
    file: Path,
    *,
    as_json: bool,
    game: Path | None,
    name: str | None,
    approve: bool,
    grants: tuple[Any, ...],
) -> int:
    """Report what a preset would do in a game; with --game also store it there.

    Without --game nothing is stored, and the report assumes the grants that you name with --grant.
    """
    if game is None:
        from evennia_ai.cli import presets

        if approve or name is not None:
            raise click.UsageError("--approve and --name need --game DIR")
        return presets.report_on(file, grants=frozenset(grants), as_json=as_json)
    if grants and not approve:
        raise click.UsageError("--grant needs --approve: an import that waits has no grants")
    path, conf = file.absolute(), opened_game(game)
    from evennia_ai.cli.game import presets as of_game

    given = frozenset(grants) if approve else None
    return of_game.import_preset(path, file, conf, name=name, grants=given, as_json=as_json)


@preset.command("export")
@click.argument("name")
@click.argument("target", type=FILE, metavar="OUT")
@GAME
@FORCE
@click.option("--revision", type=click.IntRange(min=1), help="Default: the approved one.")
def preset_export(name: str, target: Path, *, game: Path, force: bool, revision: int | None) -> int:
    """Write a preset of a game as a file, with all changes since its import, without secrets."""
    path = target.absolute()
    opened_game(game)
    from evennia_ai.cli.game import presets

    return presets.export_preset(name, path, target, force=force, number=revision)
