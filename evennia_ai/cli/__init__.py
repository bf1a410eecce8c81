"""`evennia-ai`, the command line: the engine on files without a game, and work on a game's folder.

Exit status: 0 if all is well, 1 if a check found something, 2 for bad input. Bad input is reported
in one line on standard error, without a traceback, and nothing is written to standard output. The
commands and their options are declared here. Each command imports its own module only when it is
called. So commands on files start without Django, and modules for a game are imported after the
game is opened (`evennia_ai.cli.game`).
"""

import gc
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import click

from evennia_ai.cli.doctor import doctor
from evennia_ai.cli.game import opened_game
from evennia_ai.cli.moving import export_folder, import_folder, move
from evennia_ai.cli.options import FILE, FORCE, GAME, GRANT, JSON, V2, help_alone
from evennia_ai.cli.output import refuse
from evennia_ai.cli.preset_commands import preset
from evennia_ai.cli.record_commands import check, history, replay
from evennia_ai.cli.working import worker, worker_file
from evennia_ai.engine.errors import EvenniaAIError

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit status."""
    # The modules of a command are most of its objects, and stay. Searching them for garbage while
    # they are imported takes a fifth of the time of a short command.
    gc.set_threshold(100_000)
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line for `arguments`, by default those of the process.

    Return the exit status.
    """
    for stream in (sys.stdout, sys.stderr):
        # The terminal's encoding may lack characters that players typed.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        status = evennia_ai.main(arguments, prog_name="evennia-ai", standalone_mode=False)
    except click.exceptions.Abort:
        return INTERRUPTED
    except click.ClickException as error:
        return refuse(error.format_message())
    except (EvenniaAIError, RecursionError) as error:
        return refuse(error)
    except SystemExit:
        # Click raises this when the program that reads our output has ended.
        return 0
    return status if isinstance(status, int) else 0


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, invoke_without_command=True)
@click.version_option(package_name="evennia-ai", prog_name="evennia-ai")
@click.pass_context
def evennia_ai(context: click.Context) -> None:
    """Compose, explain and check prompts of evennia_ai from files, without the game."""
    help_alone(context)


@evennia_ai.command()
@click.argument("files", nargs=-1, type=FILE, metavar="FILE...")
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
@click.option("--explain", "item", metavar="ITEM", help="Explain one item of the prompt.")
@click.option("--jsonl", is_flag=True, help="Read scenarios from standard input, one per line.")
@click.option("--request", is_flag=True, help="FILE is a request that ai/request wrote in a game.")
def compose(
    files: tuple[Path, ...], as_json: bool, item: str | None, jsonl: bool, request: bool
) -> int:
    """Compose the prompts that scenario files describe, and explain each part of them.

    With --request, compose the prompt of a turn again from the file that ai/request wrote. The
    result has the same bytes as the prompt that was sent, and its hash is printed.

    ITEM is an origin such as component:mood or lore:harbour#7, its key without the kind, the name
    of an entry, or the number of a message.
    """
    from evennia_ai.cli import composing

    if jsonl and (files or item or request):
        raise click.UsageError(
            "--jsonl reads scenarios from standard input: no files, no --explain, no --request"
        )
    if jsonl:
        return composing.compose_lines(composing.standard_input())
    if not files:
        wanted = "request" if request else "scenario"
        raise click.UsageError(f"name at least one {wanted} file, or use --jsonl")
    read = composing.read_request if request else composing.read_scenario
    return composing.compose_files(files, as_json=as_json, item=item, read=read)


@evennia_ai.command()
@click.argument("language")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("locale"),
    show_default=True,
    help="The folder of the catalogues.",
)
def catalogue(language: str, folder: Path) -> int:
    """Make or update the translation of the texts for players, and compile it.

    LANGUAGE is a code such as nl. The texts are in FOLDER/<language>/LC_MESSAGES/django.po. Write
    the translations there, and type the command again.
    """
    from evennia_ai.cli import catalogues

    return catalogues.update(folder, language)


