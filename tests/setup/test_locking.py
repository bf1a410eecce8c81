"""The locks of development: which versions are installed, and that they are what we ask for."""

import json
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from server import installation, locking
from server.installation import installed
from server.locking import EXTRAS, SUPPORTED, lock_of, write_lock
from server.steps import StepError

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WITHOUT_BOUND = {"setuptools", "build", "hatch-vcs", "hatchling", "furo", "regex", "types-PyYAML"}
"""Those that count no major versions, or that only tests ask for."""


def wanted() -> list[Requirement]:
    """What an installation for development asks for."""
    extras = [PROJECT["optional-dependencies"][extra] for extra in ("game", *EXTRAS.split(","))]
    asked = [Requirement(one) for group in (PROJECT["dependencies"], *extras) for one in group]
    return [one for one in asked if one.name != PROJECT["name"]]


def locked(version: str) -> dict[str, Version]:
    text = (ROOT / "requirements" / f"python-{version}.txt").read_text(encoding="utf-8")
    rows = [line.split("==") for line in text.splitlines() if not line.startswith("#")]
    return {name.lower().replace("_", "-"): Version(pinned) for name, pinned in rows}


@pytest.mark.parametrize("version", SUPPORTED)
def test_the_lock_has_what_is_asked_for_within_its_bounds(version: str) -> None:
    pinned, marker = locked(version), {"python_version": version}
    asked = [one for one in wanted() if one.marker is None or one.marker.evaluate(marker)]
    assert [one for one in asked if pinned[one.name.lower()] not in one.specifier] == []


@pytest.mark.parametrize("version", SUPPORTED)
def test_the_lock_names_versions_and_no_place(version: str) -> None:
    text = (ROOT / "requirements" / f"python-{version}.txt").read_text(encoding="utf-8")
    assert "://" not in text
    assert "evennia-ai" not in text


def test_a_major_version_that_may_break_us_is_not_installed() -> None:
    unbounded = {one.name for one in wanted() if "<" not in str(one.specifier)}
    assert unbounded == WITHOUT_BOUND


@pytest.fixture
def pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that would be run in an empty checkout."""
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / ".venv").mkdir()
    commands: list[list[str]] = []
    monkeypatch.setattr(
        installation, "run", lambda _, command, **__: commands.append([str(one) for one in command])
    )
    return commands


def test_what_is_locked_is_installed_again_when_the_lock_changes(
    tmp_path: Path, pip: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".venv/bin").mkdir()
    (tmp_path / ".venv/bin/python").touch()
    versions = tmp_path / "lock.txt"
    for text in ("click==8.1\n", "click==8.1\n", "click==8.2\n"):
        versions.write_text(text)
        installed(tmp_path, extras="test", lock=versions)
    assert [command[-3:] for command in pip] == [[".[test]", "-c", str(versions)]] * 2


@pytest.mark.parametrize(
    ("had", "wanted", "times"),
    [
        ("game,test,check", "game", 1),
        ("game,workers", "game", 1),
        ("game", "game,test,check", 2),
        ("game", "game,workers", 2),
    ],
)
def test_an_extra_that_is_installed_with_others_is_not_installed_again(
    tmp_path: Path, pip: list[list[str]], had: str, wanted: str, times: int
) -> None:
    (tmp_path / ".venv/bin").mkdir()
    (tmp_path / ".venv/bin/python").touch()
    for extras in (had, wanted):
        installed(tmp_path, extras=extras)
    assert len(pip) == times


def test_a_python_without_a_lock_gets_the_newest(tmp_path: Path, pip: list[list[str]]) -> None:
    lock_there = lock_of(tmp_path, python="no-such-python")
    installed(tmp_path, extras="test", lock=lock_there)
    assert pip[-1][-2:] == ["-e", ".[test]"]


def test_a_lock_is_what_pip_would_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"evennia-ai": "0.1", "Jinja2": "3.1.6", "click": "8.5"}
    report = {
        "install": [
            {"metadata": {"name": name, "version": version}} for name, version in names.items()
        ]
    }

    def answers(command: list[str], **_: object) -> SimpleNamespace:
        Path(command[command.index("--report") + 1]).write_text(json.dumps(report))
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(locking.subprocess, "run", answers)
    monkeypatch.setattr(locking, "version_of", lambda _: "3.11")
    write_lock(tmp_path, python="python3.11")
    written = (tmp_path / "requirements/python-3.11.txt").read_text()
    assert written.splitlines()[1:] == ["click==8.5", "Jinja2==3.1.6"]


def test_versions_that_do_not_fit_together_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = SimpleNamespace(returncode=1, stderr="ResolutionImpossible")
    monkeypatch.setattr(locking.subprocess, "run", lambda *_, **__: failed)
    monkeypatch.setattr(locking, "version_of", lambda _: "3.11")
    with pytest.raises(StepError, match="fit together:\nResolutionImpossible"):
        write_lock(tmp_path, python="python3.11")
    assert not list(tmp_path.glob("requirements/*.txt"))


def test_whatever_installs_for_development_installs_the_lock() -> None:
    callers = [*(ROOT / "server").glob("*.py")]
    unlocked = [
        path.name for path in callers if "extras=DEVELOPMENT)" in path.read_text(encoding="utf-8")
    ]
    assert unlocked == []
