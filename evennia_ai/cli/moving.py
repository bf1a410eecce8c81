"""The commands that move a folder of SillyTavern or a whole game: options and calls."""

from pathlib import Path

import click

from evennia_ai.cli.game import Databases, need, opened_game, opened_with
from evennia_ai.cli.options import FILE, GAME, JSON
from evennia_ai.services.settings.database import database


@click.command("import-folder")
@click.argument("source", type=FILE, metavar="PATH")
@click.option("--plan", is_flag=True, help="Only print the plan, as without --yes.")
@click.option("--yes", "is_meant", is_flag=True, help="Import the folder.")
@JSON
@GAME
def import_folder(source: Path, *, plan: bool, is_meant: bool, as_json: bool, game: Path) -> int:
    """Import a data folder of SillyTavern into a game: cards, lorebooks, chats, personas, presets.

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


@click.command("move")
@click.argument("game", type=FILE, metavar="GAME")
@click.option(
    "--to",
    "address",
    required=True,
    metavar="ADDRESS",
    envvar="EVENNIA_AI_MOVE_TO",
    help="postgres://user:password@host:5432/name, or sqlite:////path/of/a/new/file.db3.",
)
def move(game: Path, *, address: str) -> int:
    """Copy everything in a game's database into an empty one, and check that it is the same.

    If the command is killed, call it again: it continues where it was. The game must not run. Its
    database stays as it is. You can put the address of the new database into the environment
    variable EVENNIA_AI_MOVE_TO; other users of this machine do not see it then.
    """
    need("evennia")
    to = database(address)

    def databases(own: Databases) -> Databases:
        from evennia_ai.cli.game.move.opening import SOURCE, as_source

        return {**to, SOURCE: as_source(own["default"], game)}

    path = opened_with(game, databases)
    from evennia_ai.cli.game.move.moving import move as moved

    return moved(path, address)