@evennia_ai.group(invoke_without_command=True)
@click.pass_context
def card(context: click.Context) -> None:
    """Character cards: show, check and convert them, and move them into and out of a game."""
    help_alone(context)


@card.command("show")
@click.argument("file", type=FILE)
@JSON
@click.option("--language", default="en", help="Language of the creator's notes.")
@click.option("--group", is_flag=True, help="Include the greetings for groups.")
def card_show(file: Path, as_json: bool, language: str, group: bool) -> int:
    """Show what a card holds. Nothing is written."""
    from evennia_ai.cli import cards

    return cards.show(file, as_json=as_json, language=language, group=group)


@card.command("lint")
@click.argument("file", type=FILE)
def card_lint(file: Path) -> int:
    """Check a card and print the findings. The status is 1 if one of them is an error."""
    from evennia_ai.cli import cards

    return cards.lint(file)


@card.command("convert")
@click.argument("source", type=FILE, metavar="IN")
@click.argument("target", type=FILE, metavar="OUT")
@click.option("--to", "form", type=click.Choice(["json", "png", "charx"]), required=True)
@V2
@FORCE
def card_convert(
    source: Path, target: Path, form: Literal["json", "png", "charx"], with_v2: bool, force: bool
) -> int:
    """Write a card as Card V3 in JSON, in a PNG picture or in a CHARX archive, without loss."""
    from evennia_ai.cli import cards

    return cards.convert(source, target, form=form, with_v2=with_v2, force=force)


@card.command("import")
@click.argument("file", type=FILE)
@JSON
@click.option("--game", type=FILE, metavar="DIR", help="Import into the game in this folder.")
@click.option("--name", help="The card's name in the game; default: its own.")
@click.option("--approve", is_flag=True, help="Approve the import at once.")
@GRANT
def card_import(
    file: Path,
    *,
    as_json: bool,
    game: Path | None,
    name: str | None,
    approve: bool,
    grants: tuple[Any, ...],
) -> int:
    """Report what a card would do in a game; with --game also store it there.

    Without --game nothing is stored, and the report assumes the grants that you name with --grant.
    """
    if game is None:
        from evennia_ai.cli import cards

        if approve or name is not None:
            raise click.UsageError("--approve and --name need --game DIR")
        return cards.report_on(file, grants=frozenset(grants), as_json=as_json)
    if grants and not approve:
        raise click.UsageError("--grant needs --approve: an import that waits has no grants")
    path, conf = file.absolute(), opened_game(game)
    from evennia_ai.cli.game import cards as of_game

    given = frozenset(grants) if approve else None
    return of_game.import_card(path, file, conf, name=name, grants=given, as_json=as_json)


@card.command("export")
@click.argument("name")
@click.argument("target", type=FILE, metavar="OUT")
@GAME
@click.option(
    "--to", "form", type=click.Choice(["json", "png", "charx"]), help="Default: the suffix of OUT."
)
@V2
@FORCE
@click.option("--revision", type=click.IntRange(min=1), help="Default: the approved one.")
def card_export(
    name: str,
    target: Path,
    *,
    game: Path,
    form: Literal["json", "png", "charx"] | None,
    with_v2: bool,
    force: bool,
    revision: int | None,
) -> int:
    """Write a card of a game as Card V3 in JSON, in a PNG picture or in a CHARX archive."""
    from evennia_ai.cli.cards import form_of

    form = form or form_of(target)
    path, conf = target.absolute(), opened_game(game)
    from evennia_ai.cli.game import cards

    return cards.export_card(
        name, path, target, conf, form=form, with_v2=with_v2, force=force, number=revision
    )


@evennia_ai.group("lore", invoke_without_command=True)
@click.pass_context
def lorebooks(context: click.Context) -> None:
    """Lorebooks: show, check and convert them."""
    help_alone(context)


