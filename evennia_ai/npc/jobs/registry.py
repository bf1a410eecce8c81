"""The kinds of work that a worker can do."""

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
    """Return the missing packages of the sentence model; none if a server makes vectors."""
    return () if conf().embeddings_profile else missing_packages()


NEEDED: Final[Mapping[str, Callable[[], Sequence[str]]]] = {"embed": _lacking_to_embed}
"""By kind: a function that returns the packages that are missing here."""


class UnknownKindError(EvenniaAIError):
    """There is no kind of work with this name."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"there is no kind of work {name!r}; there are: {', '.join(KINDS)}")


class LackingKindError(EvenniaAIError):
    """A kind of work cannot be done here, because packages are missing."""

    def __init__(self, name: str, packages: Sequence[str]) -> None:
        super().__init__(f"{name} cannot be done here without {', '.join(packages)}; {INSTALL}")


def kinds_of(names: Collection[str] = ()) -> dict[str, JobKind]:
    """Return the kinds with these names; without names, all that can be done here.

    Raises:
        UnknownKindError: There is no such kind.
        LackingKindError: It cannot be done here.
    """
    for name in names:
        if name not in KINDS:
            raise UnknownKindError(name)
        if packages := missing_for(name):
            raise LackingKindError(name, packages)
    can = [name for name in KINDS if not missing_for(name)]
    return {name: KINDS[name] for name in names or can}


def missing_for(name: str) -> Sequence[str]:
    """Return the packages that a kind needs and that are missing here."""
    return NEEDED[name]() if name in NEEDED else ()
