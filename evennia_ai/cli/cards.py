"""`evennia-ai card`: what a card holds, what is doubtful about it, and other forms of it.

`card export` writes a card of a game as a file of Card V3; `card import` is `cli/importing.py`.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from evennia_ai.cards.assets import StoredAsset
from evennia_ai.cards.card import Card, greetings, notes_in
from evennia_ai.cards.components import character_book
from evennia_ai.cards.dumping import FORMS, Form, dump_card, left_out
from evennia_ai.cards.loading import CardImport, load_card
from evennia_ai.cards.report import import_report
from evennia_ai.cards.suspicions import MENDABLE
from evennia_ai.cli.game.folder import opened_game
from evennia_ai.cli.lore import lint_lines
from evennia_ai.cli.output import FINDING, write_file, write_json, write_lines
from evennia_ai.errors import FormatError
from evennia_ai.lorebook.editing.lints import lints
from evennia_ai.prompt.components import NO_GRANTS
from evennia_ai.text.columns import WIDTH, visible, wrapped

_TEXTS = (
    *("description", "personality", "scenario", "system_prompt", "post_history_instructions"),
    "mes_example",
)


def show(path: Path, *, as_json: bool, language: str, group: bool) -> int:
    """Print the card."""
    found = read(path)
    if as_json:
        write_json(described(found, language=language, group=group), indent=2)
    else:
        write_lines(_lines(found, language=language, group=group))
    return 0


def lint(path: Path) -> int:
    """Print what the author should know of the card, its book and entries that never wake."""
    found = read(path)
    book = character_book(found.card, grants=NO_GRANTS)
    of_book = lint_lines(lints(book)) if book else ()
    findings = [
        *found.notices,
        *(f"lorebook: {finding}" for finding in of_book),
        *_mendable(path, found),
    ]
    write_lines(visible(f"{path}: {finding}") for finding in findings)
    return FINDING if findings else 0


def _mendable(path: Path, found: CardImport) -> Iterator[str]:
    """What makes builders look twice and the author can mend."""
    try:
        suspicions = import_report(found).suspicions
    except FormatError as error:
        raise FormatError(error.kind, f"{path}: {error.message}") from error
    for suspicion in suspicions:
        if suspicion.kind in MENDABLE:
            for sighting in suspicion.sightings:
                yield f"{sighting.where}: {suspicion.text}: {sighting.excerpt}"


def convert(source: Path, target: Path, *, form: Form, with_v2: bool, force: bool) -> int:
    """Write the card as a V3 file of another form; a file that is there stays unless `force`."""
    found = read(source)
    try:
        made = dump_card(found, form, with_v2=with_v2, modified_at=int(time.time()))
    except FormatError as error:
        raise FormatError(error.kind, f"{source}: {error.message}") from error
    write_file(target, made, kind="card", force=force)
    notices = (*found.notices, *left_out(found, form))
    write_lines(visible(f"{source}: {notice}") for notice in notices)
    copy = " with a V2 copy" if with_v2 else ""
    write_lines([visible(f"{target}: {found.card.name} as {form}{copy}")])
    return 0


def read(path: Path) -> CardImport:
    """The card in a file of whatever form; FormatError names the file."""
    try:
        return load_card(path)
    except FormatError as error:
        raise FormatError(error.kind, f"{path}: {error.message}") from error


def described(found: CardImport, *, language: str, group: bool) -> dict[str, Any]:
    """The card as the object that `card show --json` prints."""
    card = found.card
    return {
        "name": card.name,
        "nickname": card.nickname,
        "spec": card.spec,
        "spec_version": card.spec_version,
        "carrier": found.carrier,
        "creator": card.creator,
        "character_version": card.character_version,
        "tags": list(card.tags),
        **{text: getattr(card, text) for text in _TEXTS},
        "greetings": list(greetings(card, group=group)),
        "creator_notes": notes_in(card, language),
        "assets": [_asset(stored) for stored in found.assets],
        "lorebook_entries": len(_entries(card)),
        "notices": list(notices_of(card)),
    }


def _asset(stored: StoredAsset) -> dict[str, Any]:
    asset = stored.asset
    named = {"type": asset.type, "uri": asset.uri, "name": asset.name, "ext": asset.ext}
    return {**named, "resolved": stored.resolved}


def notices_of(card: Card) -> tuple[str, ...]:
    """What is doubtful about the card and about its book."""
    book = character_book(card, grants=NO_GRANTS)
    return (*card.notices, *(f"lorebook: {notice}" for notice in (book.notices if book else ())))


def _entries(card: Card) -> list[Any]:
    listed = (card.character_book or {}).get("entries", [])
    return list(listed)


def _lines(found: CardImport, *, language: str, group: bool) -> list[str]:
    card = found.card
    nickname = f" ({card.nickname})" if card.nickname else ""
    lines = [visible(f"{card.name}{nickname}, {card.spec} {card.spec_version}, {found.carrier}")]
    for title in _TEXTS:
        lines += _section(title, getattr(card, title))
    for number, text in enumerate(greetings(card, group=group)):
        lines += _section(f"greeting {number}", text)
    lines += _section("creator_notes", notes_in(card, language))
    held = sum(stored.resolved for stored in found.assets)
    lines.append(f"lorebook entries: {len(_entries(card))}, files of assets: {held}")
    return lines + [visible(f"notice: {notice}") for notice in notices_of(card)]


def _section(title: str, text: str) -> list[str]:
    if not text.strip():
        return []
    return [f"{title}:", *(f"    {line}" for line in wrapped(text, WIDTH - 4))]


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
    from evennia_ai.cli.game.cards import file_of

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
