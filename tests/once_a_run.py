"""Make things that take long only once per run, for many tests that copy them.

The workers of pytest-xdist are separate processes that share a folder.
"""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path


def made_once(name: str, make: Callable[[Path], None], *, beside: Path) -> Path:
    """Return the folder `name` as `make` has filled it.

    All workers of a run get the same folder.

    `beside` is any folder that pytest gave this worker. An exception of `make` is raised, and the
    next test tries again.
    """
    folder = _of_all_workers(beside) / name
    unfinished = folder.with_suffix(".unfinished")
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            make(unfinished)
            unfinished.rename(folder)
    return folder


def _of_all_workers(folder: Path) -> Path:
    """Return pytest's folder for this run. The folder of a worker is one level deeper."""
    own = folder.parent
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
