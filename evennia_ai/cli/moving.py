"""`evennia-ai import-folder` and `export-folder`: a folder of SillyTavern into a game, and out."""

from pathlib import Path

import click

from evennia_ai.cli.game import opened_game
from evennia_ai.cli.options import FILE, GAME, JSON


@click.command("import-folder")
@click.argument("source", type=FILE, metavar="PATH")
@click.option("--plan", is_flag=True, help="Tell what would be; as without --yes.")
@click.option("--yes", "is_meant", is_flag=True, help="Take it in.")
@JSON
@GAME
def import_folder(source: Path, *, plan: bool, is_meant: bool, as_json: bool, game: Path) -> int:
    """Take a data folder of SillyTavern into a game: cards, lorebooks, chats, personas, presets.

    Without --yes nothing is written, and the plan is printed.
    """
    if plan and is_meant:
        raise click.UsageError("--plan and --yes do not go together")
    path = source.absolute()
    conf = opened_game(game)
    from evennia_ai.cli.game.folder.importing import take_in

    return take_in(path, source, conf, is_meant=is_meant, as_json=as_json)


@click.command("export-folder")
@click.argument("target", type=FILE, metavar="PATH")
@JSON
@GAME
def export_folder(target: Path, *, as_json: bool, game: Path) -> int:
    """Write cards, lorebooks, imported chats and personas as a new data folder of SillyTavern."""
    path = target.absolute()
    conf = opened_game(game)
    from evennia_ai.cli.game.folder.exporting import write_out

    return write_out(path, target, conf, as_json=as_json)
