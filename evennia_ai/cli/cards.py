"""`evennia-ai card`: show, check and convert the file of a card, and report on it."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from evennia_ai.cli.output import FINDING, said_of, write_file, write_json, write_lines
from evennia_ai.cli.terminal import shown_progress
from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import Finding, is_loss
from evennia_ai.engine.lorebook.rules import ActivationRules
from evennia_ai.engine.prompt.components import NO_GRANTS, Grants
from evennia_ai.engine.text.columns import WIDTH, escape_controls, wrap_text
from evennia_ai.formats.cards.card import Card, creator_notes_for, greetings
from evennia_ai.formats.cards.components import (
    DEFAULT_DEPTH,
    character_book,
    describe_changing_texts,
)
from evennia_ai.formats.cards.content_warnings import FIXABLE
from evennia_ai.formats.cards.exporting import FORMS, Form, dump_card, export_losses
from evennia_ai.formats.cards.limits import DEFAULT_LIMITS, CardLimits
from evennia_ai.formats.cards.loading import CardImport, StoredAsset, file_bytes, load_card
from evennia_ai.formats.cards.report.adjustments import list_card_extensions, list_card_macros
from evennia_ai.formats.cards.report.import_report import ImportReport, report_lines, report_object
from evennia_ai.formats.cards.report.making import import_report
from evennia_ai.formats.lorebooks.editing.lints import lint_book
from evennia_ai.formats.regex_scripts import lint_scripts, scripts_in

_TEXTS = (
    *("description", "personality", "scenario", "system_prompt", "post_history_instructions"),
    "mes_example",
)


def show(path: Path, *, as_json: bool, language: str, group: bool) -> int:
    """Print the contents of a card."""
    found = read(path)
    if as_json:
        write_json(described(found, language=language, group=group), indent=2)
    else:
        write_lines(_lines(found, language=language, group=group))
    return 0


def lint(path: Path) -> int:
    """Print the problems of a card and its book. Return 1 if one of them is an error.

    An error is an entry that can never be active, or something that could not be read.
    """
    found = read(path)
    findings = [
        *(Finding(notice, is_loss(notice)) for notice in found.notices),
        *card_findings(found.card),
        *map(Finding, _list_fixable(path, found)),
    ]
    write_lines(escape_controls(f"{path}: {finding}") for finding in findings)
    return FINDING if any(finding.is_error for finding in findings) else 0


def card_findings(card: Card) -> Iterator[Finding]:
    """Yield the problems of a card that was read, and of its book."""
    book = character_book(card, grants=NO_GRANTS)
    yield from map(Finding, list_card_extensions(card))
    for each in lint_book(book, source=card.character_book) if book else ():
        if each.kind != "extension":  # `list_card_extensions` reports them for the whole card.
            yield Finding(f"lorebook: {each}", each.is_error)
    yield from map(Finding, list_card_macros(card))
    yield from map(Finding, describe_changing_texts(card))
    yield from lint_scripts(scripts_in(card.extensions))


def _list_fixable(path: Path, found: CardImport) -> Iterator[str]:
    """Yield the warnings of a card that its author can remove, each with its place."""
    with said_of(path):
        warnings = import_report(found).warnings
    for warning in warnings:
        if warning.kind in FIXABLE:
            for place in warning.places:
                yield f"{place.where}: {warning.text}: {place.excerpt}"


def convert(source: Path, target: Path, *, form: Form, with_v2: bool, force: bool) -> int:
    """Write the card as a V3 file of another form. A file is overwritten only with `force`."""
    found = read(source)
    with said_of(source):
        made = dump_card(found, form, with_v2=with_v2, modified_at=int(time.time()))
    write_file(target, made, kind="card", force=force)
    notices = (*found.notices, *export_losses(found, form))
    told = written_in_words(target, found.card.name, form, with_v2=with_v2)
    write_lines(
        escape_controls(line) for line in (*(f"{source}: {notice}" for notice in notices), told)
    )
    return 0


def written_in_words(target: Path, name: str, form: Form, *, with_v2: bool) -> str:
    """Describe in a line what was written."""
    return f"{target}: {name} as {form}{' with a V2 copy' if with_v2 else ''}"


def read(path: Path) -> CardImport:
    """Return the card in a file of any form. FormatError names the file."""
    with said_of(path):
        return load_card(path)


def described(found: CardImport, *, language: str, group: bool) -> dict[str, Any]:
    """Return the card as the object that `card show --json` prints."""
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
        "creator_notes": creator_notes_for(card, language),
        "assets": [_asset(stored) for stored in found.assets],
        "lorebook_entries": _entry_count(card),
        "notices": list(notices_of(card)),
    }


def _asset(stored: StoredAsset) -> dict[str, Any]:
    asset = stored.asset
    named = {"type": asset.type, "uri": asset.uri, "name": asset.name, "ext": asset.ext}
    return {**named, "resolved": stored.resolved}


def notices_of(card: Card) -> tuple[str, ...]:
    """Return the problems of the card and of its book."""
    book = character_book(card, grants=NO_GRANTS)
    return (*card.notices, *(f"lorebook: {notice}" for notice in (book.notices if book else ())))


def _entry_count(card: Card) -> int:
    book = character_book(card)
    return len(book.entries) if book else 0


def _lines(found: CardImport, *, language: str, group: bool) -> list[str]:
    card = found.card
    nickname = f" ({card.nickname})" if card.nickname else ""
    lines = [
        escape_controls(f"{card.name}{nickname}, {card.spec} {card.spec_version}, {found.carrier}")
    ]
    for title in _TEXTS:
        lines += _section(title, getattr(card, title))
    for number, text in enumerate(greetings(card, group=group)):
        lines += _section(f"greeting {number}", text)
    lines += _section("creator_notes", creator_notes_for(card, language))
    held = sum(stored.resolved for stored in found.assets)
    lines.append(f"lorebook entries: {_entry_count(card)}, files of assets: {held}")
    return lines + [escape_controls(f"notice: {notice}") for notice in notices_of(card)]


def _section(title: str, text: str) -> list[str]:
    if not text.strip():
        return []
    return [f"{title}:", *(f"    {line}" for line in wrap_text(text, WIDTH - 4))]


_FORM_OF: Final[dict[str, Form]] = {f".{form}": form for form in FORMS}


def form_of(target: Path) -> Form:
    """Return the form for the suffix of a file's name. FormatError for other suffixes."""
    form = _FORM_OF.get(target.suffix.lower())
    if form is None:
        known = ", ".join(_FORM_OF)
        raise FormatError(
            "card", f"{target}: its suffix is none of {known}; name the form with --to"
        )
    return form


