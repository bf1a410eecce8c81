"""`evennia-ai check`: compose every kept case of a game with the texts that it has now.

The report also has the lints of the game's lorebooks and cards, and the size of the prompts.
"""

import asyncio
import contextlib
import json
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

from evennia_ai.cli.cards import card_findings
from evennia_ai.cli.game.asking import ask_again
from evennia_ai.cli.output import BAD_INPUT, FINDING, write_file, write_json, write_lines
from evennia_ai.cli.terminal import shown_progress
from evennia_ai.engine.errors import EvenniaAIError, FormatError
from evennia_ai.engine.foreign.documents import Finding
from evennia_ai.engine.text.columns import escape_controls, pad_text, wrap_text
from evennia_ai.formats.kept import KIND, change_lines
from evennia_ai.formats.lorebooks.editing.lints import lint_book
from evennia_ai.npc.views.kept import CheckedCase, KeptChecker, case_files
from evennia_ai.npc.views.parse_cache import attached_book, parsed_card
from evennia_ai.services.settings.game import Conf
from evennia_ai.store.authored.cards import CARDS, get_card
from evennia_ai.store.authored.lorebooks import LOREBOOKS, get_book

with contextlib.redirect_stdout(sys.stderr):  # Evennia may print while it is imported.
    from evennia_ai.npc.senses.presence import find_again

ALL: Final = "all"
_COLUMN: Final = 36
_WORDS: Final = {"same": "same", "differs": "DIFFERS", "unreadable": "UNREADABLE"}


def check(
    folder: Path,
    conf: Conf,
    *,
    accept: Collection[str],
    only_changed: bool,
    ask: bool,
    as_json: bool,
    junit: Path | None,
) -> int:
    """Check the kept cases of a folder and print what differs.

    With `ask`, the model with which NPCs speak answers each prompt that differs.

    Return 1 if a prompt differs, 2 if a case cannot be read or composed.
    """
    files = case_files(folder)
    if not files:
        raise FormatError(
            KIND, f"{folder}: has no kept answers; the command ai/keep in the game writes them"
        )
    if unknown := sorted(set(accept) - {ALL, *(path.stem for path in files)}):
        named = ", ".join(unknown)
        raise FormatError(KIND, f"{folder}: there is no kept answer {named} to accept")
    checker, accepted = KeptChecker(find_again), []
    found: list[CheckedCase] = []
    for path in _with_progress(files):
        one = checker.check(path, only_changed=only_changed)
        if one.state == "differs" and (ALL in accept or one.name in accept):
            checker.accept(path)
            accepted.append(one.name)
            one = replace(one, state="same")
        found.append(one)
    differing = [one for one in found if one.state == "differs"]
    replies = asyncio.run(ask_again(differing, conf)) if ask and differing else {}
    findings = list(_findings(conf))
    if junit is not None:
        write_file(junit, _junit(found), kind="report", force=True)
    if as_json:
        write_json(_report(found, accepted, replies, findings), indent=2)
    else:
        write_lines(map(escape_controls, _lines(found, accepted, replies, findings)))
    states = {one.state for one in found}
    return BAD_INPUT if "unreadable" in states else FINDING if "differs" in states else 0


def _with_progress(files: Sequence[Path]) -> Iterator[Path]:
    with shown_progress() as progress:
        for done, path in enumerate(files, start=1):
            yield path
            progress("cases", done, len(files))


def _lines(
    found: Sequence[CheckedCase],
    accepted: Collection[str],
    replies: Mapping[str, str],
    findings: Sequence[Finding],
) -> Iterator[str]:
    for one in found:
        about = f": {one.case.about}" if one.case is not None and one.case.about else ""
        word = "accepted" if one.name in accepted else _WORDS[one.state]
        yield f"{word:10} {one.name}{about}"
        if one.problem:
            yield f"  {one.problem}"
        if one.change is not None and one.name not in accepted:
            yield from (f"  {line}" for line in change_lines(one.change))
        if one.name in replies and one.case is not None:
            yield from _side_by_side(("reply as kept", one.case.reply), ("now", replies[one.name]))
    yield ""
    yield _summary_line(found)
    yield from _budget_lines(found)
    yield f"lorebooks and cards: {len(findings)} findings"
    yield from (f"  {finding}" for finding in findings)


