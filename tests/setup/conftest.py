"""The built distribution, made once for all tests that examine it."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def distribution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the source distribution and the wheel made from it."""
    folder = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="session")
def wheel(distribution: Path) -> Path:
    """The wheel as it would be published."""
    [path] = distribution.glob("*.whl")
    return path


@pytest.fixture(scope="session")
def sdist(distribution: Path) -> Path:
    """The source distribution as it would be published."""
    [path] = distribution.glob("*.tar.gz")
    return path
