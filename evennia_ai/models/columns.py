"""Lengths of columns that tables share."""

from typing import Final

KINDS: Final = 16
REF: Final = 255
NAME: Final = 200
SHA256: Final = 64
