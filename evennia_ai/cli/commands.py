"""The commands of `evennia-ai` and their options; each only translates."""

from pathlib import Path
from typing import Literal

import click

import evennia_ai as package
from evennia_ai.prompt.components import ALLOWS, Grant

FILE = click.Path(path_type=Path)


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, invoke_without_command=True)
@click.version_option(package.__version__, prog_name="evennia-ai")
@click.pass_context
def evennia_ai(context: click.Context) -> None:
    """Compose, explain and check prompts of evennia_ai from files, without the game."""
    _help_alone(context)


@evennia_ai.command()
@click.argument("files", nargs=-1, type=FILE, metavar="FILE...")
@click.option("--json", "as_json", is_flag=True, help="Print the result object.")
@click.option("--explain", "item", metavar="ITEM", help="Tell everything about one item.")
@click.option("--jsonl", is_flag=True, help="One scenario a line from standard input.")
def compose(files: tuple[Path, ...], as_json: bool, item: str | None, jsonl: bool) -> int:
    """Compose the prompts that scenario files describe, and explain every piece.

    ITEM is an origin such as component:mood or lore:harbour#7, its key alone, the name of an entry,
    or the number of a message.
    """
    from evennia_ai.cli import composing

    if jsonl and (files or item):
        raise click.UsageError(
            "--jsonl reads scenarios from standard input: no files, no --explain"
        )
    if jsonl:
        return composing.compose_lines(composing.standard_input())
    if not files:
        raise click.UsageError("name at least one scenario file, or use --jsonl")
    return composing.compose_files(files, as_json=as_json, item=item)


@evennia_ai.group(invoke_without_command=True)
@click.pass_context
def card(context: click.Context) -> None:
    """Character cards: what they hold, their forms, and their way into a game and out of it."""
    _help_alone(context)


@card.command("show")
@click.argument("file", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="Print an object.")
@click.option("--language", default="en", help="Language of the creator's notes.")
@click.option("--group", is_flag=True, help="With the greetings that are for groups only.")
def card_show(file: Path, as_json: bool, language: str, group: bool) -> int:
    """Show what a card holds. Nothing is written."""
    from evennia_ai.cli import cards

    return cards.show(file, as_json=as_json, language=language, group=group)


@card.command("lint")
@click.argument("file", type=FILE)
def card_lint(file: Path) -> int:
    """Check a card: status 1 and the findings, or 0 and nothing."""
    from evennia_ai.cli import cards

    return cards.lint(file)


@card.command("convert")
@click.argument("source", type=FILE, metavar="IN")
@click.argument("target", type=FILE, metavar="OUT")
@click.option("--to", "form", type=click.Choice(["json", "png", "charx"]), required=True)
@click.option("--with-v2", is_flag=True, help="With the V2 copy for other programs (png alone).")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
def card_convert(
    source: Path, target: Path, form: Literal["json", "png", "charx"], with_v2: bool, force: bool
) -> int:
    """Write a card as Card V3 in JSON, in a PNG picture or in a CHARX archive, without loss."""
    from evennia_ai.cli import cards

    return cards.convert(source, target, form=form, with_v2=with_v2, force=force)


@card.command("import")
@click.argument("file", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="Print an object.")
@click.option("--game", type=FILE, metavar="DIR", help="The game's folder; the import waits there.")
@click.option("--name", help="The card's name in the game, by default its own.")
@click.option("--approve", is_flag=True, help="Put it in force at once.")
@click.option(
    "--grant",
    "grants",
    multiple=True,
    type=click.Choice(list(ALLOWS)),
    help="What it may do; once for each.",
)
def card_import(
    file: Path,
    *,
    as_json: bool,
    game: Path | None,
    name: str | None,
    approve: bool,
    grants: tuple[Grant, ...],
) -> int:
    """Report what a card would do in a game; with --game also store it there.

    Without --game nothing is stored, and the report is that of a card with the grants named.
    """
    from evennia_ai.cli import importing

    if game is None:
        if approve or name is not None:
            raise click.UsageError("--approve and --name need --game DIR")
        return importing.report_on(file, grants=frozenset(grants), as_json=as_json)
    if grants and not approve:
        raise click.UsageError("--grant needs --approve: an import that waits has no grants")
    return importing.import_into(
        game, file, name=name, grants=frozenset(grants) if approve else None, as_json=as_json
    )


