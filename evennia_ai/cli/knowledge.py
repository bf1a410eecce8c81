"""`evennia-ai knowledge`: folders of pages into a game and out of it, and a search in one."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from evennia_ai.cli.game.folder import opened_game
from evennia_ai.cli.importing import typed_by
from evennia_ai.cli.output import BAD_INPUT, refuse, write_json, write_lines
from evennia_ai.cli.terminal import shown_progress
from evennia_ai.knowledge.pages.files import ImportProblems
from evennia_ai.text.columns import WIDTH, clipped, visible, wrapped

if TYPE_CHECKING:
    from evennia_ai.cli.game.knowledge import TakenIn
    from evennia_ai.knowledge.backends import Hit

_PASSAGE_LINES: Final = 3
_MOST_NAMES: Final = 20


def take_in(
    folder: Path, source: Path, *, key: str | None, dry_run: bool, remove: bool, as_json: bool
) -> int:
    """Store the pages of a folder in the game, all of them or nothing; again changes nothing.

    A dry run tells what would change.
    """
    path = source.absolute()  # to open a game is to go into its folder
    opened_game(folder)
    from evennia_ai.cli.game import knowledge

    try:
        with shown_progress() as progress:
            done = knowledge.taken_in(
                path, key=key, dry_run=dry_run, remove=remove, by=typed_by(), progress=progress
            )
    except ImportProblems as error:
        for problem in error.problems:
            refuse(f"{source}/{problem}")
        return BAD_INPUT
    if as_json:
        write_json(_object(done, dry_run=dry_run), indent=2)
    else:
        write_lines(_lines(done, source, dry_run=dry_run))
    return 0


def search(folder: Path, key: str, words: str, *, most: int, as_json: bool) -> int:
    """Print the pages of a base that have these words, best first."""
    opened_game(folder)
    from evennia_ai.cli.game import knowledge

    hits = knowledge.found(key, words, most=most)
    if as_json:
        write_json({"hits": [_hit_object(hit) for hit in hits]}, indent=2)
    else:
        write_lines(line for hit in hits for line in _hit_lines(hit))
    return 0


def export(folder: Path, key: str, target: Path) -> int:
    """Write the pages of a base into a new folder, which an import reads back."""
    path = target.absolute()
    opened_game(folder)
    from evennia_ai.cli.game import knowledge

    with shown_progress() as progress:
        count = knowledge.written_out(key, path, progress=progress)
    pages = "1 page" if count == 1 else f"{count} pages"
    write_lines([visible(f"{target}: knowledge base {key}, {pages}")])
    return 0


def _lines(done: "TakenIn", source: Path, *, dry_run: bool) -> Iterator[str]:
    """What an import did, or would do."""
    for kind, names in done.names.items():
        for name in names[:_MOST_NAMES]:
            yield clipped(visible(f"{kind:8} {name}"), WIDTH)
        if len(names) > _MOST_NAMES:
            yield f"{kind:8} and {len(names) - _MOST_NAMES} more"
    counts = ", ".join(f"{len(names)} {kind}" for kind, names in done.names.items())
    end = "; nothing was written (--dry-run)" if dry_run else ""
    yield visible(f"{source}: knowledge base {done.base}: {counts}, {done.same} as before{end}")


def _object(done: "TakenIn", *, dry_run: bool) -> dict[str, Any]:
    names = {kind: list(names) for kind, names in done.names.items()}
    return {"base": done.base, "dry_run": dry_run, **names, "same": done.same}


def _hit_lines(hit: "Hit") -> Iterator[str]:
    yield clipped(visible(hit.page.name.full), WIDTH)
    for line in wrapped(" ".join(hit.passage.split()), WIDTH - 4)[:_PASSAGE_LINES]:
        yield f"    {line}"


def _hit_object(hit: "Hit") -> dict[str, Any]:
    page = hit.page
    return {
        "page": page.name.full,
        "revision": page.revision,
        "score": round(hit.score, 4),
        "passage": hit.passage,
    }
