"""Options that several commands have."""

from pathlib import Path

import click

from evennia_ai.engine.prompt.components import ALLOWS

FILE = click.Path(path_type=Path)

GAME = click.option("--game", type=FILE, metavar="DIR", default=".", help="The game's folder.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
FORCE = click.option("--force", is_flag=True, help="Overwrite an existing file.")
V2 = click.option("--with-v2", is_flag=True, help="Add a V2 copy for other programs (only png).")
GRANT = click.option(
    "--grant",
    "grants",
    multiple=True,
    type=click.Choice(list(ALLOWS)),
    help="Grant this; repeat the option for more grants.",
)


def help_alone(context: click.Context) -> None:
    """Print the help of a command group that was called without a command."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
