"""`evennia-ai card`: what a card holds, and what is doubtful about it. Nothing is written."""

from pathlib import Path
from typing import Any

from evennia_ai.cards.card import Card, greetings, notes_in
from evennia_ai.cards.components import character_book
from evennia_ai.cli.lore import told
from evennia_ai.cli.output import write_json, write_lines
from evennia_ai.cli.refusals import FINDING
from evennia_ai.lorebook.lints import lints
from evennia_ai.prompt.columns import WIDTH, visible, wrapped
from evennia_ai.scenario.files import card_file

_TEXTS = (
    *("description", "personality", "scenario", "system_prompt", "post_history_instructions"),
    "mes_example",
)


def show(path: Path, *, as_json: bool, language: str, group: bool) -> int:
    """Print the card."""
    card = card_file(path)
    if as_json:
        write_json(described(card, language=language, group=group), indent=2)
    else:
        write_lines(_lines(card, language=language, group=group))
    return 0


def lint(path: Path) -> int:
    """Print what the author should know of the card, its book and entries that never wake."""
    card = card_file(path)
    book = character_book(card, trust="imported")
    of_book = told(lints(book)) if book else ()
    findings = [*card.notices, *(f"lorebook: {finding}" for finding in of_book)]
    write_lines(visible(f"{path}: {finding}") for finding in findings)
    return FINDING if findings else 0


def described(card: Card, *, language: str, group: bool) -> dict[str, Any]:
    """The card as the object that `card show --json` prints."""
    return {
        "name": card.name,
        "nickname": card.nickname,
        "spec": card.spec,
        "spec_version": card.spec_version,
        "creator": card.creator,
        "character_version": card.character_version,
        "tags": list(card.tags),
        **{text: getattr(card, text) for text in _TEXTS},
        "greetings": list(greetings(card, group=group)),
        "creator_notes": notes_in(card, language),
        "assets": [
            {"type": a.type, "uri": a.uri, "name": a.name, "ext": a.ext, "resolved": False}
            for a in card.assets
        ],
        "lorebook_entries": len(_entries(card)),
        "notices": list(notices_of(card)),
    }


def notices_of(card: Card) -> tuple[str, ...]:
    """What is doubtful about the card and about its book."""
    book = character_book(card, trust="imported")
    return (*card.notices, *(f"lorebook: {notice}" for notice in (book.notices if book else ())))


def _entries(card: Card) -> list[Any]:
    listed = (card.character_book or {}).get("entries", [])
    return list(listed)


def _lines(card: Card, *, language: str, group: bool) -> list[str]:
    nickname = f" ({card.nickname})" if card.nickname else ""
    lines = [visible(f"{card.name}{nickname}, {card.spec} {card.spec_version}")]
    for title in _TEXTS:
        lines += _section(title, getattr(card, title))
    for number, text in enumerate(greetings(card, group=group)):
        lines += _section(f"greeting {number}", text)
    lines += _section("creator_notes", notes_in(card, language))
    lines.append(f"lorebook entries: {len(_entries(card))}")
    return lines + [visible(f"notice: {notice}") for notice in notices_of(card)]


def _section(title: str, text: str) -> list[str]:
    if not text.strip():
        return []
    return [f"{title}:", *(f"    {line}" for line in wrapped(text, WIDTH - 4))]
