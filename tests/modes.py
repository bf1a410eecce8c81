"""Who may read a file, by its mode."""

import stat
from pathlib import Path


def is_open_to_others(path: Path) -> bool:
    """Whether anybody but its owner may read or write it."""
    return bool(stat.S_IMODE(path.stat().st_mode) & 0o077)
