"""A way to call the command line inside the test's own process."""

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
    """What one call printed, and its exit status."""

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
    """`call("compose", "a.yaml", stdin=b"")`, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, stdin: bytes = b"") -> Called:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        status = run(list(arguments))
        printed = capfdbinary.readouterr()
        return Called(status=status, out=printed.out.decode(), err=printed.err.decode())

    return call


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, Any], str]:
    """`write("a.json", value)`: a file with text, or with a value as JSON, in that folder."""

    def write(name: str, content: Any) -> str:
        text = content if isinstance(content, str) else json.dumps(content)
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return name

    return write
