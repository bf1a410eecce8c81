"""What takes long to make and is copied by many tests: made once, by the first that wants it.

The workers of pytest-xdist are processes of their own, which share a folder.
"""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path


def made_once(name: str, make: Callable[[Path], None], *, beside: Path) -> Path:
    """The folder `name` as `make` filled it; all workers of a run get the same one.

    `beside` is any folder that pytest gave this worker for a test or a module. What `make` raises
    is raised, and the next who wants the folder tries again.
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
    """Where pytest puts this run's folders; a worker's own are one level deeper."""
    own = folder.parent
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
