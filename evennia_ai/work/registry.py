"""The kinds of work that a worker can do."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from evennia_ai.errors import EvenniaAIError
from evennia_ai.llm.sentence_model import INSTALL, missing_packages
from evennia_ai.settings.conf import conf
from evennia_ai.work.job import JobKind
from evennia_ai.work.kinds.compact import COMPACT
from evennia_ai.work.kinds.embed import EMBED
from evennia_ai.work.kinds.observe import OBSERVE

KINDS: Final[Mapping[str, JobKind]] = {"compact": COMPACT, "embed": EMBED, "observe": OBSERVE}


def _lacking_to_embed() -> Sequence[str]:
    """The packages of the model for sentences, unless a server turns texts into vectors."""
    return () if conf().embeddings_profile else missing_packages()


NEEDED: Final[Mapping[str, Callable[[], Sequence[str]]]] = {"embed": _lacking_to_embed}
"""What tells which packages a kind lacks here, where it needs more than others."""


class UnknownKindError(EvenniaAIError):
    """There is no kind of work of this name."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"there is no kind of work {name!r}; there are: {', '.join(KINDS)}")


class LackingKindError(EvenniaAIError):
    """A kind of work cannot be done here."""

    def __init__(self, name: str, packages: Sequence[str]) -> None:
        super().__init__(f"{name} cannot be done here without {', '.join(packages)}; {INSTALL}")


def kinds_of(names: Collection[str] = ()) -> dict[str, JobKind]:
    """These kinds by name, or all that can be done here where none is named.

    UnknownKindError: it is none. LackingKindError: it cannot be done here.
    """
    for name in names:
        if name not in KINDS:
            raise UnknownKindError(name)
        if packages := lacking(name):
            raise LackingKindError(name, packages)
    can = [name for name in KINDS if not lacking(name)]
    return {name: KINDS[name] for name in names or can}


def lacking(name: str) -> Sequence[str]:
    """The packages without which a kind cannot be done here."""
    return NEEDED[name]() if name in NEEDED else ()
