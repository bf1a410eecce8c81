"""The examples of docs/scenarios.md and docs/cli.md run, and print what the docs say."""

import io
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evennia_ai.cli import run

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = ("scenarios.md", "cli.md")
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page: str, language: str) -> Iterator[tuple[str, str]]:
    """Name and text of the page's blocks in this language."""
    for found, name, text in BLOCK.findall((DOCS / page).read_text(encoding="utf-8")):
        if found == language:
            yield name, text


def commands() -> Iterator[tuple[str, str, str]]:
    """Page, command and what it prints."""
    for page in PAGES:
        for _, text in blocks(page, "console"):
            for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                command, _, printed = part.partition("\n")
                yield page, command, printed


@pytest.mark.parametrize(("page", "command", "printed"), list(commands()))
def test_a_command_of_the_docs_prints_what_they_say(
    page: str,
    command: str,
    printed: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    for language in ("yaml", "json"):
        for name, text in blocks(page, language):
            (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    before, pipe, after = command.partition(" | ")
    typed = shlex.split(before)[1] if pipe else ""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(typed.encode())))
    status = run(shlex.split(after if pipe else before)[1:])
    shown = capfdbinary.readouterr()
    assert shown.err == b""
    assert status == (1 if " lint " in command else 0)
    assert shown.out.decode().rstrip("\n") == printed.rstrip("\n")


@pytest.mark.parametrize("text", [text for page in PAGES for _, text in blocks(page, "python")])
def test_python_of_the_docs_runs(text: str) -> None:
    exec(compile(text, "docs", "exec"), {})


def test_both_pages_have_examples() -> None:
    assert {page for page, _, _ in commands()} == set(PAGES)