@card.command("export")
@click.argument("name")
@click.argument("target", type=FILE, metavar="OUT")
@click.option("--game", type=FILE, metavar="DIR", default=".", help="The game's folder.")
@click.option("--to", "form", type=click.Choice(["json", "png", "charx"]), help="Default: as OUT.")
@click.option("--with-v2", is_flag=True, help="With the V2 copy for other programs (png alone).")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@click.option("--revision", type=click.IntRange(min=1), help="Default: the one in force.")
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
    from evennia_ai.cli import cards

    return cards.export_from(
        game, name, target, form=form, with_v2=with_v2, force=force, number=revision
    )


@evennia_ai.command()
@click.option("--npc", required=True, metavar="NAME|#REF", help="Whose turn.")
@click.option("--turn", "number", type=click.IntRange(min=1), help="Its number.")
@click.option("--diff", "with_diff", is_flag=True, help="With what today's edits would change.")
@click.option("--against", type=FILE, metavar="FILE", help="What this edit would change.")
@click.option("--last", "newest", type=click.IntRange(min=1), help="So many turns; default: all.")
@click.option("--json", "as_json", is_flag=True, help="Print an object; with --against, lines.")
@click.option("--game", type=FILE, metavar="DIR", default=".", help="The game's folder.")
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
    """Show the prompt of a past turn to the letter, from its records alone.

    With --against: compose past turns again with the edit in FILE (components, card, lorebooks,
    notes, settings, as in a scenario) and show what would be otherwise. Nothing is stored.
    """
    from evennia_ai.cli import history as records

    if against is not None:
        if with_diff or (number is not None and newest is not None):
            raise click.UsageError("--against takes --turn or --last, and no --diff")
        return records.replay_against(
            game, npc, against, newest=newest, number=number, as_json=as_json
        )
    if number is None or newest is not None:
        raise click.UsageError("name one turn with --turn N; --last goes with --against")
    return records.replay_turn(game, npc, number, with_diff=with_diff, as_json=as_json)


@evennia_ai.group(invoke_without_command=True)
@click.pass_context
def history(context: click.Context) -> None:
    """What is recorded of the NPCs of a game: check it, take it out and in."""
    _help_alone(context)


@history.command("verify")
@click.option("--npc", metavar="NAME|#REF", help="Whose records; default: all of the game.")
@click.option("--json", "as_json", is_flag=True, help="Print an object.")
@click.option("--game", type=FILE, metavar="DIR", default=".", help="The game's folder.")
def history_verify(*, npc: str | None, as_json: bool, game: Path) -> int:
    """Check by their hashes whether the records are what was written: status 1 where not."""
    from evennia_ai.cli import history as records

    return records.verify(game, npc, as_json=as_json)


@history.command("export")
@click.argument("target", type=FILE, metavar="OUT")
@click.option("--npc", required=True, metavar="NAME|#REF", help="Whose conversation.")
@click.option("--conversation", "number", type=click.IntRange(min=1), help="Its number.")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@click.option("--game", type=FILE, metavar="DIR", default=".", help="The game's folder.")
def history_export(target: Path, *, npc: str, number: int | None, force: bool, game: Path) -> int:
    """Write a conversation as lines of JSON, with all that was said in it."""
    from evennia_ai.cli import history as records

    return records.export(game, npc, target, number=number, force=force)


