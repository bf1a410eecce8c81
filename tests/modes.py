"""Check by its mode who may read a file."""

import stat
from pathlib import Path


def is_open_to_others(path: Path) -> bool:
    """True if anybody except the owner may read or write the file."""
    return bool(stat.S_IMODE(path.stat().st_mode) & 0o077)