def _side_by_side(*columns: tuple[str, str]) -> Iterator[str]:
    """Yield two texts with their titles in two columns."""
    wrapped = [[title, *wrap_text(text, _COLUMN)] for title, text in columns]
    for left, right in zip_longest(*wrapped, fillvalue=""):
        yield f"  {pad_text(left, _COLUMN)} | {right}".rstrip()


def _summary(found: Iterable[CheckedCase]) -> dict[str, int]:
    counts = {"cases": 0, "same": 0, "differs": 0, "unreadable": 0, "tokens": 0}
    for one in found:
        counts["cases"] += 1
        counts[one.state] += 1
        change = one.change
        if one.state == "differs" and change is not None and change.tokens_before is not None:
            counts["tokens"] += change.tokens - change.tokens_before
    return counts


def _summary_line(found: Sequence[CheckedCase]) -> str:
    counts = _summary(found)
    return (
        f"{counts['cases']} kept answers: {counts['same']} same, {counts['differs']} different,"
        f" {counts['unreadable']} unreadable; {counts['tokens']:+} tokens in all"
    )


def _budget_lines(found: Sequence[CheckedCase]) -> Iterator[str]:
    """Yield lines about the size of the composed prompts. The size decides the cost."""
    made = [(one.name, one.prompt) for one in found if one.prompt is not None]
    if not made:
        return
    name, largest = max(made, key=lambda pair: pair[1].tokens)
    share = 100 * largest.tokens // max(largest.limit_tokens, 1)
    yield (
        f"budget: the largest prompt, of {name}, has {largest.tokens} of {largest.limit_tokens}"
        f" tokens ({share} %)"
    )
    tokens = sum(prompt.tokens for _, prompt in made)
    stable = sum(prompt.stable_tokens for _, prompt in made)
    yield (
        f"cost: {tokens // len(made)} tokens for a prompt on average; a provider can find"
        f" {100 * stable // max(tokens, 1)} % of them in its cache in the next turn"
    )


def _findings(conf: Conf) -> Iterator[Finding]:
    """Yield what the lints find in the lorebooks and the cards of the game."""
    for name in LOREBOOKS.list_keys():
        try:
            stored = get_book(name)
            of_book = lint_book(
                attached_book(stored),
                rules=conf.lore,
                limit_tokens=conf.limit_tokens,
                source=json.loads(stored.source),
            )
            yield from (Finding(f"lorebook {name}: {one}", one.is_error) for one in of_book)
        except EvenniaAIError as error:
            yield Finding(f"lorebook {name}: cannot be read: {error}", is_error=True)
    for name in CARDS.list_keys():
        try:
            for finding in card_findings(parsed_card(get_card(name))):
                yield Finding(f"card {name}: {finding}", finding.is_error)
        except EvenniaAIError as error:
            yield Finding(f"card {name}: cannot be read: {error}", is_error=True)


def _report(
    found: Sequence[CheckedCase],
    accepted: Collection[str],
    replies: Mapping[str, str],
    findings: Sequence[Finding],
) -> dict[str, Any]:
    return {
        "cases": [
            {
                "name": one.name,
                "file": str(one.path),
                "state": "accepted" if one.name in accepted else one.state,
                "about": one.case.about if one.case is not None else "",
                "problem": one.problem,
                "change": asdict(one.change) if one.change is not None else None,
                "reply": one.case.reply if one.case is not None else "",
                "new_reply": replies.get(one.name),
            }
            for one in found
        ],
        "summary": _summary(found),
        "findings": [{"text": one.text, "is_error": one.is_error} for one in findings],
    }


def _junit(found: Sequence[CheckedCase]) -> bytes:
    """Return the report as JUnit XML, which most services for continuous integration read."""
    counts = _summary(found)
    suite = ElementTree.Element(
        "testsuite",
        name="kept cases",
        tests=str(counts["cases"]),
        failures=str(counts["differs"]),
        errors=str(counts["unreadable"]),
    )
    for one in found:
        case = ElementTree.SubElement(suite, "testcase", classname="kept", name=one.name)
        if one.state == "unreadable":
            error = ElementTree.SubElement(case, "error", message=escape_controls(one.problem))
            error.text = escape_controls(one.problem)
        elif one.state == "differs" and one.change is not None:
            failed = ElementTree.SubElement(case, "failure", message="gets another prompt")
            failed.text = "\n".join(map(escape_controls, change_lines(one.change)))
    return bytes(ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True))
