"""Replacements, in tests, for packages that take long to import."""

from pathlib import Path

UNCHECKED = Path(__file__).parent
