"""`evennia-ai card import`: the report on a card, and the way of its file into a game."""

import getpass
from pathlib import Path
from typing import Any, Final

from evennia_ai.cards.components import DEFAULT_DEPTH
from evennia_ai.cards.limits import DEFAULT_LIMITS, CardLimits
from evennia_ai.cards.loading import CardImport, file_bytes, load_card
from evennia_ai.cards.report import ImportReport, import_report, report_lines, report_object
from evennia_ai.cli.game.folder import opened_game
from evennia_ai.cli.output import write_json, write_lines
from evennia_ai.cli.terminal import shown_progress
from evennia_ai.errors import FormatError
from evennia_ai.lorebook.rules import ActivationRules
from evennia_ai.prompt.components import Grants, in_order
from evennia_ai.text.columns import WIDTH, wrapped

# What a prompt has room for where no game says so: the defaults of the settings.
USUAL_LIMIT_TOKENS: Final = 8192 - 512


def report_on(path: Path, *, grants: Grants, as_json: bool) -> int:
    """Print what the card would be in a game; nothing is stored."""
    _, _, report = _read(
        path,
        limits=DEFAULT_LIMITS,
        rules=ActivationRules(),
        post_history_depth=DEFAULT_DEPTH,
        limit_tokens=USUAL_LIMIT_TOKENS,
        grants=grants,
    )
    end = "Nothing was stored: name a game with --game DIR, and the import waits there."
    _write(report, stored=None, end=end, as_json=as_json)
    return 0


def import_into(
    folder: Path, path: Path, *, name: str | None, grants: Grants | None, as_json: bool
) -> int:
    """Let the card wait in the game of `folder`, or put it in force where `grants` are given."""
    path, shown = path.absolute(), path
    conf = opened_game(folder)
    from evennia_ai.cli.game.cards import take_in

    content, found, report = _read(
        path,
        limits=conf.card_limits,
        rules=conf.lore,
        post_history_depth=conf.post_history_depth,
        limit_tokens=conf.limit_tokens,
        grants=frozenset() if grants is None else grants,
        shown=shown,
    )
    taken = take_in(
        name or found.card.name,
        content=content,
        found=found,
        grants=grants,
        by=typed_by(),
    )
    stored = {
        "card": taken.name,
        "number": taken.number,
        "state": taken.state,
        "grants": list(in_order(taken.grants)),
    }
    _write(report, stored=stored, end=taken.text, as_json=as_json)
    return 0


def typed_by() -> str:
    """Who types here, for the revisions."""
    try:
        return f"command line ({getpass.getuser()})"
    except (ImportError, KeyError, OSError):  # nobody has a name here
        return "command line"


def _read(
    path: Path,
    *,
    limits: CardLimits,
    rules: ActivationRules,
    post_history_depth: int,
    limit_tokens: int,
    grants: Grants,
    shown: Path | None = None,
) -> tuple[bytes, CardImport, ImportReport]:
    """The file, the card in it and the report; FormatError names the file as `shown`."""
    try:
        with shown_progress() as progress:
            content = file_bytes(path, limits)
            found = load_card(content, limits=limits, progress=progress)
            report = import_report(
                found,
                grants=grants,
                limit_tokens=limit_tokens,
                rules=rules,
                post_history_depth=post_history_depth,
                size_bytes=len(content),
                progress=progress,
            )
    except FormatError as error:
        raise FormatError(error.kind, f"{shown or path}: {error.message}") from error
    return content, found, report


def _write(report: ImportReport, *, stored: dict[str, Any] | None, end: str, as_json: bool) -> None:
    if as_json:
        write_json({**report_object(report), "stored": stored}, indent=2)
    else:
        write_lines([*report_lines(report), "", *wrapped(end, WIDTH)])
