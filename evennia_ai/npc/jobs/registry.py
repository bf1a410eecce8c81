"""The kinds of jobs that a worker can do."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.npc.jobs.job import JobKind
from evennia_ai.npc.jobs.kinds.compact import COMPACT
from evennia_ai.npc.jobs.kinds.embed import EMBED
from evennia_ai.npc.jobs.kinds.observe import OBSERVE
from evennia_ai.services.llm.sentence_model import INSTALL, missing_packages
from evennia_ai.services.settings.conf import conf

KINDS: Final[Mapping[str, JobKind]] = {"compact": COMPACT, "embed": EMBED, "observe": OBSERVE}


def _lacking_to_embed() -> Sequence[str]:
    """Return the missing packages of the sentence model.

    A game with an embeddings server needs none.
    """
    return () if conf().embeddings_profile else missing_packages()


NEEDED: Final[Mapping[str, Callable[[], Sequence[str]]]] = {"embed": _lacking_to_embed}
"""By kind: a function that returns the packages which the kind needs and which are missing."""


class UnknownKindError(EvenniaAIError):
    """The name of a kind of job is unknown."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"there is no kind of work {name!r}; there are: {', '.join(KINDS)}")


class LackingKindError(EvenniaAIError):
    """This process cannot do a kind of job, because Python packages are missing."""

    def __init__(self, name: str, packages: Sequence[str]) -> None:
        super().__init__(f"{name} cannot be done here without {', '.join(packages)}; {INSTALL}")


def kinds_of(names: Collection[str] = ()) -> dict[str, JobKind]:
    """Return the kinds with these names. Without names, return all that this process can do.

    Raises:
        UnknownKindError: There is no kind with this name.
        LackingKindError: Packages for this kind are missing.
    """
    for name in names:
        if name not in KINDS:
            raise UnknownKindError(name)
        if packages := missing_for(name):
            raise LackingKindError(name, packages)
    can = [name for name in KINDS if not missing_for(name)]
    return {name: KINDS[name] for name in names or can}


def missing_for(name: str) -> Sequence[str]:
    """Return the Python packages that a kind of job needs and that are missing."""
    return NEEDED[name]() if name in NEEDED else ()
