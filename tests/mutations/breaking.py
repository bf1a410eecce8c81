"""Hands Python a changed text of one module, where it imports it."""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import CodeType, ModuleType

from tests.mutations.table import Mutation


def break_by(mutation: Mutation) -> None:
    """From now on, importing the mutation's module gives the changed one, in this process.

    Raises:
        RuntimeError: the module is imported already.
        TableError: the mutation cannot be applied.
    """
    if mutation.module in sys.modules:
        raise RuntimeError(f"{mutation}: {mutation.module} is imported before it can be changed")
    sys.meta_path.insert(0, _Finder(mutation))


class _Finder(importlib.abc.MetaPathFinder):
    """Finds one module alone."""

    def __init__(self, mutation: Mutation) -> None:
        self._mutation = mutation
        self._source = mutation.source()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self._mutation.module:
            return None
        file = str(self._mutation.path)
        return importlib.util.spec_from_file_location(
            name, file, loader=_Changed(name, file, source=self._source)
        )


class _Changed(importlib.machinery.SourceFileLoader):
    """Loads a source that is not the file's, and neither reads nor writes what is compiled."""

    def __init__(self, name: str, file: str, *, source: str) -> None:
        super().__init__(name, file)
        self._source = source

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._source, self.path, "exec", dont_inherit=True)