@history.command("import")
@click.argument("source", type=FILE, metavar="FILE")
@click.option("--npc", required=True, metavar="NAME|#REF", help="Who remembers it from now on.")
@click.option("--game", type=FILE, metavar="DIR", default=".", help="The game's folder.")
def history_import(source: Path, *, npc: str, game: Path) -> int:
    """Take over a conversation that was exported; all of it or nothing."""
    from evennia_ai.cli import history as records

    return records.take_in(game, npc, source)


@evennia_ai.group(invoke_without_command=True)
@click.pass_context
def lore(context: click.Context) -> None:
    """Look at lorebooks."""
    _help_alone(context)


@lore.command("show")
@click.argument("file", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="Print an object.")
def lore_show(file: Path, as_json: bool) -> int:
    """Show the entries of a lorebook. Nothing is written."""
    from evennia_ai.cli import lore as lore_room

    return lore_room.show(file, as_json=as_json)


@lore.command("lint")
@click.argument("file", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="Print an object.")
def lore_lint(file: Path, as_json: bool) -> int:
    """Check a lorebook: status 1 and the findings, or 0 and nothing."""
    from evennia_ai.cli import lore as lore_room

    return lore_room.lint(file, as_json=as_json)


@lore.command("convert")
@click.argument("source", type=FILE, metavar="IN")
@click.argument("target", type=FILE, metavar="OUT")
@click.option("--to", "form", type=click.Choice(["v3", "world"]), required=True)
@click.option("--force", is_flag=True, help="Write over a file that is there.")
def lore_convert(source: Path, target: Path, form: Literal["v3", "world"], force: bool) -> int:
    """Write a lorebook as a V3 lorebook or as a world file of SillyTavern, without loss."""
    from evennia_ai.cli import lore as lore_room

    return lore_room.convert(source, target, form=form, force=force)


@evennia_ai.group(invoke_without_command=True)
@click.pass_context
def knowledge(context: click.Context) -> None:
    """Knowledge bases of a game: take folders of pages in, search, write folders."""
    _help_alone(context)


@knowledge.command("import")
@click.argument("source", type=FILE, metavar="FOLDER")
@click.option("--base", "key", metavar="KEY", help="Its key; default: the folder's name.")
@click.option("--dry-run", is_flag=True, help="Tell what would change; write nothing.")
@click.option("--remove", is_flag=True, help="Remove pages that the folder does not have.")
@click.option("--json", "as_json", is_flag=True, help="Print an object.")
@click.option("--game", type=FILE, metavar="DIR", default=".", help="The game's folder.")
def knowledge_import(
    source: Path, *, key: str | None, dry_run: bool, remove: bool, as_json: bool, game: Path
) -> int:
    """Store the pages of a folder in a game: all of them, or nothing."""
    from evennia_ai.cli import knowledge as pages

    return pages.take_in(game, source, key=key, dry_run=dry_run, remove=remove, as_json=as_json)


@knowledge.command("search")
@click.argument("base")
@click.argument("words", nargs=-1, required=True)
@click.option("--most", type=click.IntRange(1, 100), default=10, help="So many pages.")
@click.option("--json", "as_json", is_flag=True, help="Print an object.")
@click.option("--game", type=FILE, metavar="DIR", default=".", help="The game's folder.")
def knowledge_search(
    base: str, words: tuple[str, ...], *, most: int, as_json: bool, game: Path
) -> int:
    """Show the pages of a base that have these words, best first."""
    from evennia_ai.cli import knowledge as pages

    return pages.search(game, base, " ".join(words), most=most, as_json=as_json)


@knowledge.command("export")
@click.argument("base")
@click.argument("target", type=FILE, metavar="FOLDER")
@click.option("--game", type=FILE, metavar="DIR", default=".", help="The game's folder.")
def knowledge_export(base: str, target: Path, *, game: Path) -> int:
    """Write the pages of a base into a new folder, which an import reads back."""
    from evennia_ai.cli import knowledge as pages

    return pages.export(game, base, target)


def _help_alone(context: click.Context) -> None:
    """Print the help of a group that was called without a command."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
