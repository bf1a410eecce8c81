"""`evennia-ai library`: what games share, from the folder of one of them."""

from pathlib import Path

import click

from evennia_ai.cli.game import opened_game
from evennia_ai.cli.options import GAME, JSON, help_alone

_NAME = click.argument("name", metavar="BASE|card:NAME")


@click.group("library", invoke_without_command=True)
@click.pass_context
def library(context: click.Context) -> None:
    """What games share: publish knowledge bases and cards, take them, take them out."""
    help_alone(context)


@library.command("list")
@JSON
@GAME
def library_list(*, as_json: bool, game: Path) -> int:
    """Print what the library has, and what this game has of it."""
    opened_game(game)
    from evennia_ai.cli.game import library as shared

    return shared.show(as_json=as_json)


@library.command("publish")
@_NAME
@GAME
def library_publish(name: str, *, game: Path) -> int:
    """Put a base or a card of the game into the library, as it is now."""
    opened_game(game)
    from evennia_ai.cli.game import library as shared

    return shared.publish(name)


@library.command("use")
@_NAME
@GAME
def library_use(name: str, *, game: Path) -> int:
    """Take a base or a card that another game published; a card waits for card/approve."""
    opened_game(game)
    from evennia_ai.cli.game import library as shared

    return shared.use(name)


@library.command("remove")
@_NAME
@GAME
def library_remove(name: str, *, game: Path) -> int:
    """Take a base or a card out of the library; games that use it keep what they have."""
    opened_game(game)
    from evennia_ai.cli.game import library as shared

    return shared.remove(name)
