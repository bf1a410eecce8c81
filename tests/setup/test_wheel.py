"""Test what is published: a wheel of evennia_ai only, and a source distribution with examples."""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import evennia_ai

PACKAGE = Path(evennia_ai.__file__).parent

pytestmark = pytest.mark.packaging


def _names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def _metadata(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        [name] = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
        return Parser().parsestr(archive.read(name).decode())


def test_wheel_has_only_evennia_ai(wheel):
    tops = {name.split("/")[0] for name in _names(wheel)}

    assert tops == {"evennia_ai", f"evennia_ai-{wheel.name.split('-')[1]}.dist-info"}


def test_wheel_has_every_file_of_the_package(wheel):
    files = {
        f"evennia_ai/{path.relative_to(PACKAGE).as_posix()}"
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    assert files - _names(wheel) == set()


def test_wheel_is_marked_as_typed(wheel):
    assert "evennia_ai/py.typed" in _names(wheel)


def test_wheel_needs_python_3_11_and_evennia_only_for_a_game(wheel):
    metadata = _metadata(wheel)
    needs = metadata.get_all("Requires-Dist")

    assert metadata["Requires-Python"] == ">=3.11"
    assert "evennia<7,>=5.0.1; extra == 'game'" in needs
    assert [one for one in needs if "evennia" in one and "extra ==" not in one] == []


def test_wheel_has_the_licence(wheel):
    assert any(name.endswith("/licenses/LICENSE") for name in _names(wheel))


def test_source_distribution_has_every_file_of_the_examples(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    examples = PACKAGE.parent / "examples"
    files = {path for path in examples.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    assert len(files) > 10
    assert {path.relative_to(PACKAGE.parent).as_posix() for path in files} <= names


def test_twine_accepts_the_sdist_and_the_wheel(distribution):
    files = sorted(map(str, distribution.iterdir()))
    assert [Path(file).suffix for file in files] == [".whl", ".gz"]
    done = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *files],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("git", "expected"),
    [
        (("init", "commit", "tag"), r"0\.1\.0"),
        (("init", "commit", "tag", "commit"), r"0\.1\.1\.dev1\+g[0-9a-f]+"),
        (("init", "commit"), r"0\.1\.0\.dev1\+g[0-9a-f]+"),
        ((), r"0\.1\.0\.dev0"),
    ],
    ids=["of a tag", "after a tag", "without tags", "without git"],
)
def test_version_is_the_newest_tag(git, expected, tmp_path):
    words = {
        "init": ("init", "--quiet"),
        "commit": ("commit", "--quiet", "--allow-empty", "-m", "one"),
        "tag": ("tag", "v0.1.0"),
    }
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        (tmp_path / name).write_bytes((PACKAGE.parent / name).read_bytes())
    environment = {
        **os.environ,
        "GIT_CEILING_DIRECTORIES": str(tmp_path.parent),
        **{
            f"GIT_{who}_{what}": "a@b"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        },
    }
    commands = [("git", *words[step]) for step in git]
    for command in (*commands, (sys.executable, "-m", "hatchling", "version")):
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
    assert re.fullmatch(expected, done.stdout.strip())
