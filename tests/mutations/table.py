"""Read the table of mutations."""

from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "evennia_ai"
TABLE = Path(__file__).with_name("table.yaml")


class TableError(Exception):
    """A row of the table cannot be applied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One change of the code that breaks one requirement."""

    req: str
    """The id of the requirement, as in `docs/extend/requirements.md`."""
    title: str
    """What goes wrong because of the change, in a sentence."""
    file: str
    """The path of the changed file in `evennia_ai/`."""
    text: str
    """The text to change, which must be in the file exactly once."""
    becomes: str
    """The text that replaces it."""
    first: str = ""
    """The test file to run first, if other tests before it would take long."""

    @property
    def path(self) -> Path:
        return PACKAGE / self.file

    @property
    def module(self) -> str:
        """The name by which the file is imported."""
        parts = ["evennia_ai", *Path(self.file).with_suffix("").parts]
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def source(self) -> str:
        """Return the text of the file with the change.

        Raises:
            TableError: the file is missing, or the text is not in it exactly once.
        """
        if not self.path.is_file():
            raise TableError(f"{self}: there is no file evennia_ai/{self.file}; name it anew")
        source = self.path.read_text(encoding="utf-8")
        if (count := source.count(self.text)) != 1:
            raise TableError(
                f"{self}: {self.text!r} stands in evennia_ai/{self.file} {count} times, not once;"
                " quote what the code says now"
            )
        return source.replace(self.text, self.becomes)

    def __str__(self) -> str:
        return f"{self.req} {self.title}"


def mutations() -> list[Mutation]:
    """Return all rows of the table, in its order."""
    return [Mutation(**row) for row in yaml.safe_load(TABLE.read_text(encoding="utf-8"))]
