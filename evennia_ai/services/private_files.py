"""Open files that only their owner can read.

Exports use them: some contain players' private conversations, others contain authors' secrets.
"""

import os
from typing import Final

OWNER_ALONE: Final = 0o600
FOLDER_OF_OWNER: Final = 0o700


def open_private(path: str, flags: int) -> int:
    """Open a file so that only its owner can read it, if it is new.

    Use it as `opener` of `open`.
    """
    return os.open(path, flags, OWNER_ALONE)
