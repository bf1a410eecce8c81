"""Names: how our pages are called in a wiki, and its pages by us.

Our `Talk:Sources:Ledger` is its `Sources talk:Ledger`, our `Talk:Ferry` its `Talk:Ferry`, whatever
its language calls these. Pages of its other namespaces (User, Category, MediaWiki, ...) are none of
ours: they are neither read nor written.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from evennia_ai.knowledge.titles import Namespace, PageName, TitleError, page_name
from evennia_ai.wiki.answers import listed, number, part, text

MAIN: Final = 0
_NAMED: Final[tuple[Namespace, ...]] = ("Instructions", "Sources")


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The namespaces of one wiki.

    `subjects` are the ids of ours, without Talk; `labels` what the wiki writes before a title, by
    the id; `known` the ids of all words that it takes for a namespace, in small letters.
    """

    subjects: Mapping[Namespace, int]
    labels: Mapping[int, str]
    known: Mapping[str, int]

    def title_of(self, name: PageName) -> str | None:
        """What the wiki calls a page, None where it can have no such page."""
        place = self._place_of(name)
        if place is None or self.is_elsewhere(place[1]):
            return None
        number_there, title = place
        return title if number_there == MAIN else f"{self.labels[number_there]}:{title}"

    def name_of(self, number_there: int, title: str) -> PageName | None:
        """What we call a page of the wiki, None where it is none of ours."""
        bare = title if number_there == MAIN else title.partition(":")[2]
        for namespace, subject in self.subjects.items():
            if number_there == subject:
                return _named(namespace, bare)
            if number_there == subject + 1:
                about = _named(namespace, bare)
                return about and about.talk
        return None

    def linked(self, name: PageName) -> PageName | None:
        """The page that a link in a text of the wiki leads to; None where it is none of ours."""
        if name.namespace != "Main":
            return name
        head, colon, rest = name.title.lstrip(":").partition(":")
        number_there = self.known.get(_folded(head)) if colon else None
        if number_there is None:
            return name
        return self.name_of(number_there, f"{head}:{rest.strip()}")

    def numbers_of(self, namespace: Namespace) -> dict[int, str]:
        """The wiki's ids of a namespace, each with what our titles begin with there."""
        if namespace != "Talk":
            return {self.subjects[namespace]: ""} if namespace in self.subjects else {}
        return {
            subject + 1: "" if ours == "Main" else f"{ours}:"
            for ours, subject in self.subjects.items()
            if subject + 1 in self.labels
        }

    def is_elsewhere(self, title: str) -> bool:
        """Whether the wiki would take the beginning of a title for one of its namespaces."""
        head, colon, _ = title.lstrip(": ").partition(":")
        return title.startswith(":") or (bool(colon) and _folded(head) in self.known)

    def _place_of(self, name: PageName) -> tuple[int, str] | None:
        if name.namespace != "Talk":
            subject = self.subjects.get(name.namespace)
            return None if subject is None else (subject, name.title)
        try:
            about = page_name(name.title)
        except TitleError:
            return None
        subject = None if about.namespace == "Talk" else self.subjects.get(about.namespace)
        if subject is None or subject + 1 not in self.labels:
            return None
        return subject + 1, about.title


def names_of(answer: dict[str, Any], told: Mapping[Namespace, int]) -> Names:
    """The names of a wiki that told of its namespaces; an admin may know better and has `told`."""
    there = part(answer, "query", "namespaces")
    labels = {
        number(one, "id"): text(one, "name") for one in there.values() if isinstance(one, dict)
    }
    known: dict[str, int] = {}
    for one in [*filter(_is_object, there.values()), *listed(answer, "query", "namespacealiases")]:
        words = (text(one, "name"), text(one, "canonical"), text(one, "alias"))
        known.update({_folded(word): number(one, "id") for word in words if word})
    subjects: dict[Namespace, int] = {"Main": MAIN}
    for namespace in _NAMED:
        found = told.get(namespace, known.get(_folded(namespace)))
        if found in labels:
            subjects[namespace] = found
    return Names(subjects=subjects, labels=labels, known=known)


def _named(namespace: Namespace, title: str) -> PageName | None:
    """The page of a title in a namespace; None where we would take it for another's."""
    try:
        name = page_name(title, default=namespace)
    except TitleError:
        return None
    return name if name.namespace == namespace else None


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _folded(word: str) -> str:
    return " ".join(word.replace("_", " ").split()).casefold()
