"""Fixtures that call the command line in the test's own process."""

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evennia_ai.cli import run


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """The output of one call, and its exit status."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def call(
    capfdbinary: pytest.CaptureFixture[bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., Called]:
    """Return a function that calls the command line in an empty folder: `call("compose", ...)`."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, stdin: bytes = b"") -> Called:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        status = run(list(arguments))
        printed = capfdbinary.readouterr()
        return Called(status=status, out=printed.out.decode(), err=printed.err.decode())

    return call


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, Any], str]:
    """Return a function that writes a text or a JSON value: `write("a.json", value)`."""

    def write(name: str, content: Any) -> str:
        text = content if isinstance(content, str) else json.dumps(content)
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return name

    return write