# The size of a prompt if no game gives one: the defaults of the settings.
USUAL_LIMIT_TOKENS: Final = 8192 - 512
_USUAL_RULES: Final = ActivationRules()


def report_on(path: Path, *, grants: Grants, as_json: bool) -> int:
    """Print what the card would be in a game. Nothing is stored."""
    _, _, report = read_reported(path, grants=grants)
    end = "Nothing was stored: name a game with --game DIR, and the import waits there."
    write_report(report, stored=None, end=end, as_json=as_json)
    return 0


def read_reported(
    path: Path,
    *,
    grants: Grants,
    shown: Path | None = None,
    limits: CardLimits = DEFAULT_LIMITS,
    rules: ActivationRules = _USUAL_RULES,
    post_history_depth: int = DEFAULT_DEPTH,
    limit_tokens: int = USUAL_LIMIT_TOKENS,
) -> tuple[bytes, CardImport, ImportReport]:
    """Return the bytes of a file, its card and the report.

    FormatError names the file as `shown`.
    """
    with said_of(shown or path), shown_progress() as progress:
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
    return content, found, report


def write_report(
    report: ImportReport, *, stored: dict[str, Any] | None, end: str, as_json: bool
) -> None:
    if as_json:
        write_json({**report_object(report), "stored": stored}, indent=2)
    else:
        write_lines([*report_lines(report), "", *wrap_text(end, WIDTH)])
