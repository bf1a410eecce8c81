"""Private files: what is exported can be read by its owner alone, whatever the process allows.

What players whispered is in some of them, and what only an author may know in others.
"""

import os
from typing import Final

OWNER_ALONE: Final = 0o600
FOLDER_OF_OWNER: Final = 0o700


def private(path: str, flags: int) -> int:
    """An opener for `open`: a file that it makes is its owner's alone; one that is there stays."""
    return os.open(path, flags, OWNER_ALONE)
