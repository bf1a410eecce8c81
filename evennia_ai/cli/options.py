"""Options that several commands have."""

from pathlib import Path
from typing import Any

import click

FILE = click.Path(path_type=Path)

GAME = click.option("--game", type=FILE, metavar="DIR", default=".", help="The game's folder.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
FORCE = click.option("--force", is_flag=True, help="Overwrite an existing file.")
V2 = click.option("--with-v2", is_flag=True, help="Add a V2 copy for other programs (only png).")


class _GrantName(click.ParamType):  # type: ignore[type-arg]
    """The name of a grant. The names are imported when they are needed, for a quick start."""

    name = "grant"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"[{'|'.join(_grant_names())}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return click.Choice(_grant_names()).convert(value, param, ctx)


def _grant_names() -> list[str]:
    from evennia_ai.engine.prompt.components import ALLOWS

    return list(ALLOWS)


GRANT = click.option(
    "--grant",
    "grants",
    multiple=True,
    type=_GrantName(),
    help="Grant this; repeat the option for more grants.",
)


def help_alone(context: click.Context) -> None:
    """Print the help of a command group that was called without a command."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
