"""Change one module: when Python imports it, or in its functions that exist already.

Changing at import works for every mutation but is slow, because everything that imports the module
must be imported again. Changing existing functions is fast, but values that were computed at import
stay the same.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterable, Iterator, Sequence
from types import CodeType, FunctionType, ModuleType

from tests.mutations.table import Mutation


def break_by(mutation: Mutation) -> None:
    """Make this process import the changed module instead of the real one.

    Raises:
        RuntimeError: the module is imported already.
        TableError: the mutation cannot be applied.
    """
    if mutation.module in sys.modules:
        raise RuntimeError(f"{mutation}: {mutation.module} is imported before it can be changed")
    sys.meta_path.insert(0, _Finder(mutation))


class _Finder(importlib.abc.MetaPathFinder):
    """An import hook that finds only the changed module."""

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
    """A loader of changed source code. It neither reads nor writes compiled files."""

    def __init__(self, name: str, file: str, *, source: str) -> None:
        super().__init__(name, file)
        self._source = source

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._source, self.path, "exec", dont_inherit=True)


def break_living(mutation: Mutation, functions: Iterable[FunctionType]) -> int:
    """Replace the code of existing functions by that of the mutation. Return how many changed.

    Raises:
        TableError: the mutation cannot be applied. ValueError: the changed function would need
            other closure variables.
    """
    after, before = (
        compile(source, str(mutation.path), "exec", dont_inherit=True)
        for source in (mutation.source(), mutation.path.read_text(encoding="utf-8"))
    )
    changed = dict(_changed(before, after))
    broken = 0
    for function in functions:
        if function.__code__ in changed:
            function.__code__ = changed[function.__code__]
            broken += 1
    return broken


def _changed(before: CodeType, after: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Return the pairs of code objects inside that differ. Empty if they cannot be paired."""
    inside = [
        [one for one in code.co_consts if isinstance(one, CodeType)] for code in (before, after)
    ]
    if [code.co_name for code in inside[0]] != [code.co_name for code in inside[1]]:
        return
    for old, new in zip(*inside, strict=True):
        if old != new:
            yield old, new
            yield from _changed(old, new)