@lorebooks.command("show")
@click.argument("file", type=FILE)
@JSON
def lore_show(file: Path, as_json: bool) -> int:
    """Show the entries of a lorebook. Nothing is written."""
    from evennia_ai.cli import lore

    return lore.show(file, as_json=as_json)


@lorebooks.command("lint")
@click.argument("file", type=FILE)
@JSON
def lore_lint(file: Path, as_json: bool) -> int:
    """Check a lorebook and print the findings. The status is 1 if one of them is an error."""
    from evennia_ai.cli import lore

    return lore.lint(file, as_json=as_json)


@lorebooks.command("convert")
@click.argument("source", type=FILE, metavar="IN")
@click.argument("target", type=FILE, metavar="OUT")
@click.option("--to", "form", type=click.Choice(["v3", "world"]), required=True)
@FORCE
def lore_convert(source: Path, target: Path, form: Literal["v3", "world"], force: bool) -> int:
    """Write a lorebook as a V3 lorebook or as a world file of SillyTavern, without loss."""
    from evennia_ai.cli import lore

    return lore.convert(source, target, form=form, force=force)


@evennia_ai.group(invoke_without_command=True)
@click.pass_context
def knowledge(context: click.Context) -> None:
    """Knowledge bases of a game: import folders of pages, search them, export them."""
    help_alone(context)


@knowledge.command("import")
@click.argument("source", type=FILE, metavar="FOLDER")
@click.option(
    "--base", "key", metavar="KEY", help="The knowledge base; default: the folder's name."
)
@click.option("--dry-run", is_flag=True, help="Show what would change; write nothing.")
@click.option("--remove", is_flag=True, help="Remove pages that the folder does not have.")
@JSON
@GAME
def knowledge_import(
    source: Path, *, key: str | None, dry_run: bool, remove: bool, as_json: bool, game: Path
) -> int:
    """Store the pages of a folder in a game: all of them, or none."""
    path = source.absolute()
    opened_game(game)
    from evennia_ai.cli.game import knowledge as pages

    return pages.take_in(path, source, key=key, dry_run=dry_run, remove=remove, as_json=as_json)


@knowledge.command("search")
@click.argument("base")
@click.argument("words", nargs=-1, required=True)
@click.option("--most", type=click.IntRange(1, 100), default=10, help="The most pages to show.")
@JSON
@GAME
def knowledge_search(
    base: str, words: tuple[str, ...], *, most: int, as_json: bool, game: Path
) -> int:
    """Show the pages of a knowledge base that contain these words, the best first."""
    opened_game(game)
    from evennia_ai.cli.game import knowledge as pages

    return pages.search(base, " ".join(words), most=most, as_json=as_json)


@knowledge.command("export")
@click.argument("base")
@click.argument("target", type=FILE, metavar="FOLDER")
@GAME
def knowledge_export(base: str, target: Path, *, game: Path) -> int:
    """Write the pages of a knowledge base into a new folder, which can be imported again."""
    path = target.absolute()
    opened_game(game)
    from evennia_ai.cli.game import knowledge as pages

    return pages.export(base, path, target)


@evennia_ai.command()
@click.argument("npc", required=False, metavar="[NPC]")
@JSON
@GAME
def status(*, npc: str | None, as_json: bool, game: Path) -> int:
    """Show how the NPCs of a game are doing, or one NPC, named as #12 or by its name.

    What only the running game knows, such as who is answering now, is not shown.
    """
    opened_game(game)
    from evennia_ai.cli.game import status as states

    if npc is None:
        return states.show_game(as_json=as_json)
    return states.show_npc(npc, as_json=as_json)


evennia_ai.add_command(doctor)
evennia_ai.add_command(preset)
evennia_ai.add_command(replay)
evennia_ai.add_command(check)
evennia_ai.add_command(history)
evennia_ai.add_command(import_folder)
evennia_ai.add_command(move)
evennia_ai.add_command(export_folder)
evennia_ai.add_command(worker)
evennia_ai.add_command(worker_file)
