"""Private files: an exported file can be read only by its owner.

Some exports have private conversations of players, others have secrets of authors.
"""

import os
from typing import Final

OWNER_ALONE: Final = 0o600
FOLDER_OF_OWNER: Final = 0o700


def open_private(path: str, flags: int) -> int:
    """Open a file for `open(..., opener=private)`. A new file is readable only by its owner."""
    return os.open(path, flags, OWNER_ALONE)
