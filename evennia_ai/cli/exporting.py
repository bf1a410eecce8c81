"""`evennia-ai card export`: a card of a game, written as a Card V3 file."""

import time
from pathlib import Path
from typing import Final

from evennia_ai.cards.dumping import FORMS, Form, dump_card, left_out
from evennia_ai.cards.loading import load_card
from evennia_ai.cli.game_folder import opened_game
from evennia_ai.cli.output import write_lines
from evennia_ai.cli.writing import write_file
from evennia_ai.errors import FormatError
from evennia_ai.text.columns import visible

_FORM_OF: Final[dict[str, Form]] = {f".{form}": form for form in FORMS}


def export_from(
    folder: Path,
    name: str,
    target: Path,
    *,
    form: Form | None,
    with_v2: bool,
    force: bool,
    number: int | None,
) -> int:
    """Write a card of the game in `folder`; a file that is there stays unless `force`."""
    form = form or form_of(target)
    path = target.absolute()  # to open a game is to go into its folder
    conf = opened_game(folder)
    from evennia_ai.cli.game_cards import file_of

    name, content = file_of(name, number)
    found = load_card(content, limits=conf.card_limits)
    made = dump_card(
        found,
        form,
        with_v2=with_v2,
        modified_at=int(time.time()),
        limits=conf.card_limits,
    )
    write_file(path, made, kind="card", force=force)
    copy = " with a V2 copy" if with_v2 else ""
    lines = [*(f"{name}: {notice}" for notice in left_out(found, form))]
    write_lines(visible(line) for line in [*lines, f"{target}: {name} as {form}{copy}"])
    return 0


def form_of(target: Path) -> Form:
    """The form that a file's name asks for; FormatError where it asks for none."""
    form = _FORM_OF.get(target.suffix.lower())
    if form is None:
        known = ", ".join(_FORM_OF)
        raise FormatError("card", f"{target}: its name says no form ({known}); name one with --to")
    return form
