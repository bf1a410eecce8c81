"""The commands about what NPCs were told: `replay`, `check` and `history`. Options and calls."""

from pathlib import Path

import click

from evennia_ai.cli.game import opened_game
from evennia_ai.cli.options import FILE, FORCE, GAME, JSON, help_alone


@click.command()
@click.option("--npc", required=True, metavar="NAME|#REF", help="The NPC of the turn.")
@click.option("--turn", "number", type=click.IntRange(min=1), help="The number of the turn.")
@click.option(
    "--diff", "with_diff", is_flag=True, help="Show what the edits since then would change."
)
@click.option(
    "--against", type=FILE, metavar="FILE", help="Show what the edit in this file would change."
)
@click.option(
    "--last", "newest", type=click.IntRange(min=1), help="Only the newest turns; default: all."
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON; with --against, one object per line."
)
@GAME
def replay(
    npc: str,
    *,
    number: int | None,
    with_diff: bool,
    against: Path | None,
    newest: int | None,
    as_json: bool,
    game: Path,
) -> int:
    """Show the exact prompt of a past turn, rebuilt from its records.

    With --against: compose past turns again with the edit in FILE (components, card, lorebooks,
    notes, settings, as in a scenario) and show what would be different. Nothing is stored.
    """
    if against is None and (number is None or newest is not None):
        raise click.UsageError("name one turn with --turn N; --last goes with --against")
    if against is not None and (with_diff or (number is not None and newest is not None)):
        raise click.UsageError("--against takes --turn or --last, and no --diff")
    edit = against and against.absolute()
    opened_game(game)
    from evennia_ai.cli.game import history as records

    if edit is not None:
        return records.replay_against(npc, edit, newest=newest, number=number, as_json=as_json)
    assert number is not None
    return records.replay_turn(npc, number, with_diff=with_diff, as_json=as_json)


@click.command()
@click.argument("folder", type=FILE, required=False, metavar="[FOLDER]")
@click.option(
    "--accept", multiple=True, metavar="CASE", help="Its prompt is right now; all: every prompt."
)
@click.option(
    "--changed", is_flag=True, help="Only cases whose texts have another revision than before."
)
@click.option("--ask", is_flag=True, help="Ask the model again where the prompt differs.")
@click.option("--junit", type=FILE, metavar="FILE", help="Also write a report in JUnit's XML.")
@JSON
@GAME
def check(
    folder: Path | None,
    *,
    accept: tuple[str, ...],
    changed: bool,
    ask: bool,
    junit: Path | None,
    as_json: bool,
    game: Path,
) -> int:
    """Compose the kept cases of a game with its texts of today, and show which prompts differ.

    FOLDER is the folder of the cases that ai/keep wrote; default: the one in the game's settings.
    The status is 1 if a prompt differs, 2 if a case cannot be read.
    """
    whole, report = folder and folder.absolute(), junit and junit.absolute()
    conf = opened_game(game)
    from evennia_ai.cli.game import kept

    return kept.check(
        whole or conf.kept_folder,
        conf,
        accept=accept,
        only_changed=changed,
        ask=ask,
        as_json=as_json,
        junit=report,
    )


@click.group(invoke_without_command=True)
@click.pass_context
def history(context: click.Context) -> None:
    """The recorded conversations of a game's NPCs: check, export and import them."""
    help_alone(context)


@history.command("verify")
@click.option("--npc", metavar="NAME|#REF", help="Only this NPC; default: all.")
@JSON
@GAME
def history_verify(*, npc: str | None, as_json: bool, game: Path) -> int:
    """Check by their hashes that no record was changed. The status is 1 if one was."""
    opened_game(game)
    from evennia_ai.cli.game import history as records

    return records.verify(npc, as_json=as_json)


@history.command("export")
@click.argument("target", type=FILE, metavar="OUT")
@click.option("--npc", required=True, metavar="NAME|#REF", help="The NPC of the conversation.")
@click.option("--conversation", "number", type=click.IntRange(min=1), help="Which one.")
@FORCE
@GAME
def history_export(target: Path, *, npc: str, number: int | None, force: bool, game: Path) -> int:
    """Write a conversation as lines of JSON, with everything that was said in it."""
    path = target.absolute()
    opened_game(game)
    from evennia_ai.cli.game import history as records

    return records.export(npc, path, target, number=number, force=force)


@history.command("import")
@click.argument("source", type=FILE, metavar="FILE")
@click.option(
    "--npc", required=True, metavar="NAME|#REF", help="The NPC that gets the conversation."
)
@click.option("--player", metavar="NAME", help="For a chat: the player in it.")
@click.option("--as", "played", metavar="NAME", help="For a chat: the NPC's name in it.")
@GAME
def history_import(
    source: Path, *, npc: str, player: str | None, played: str | None, game: Path
) -> int:
    """Import an exported conversation, or a chat of SillyTavern.

    It is imported whole or not at all.
    """
    path = source.absolute()
    opened_game(game)
    from evennia_ai.cli.game import history as records

    return records.take_in(npc, path, source, player=player or "", played=played or "")
