"""Test environments and their lock file: which versions uv or pip installs, and when."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from server import installation
from server.installation import LOCK, LOCKED, SUPPORTED, Installation, installed, write_lock
from server.steps import Outcome, StepError

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WITHOUT_BOUND = {"setuptools", "build", "hatch-vcs", "hatchling", "furo", "regex", "types-PyYAML"}
"""Packages without meaningful major versions, and packages that only tests need."""


def wanted() -> list[Requirement]:
    """Return the requirements of an installation for development."""
    extras = [PROJECT["optional-dependencies"][extra] for extra in ("game", *LOCKED.split(","))]
    asked = [Requirement(one) for group in (PROJECT["dependencies"], *extras) for one in group]
    return [one for one in asked if one.name != PROJECT["name"]]


def locked(version: str) -> dict[str, Version]:
    """Return the locked versions for one Python."""
    marker = {"python_version": version, "python_full_version": f"{version}.9"}
    text = (ROOT / LOCK).read_text(encoding="utf-8")
    lines = [Requirement(line) for line in text.splitlines() if not line.startswith("#")]
    return {
        one.name: Version(str(one.specifier).removeprefix("=="))
        for one in lines
        if one.marker is None or one.marker.evaluate(marker)
    }


@pytest.mark.parametrize("version", SUPPORTED)
def test_lock_has_a_version_within_the_bounds_of_each_requirement(version: str) -> None:
    pinned, marker = locked(version), {"python_version": version}
    asked = [one for one in wanted() if one.marker is None or one.marker.evaluate(marker)]
    assert [one for one in asked if pinned[one.name.lower()] not in one.specifier] == []


def test_lock_names_versions_and_no_index() -> None:
    text = (ROOT / LOCK).read_text(encoding="utf-8")
    assert "://" not in text
    assert "--" not in text
    assert "evennia-ai" not in text


def test_incompatible_major_version_is_not_installed() -> None:
    unbounded = {one.name for one in wanted() if "<" not in str(one.specifier)}
    assert unbounded == WITHOUT_BOUND


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """An empty checkout, with an environment of the running Python."""
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / LOCK).parent.mkdir()
    (tmp_path / LOCK).touch()
    programs = tmp_path / ".venv/bin"
    programs.mkdir(parents=True)
    (programs / "python").symlink_to(sys.executable)
    (programs / "uv").touch()
    return tmp_path


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that would be run. All of them succeed."""
    ran: list[list[str]] = []

    def attempt(_: str, command: list[object], **__: object) -> Outcome:
        ran.append([str(one) for one in command])
        return Outcome(status=0, output="", seconds=0, cpu_seconds=0)

    monkeypatch.setattr(installation, "attempt", attempt)
    monkeypatch.setattr(installation, "run", attempt)
    return ran


@pytest.mark.parametrize("source", [LOCK, Path("pyproject.toml")])
def test_installation_is_updated_after_its_sources_changed(
    checkout: Path, commands: list[list[str]], source: Path
) -> None:
    installed(checkout, extras="test")
    installed(checkout, extras="test")
    assert [command[-4:] for command in commands] == [["-e", ".[test]", "-c", str(LOCK)]]

    later = (checkout / ".venv/installed-test").stat().st_mtime + 5
    os.utime(checkout / source, (later, later))
    installed(checkout, extras="test")
    assert len(commands) == 2


def test_further_extras_are_installed_into_the_same_environment(
    checkout: Path, commands: list[list[str]]
) -> None:
    for extras in ("game", "game,workers", "game"):
        installed(checkout, extras=extras)
    assert [command[-3] for command in commands] == [".[game]", ".[game,workers]"]


def test_installation_without_a_lock_gets_the_newest_versions(
    checkout: Path, commands: list[list[str]]
) -> None:
    installed(checkout, extras="test", lock=None)
    assert commands[-1][-2:] == ["-e", ".[test]"]


def test_environment_is_made_again_for_another_python_version(
    checkout: Path, commands: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installation, "version_of", {"python3.13": "3.13"}.get)
    installed(checkout, python="python3.13")
    made, filled = commands
    assert made == ["python3.13", "-m", "venv", "--clear", str(checkout / ".venv")]
    assert filled[0] == str(checkout / ".venv/bin/uv")


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("error: no\n  cause: why\n  cause: click is away\nhint: go", "cause: click is away"),
        ("error: no\nhint: go", "error: no"),
        ("", "status 2"),
    ],
)
def test_pip_installs_the_same_if_uv_finds_no_index(
    checkout: Path, capfd: pytest.CaptureFixture[str], output: str, reason: str
) -> None:
    programs = checkout / ".venv/bin"
    (programs / "python").unlink()
    (checkout / "output").write_text(output, encoding="utf-8")
    for name, line in (("uv", "cat output; exit 2"), ("python", 'echo "$@" > asked')):
        (programs / name).write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        (programs / name).chmod(0o755)

    Installation(root=checkout, programs=programs).install("Installing click", "click", "-c", "x")

    asked = (checkout / "asked").read_text(encoding="utf-8")
    assert asked == "-m pip install --no-compile click -c x\n"
    first, told, last = capfd.readouterr().out.splitlines()
    assert first.startswith("== Installing click: failed")
    assert told == f"   uv could not, so pip does it, which takes longer ({reason})"
    assert last.startswith("== Installing click: done")


def test_setup_installs_with_pip_when_uv_is_missing(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = checkout / ".venv/bin"
    (programs / "uv").unlink()
    (programs / "python").unlink()
    (programs / "python").write_text('#!/bin/sh\necho "$@" > asked\n', encoding="utf-8")
    (programs / "python").chmod(0o755)

    Installation(root=checkout, programs=programs).install("Installing click", "click")

    assert (checkout / "asked").read_text(encoding="utf-8").endswith(" click\n")


def test_lock_is_unchanged_if_there_is_no_index(checkout: Path) -> None:
    uv = Path(sys.executable).parent / "uv"
    (checkout / ".venv/bin/uv").unlink()
    (checkout / ".venv/bin/uv").symlink_to(uv)
    (checkout / "pyproject.toml").write_text(
        '[project]\nname = "x"\nversion = "1"\ndependencies = ["click"]\n'
        "[project.optional-dependencies]\n"
        + "".join(f"{name} = []\n" for name in LOCKED.split(",")),
        encoding="utf-8",
    )
    with pytest.MonkeyPatch.context() as variables:
        variables.setenv("UV_OFFLINE", "1")
        variables.setenv("UV_NO_CACHE", "1")
        with pytest.raises(StepError, match="Looking for the newest versions: failed"):
            write_lock(checkout)
    assert (checkout / LOCK).read_text(encoding="utf-8") == ""


def test_makefile_names_each_command_once() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "server"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    commands = set(done.stdout.split()[-1].split("|")) - {"prepare"}
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert set(text.partition(".PHONY:")[2].splitlines()[0].split()) == commands
