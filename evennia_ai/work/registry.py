"""Which kinds of work there are: what a worker can do, each imported when it is first asked for."""

from collections.abc import Collection, Mapping
from importlib import import_module
from typing import Any, Final

from evennia_ai.errors import EvenniaAIError
from evennia_ai.work.job import JobKind

KINDS: Final[Mapping[str, str]] = {
    "compact": "evennia_ai.work.kinds.compact.COMPACT",
    "observe": "evennia_ai.work.kinds.observe.OBSERVE",
}
"""The dotted path of each kind's object, by its name."""


class UnknownKindError(EvenniaAIError):
    """There is no kind of work of this name."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"there is no kind of work {name!r}; there are: {', '.join(KINDS)}")


def kinds_of(names: Collection[str] = ()) -> dict[str, JobKind]:
    """These kinds by name, all of them where none is named. UnknownKindError: it is none."""
    for name in names:
        if name not in KINDS:
            raise UnknownKindError(name)
    return {name: _imported(KINDS[name]) for name in names or KINDS}


def _imported(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)
