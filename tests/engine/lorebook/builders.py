"""Builders of books, histories and scans for tests. A test passes only the fields it needs."""

import re
from typing import Any

from evennia_ai.engine.lorebook.activation.activation import Activation
from evennia_ai.engine.lorebook.activation.passes import activate_lore
from evennia_ai.engine.lorebook.book import Lorebook
from evennia_ai.engine.lorebook.rules import ActivationRules
from evennia_ai.engine.lorebook.scan.window import Scan
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import Message, event_message, said
from evennia_ai.engine.prompt.tokens import TokenCounter
from evennia_ai.engine.prompt.trace import Verdict
from evennia_ai.formats.lorebooks.books import read_book

WORDS = TokenCounter(name="words", version="1", count=lambda text: len(text.split()))
DICE = Dice(turn="1", conversation="1")


def an_entry(content: str = "Some lore.", **fields: Any) -> dict[str, Any]:
    """Make an entry as in a V3 file."""
    given = {"keys": ["coin"], "content": content, "extensions": {}, "enabled": True}
    return {**given, "insertion_order": 100, "use_regex": False, **fields}


def a_world_entry(content: str = "Some lore.", **fields: Any) -> dict[str, Any]:
    """Make an entry as in a world file of SillyTavern."""
    given = {"key": ["coin"], "keysecondary": [], "comment": "", "content": content}
    return {**given, "order": 100, "position": 0, "disable": False, **fields}


_HOW = ("attach", "mode", "grants", "revision", "absent")


def a_book(*entries: dict[str, Any], label: str = "book", **more: Any) -> Lorebook:
    """Make a book of V3 entries. `_HOW` lists the arguments that are passed on to `read_book`."""
    how = {name: more.pop(name) for name in _HOW if name in more}
    return read_book({"entries": list(entries), **more}, label=label, **how)


def a_history(*lines: str) -> History:
    """Make a history of lines `role: text` or `role Name: text`."""
    return History(_message(line) for line in lines)


def a_scan(*lines: str, event: str | None = None, notes: tuple[str, ...] = ()) -> Scan:
    """Make a scan of a history. `event` is `Name: text` or only a text."""
    return Scan(history=a_history(*lines), event=an_event(event), texts=notes)


def an_event(text: str | None) -> Message | None:
    if text is None:
        return None
    name, colon, content = text.partition(": ")
    return event_message(content, name=name) if colon else event_message(text)


def awake(
    *books: Lorebook,
    scan: Scan | None = None,
    rules: ActivationRules | None = None,
    limit_tokens: int = 10_000,
    values: dict[str, str] | None = None,
    counter: TokenCounter = WORDS,
    dice: Dice = DICE,
) -> Activation:
    """Run the activation of these books, by default in a conversation about a coin."""
    return activate_lore(
        books,
        scan or a_scan("user: I have a coin"),
        rules=rules or ActivationRules(),
        limit_tokens=limit_tokens,
        counter=counter,
        values=values or {},
        dice=dice,
    )


def texts(result: Activation) -> list[str]:
    return [entry.text for entry in result.entries]


def reasons(result: Activation) -> dict[str, str]:
    """Map each entry to "+ reason" if it is active, else to "- reason", without its charge."""
    return {
        verdict.item.removeprefix("lore:"): f"{'+' if verdict.kept else '-'} {uncharged(verdict)}"
        for verdict in result.verdicts
    }


def uncharged(verdict: Verdict) -> str:
    return re.sub(r"; budget [0-9]+ -> -?[0-9]+ tokens", "", verdict.reason)


def _message(line: str) -> Message:
    who, _, content = line.partition(": ")
    role, _, name = who.partition(" ")
    return said(role, content, name=name or None)  # type: ignore[arg-type]
