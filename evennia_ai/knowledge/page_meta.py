"""Metadata of pages: what a block of it says, as values, and back.

The block comes from any notation (`markup.py`) as a mapping of JSON's own types. What the engine
knows is checked here, everything else is kept as it is. Required titles are of the encyclopedia
where they name no namespace; on an instruction page they are of the instructions.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from evennia_ai.errors import EvenniaAIError
from evennia_ai.knowledge.pages import PageMeta
from evennia_ai.knowledge.titles import Namespace, PageName, TitleError, page_name

MAX_ITEMS: Final = 200
"""Of one list: requires, aliases, topics or tags."""

LISTS: Final = ("topics", "aliases", "tags", "requires")
KNOWN: Final = frozenset({"summary", "redirect", "locks", *LISTS})


class MetaError(EvenniaAIError):
    """A field of a page's metadata has a value it cannot have."""

    def __init__(self, field: str, problem: str) -> None:
        self.field = field
        self.problem = problem
        super().__init__(f"{field} {problem}")


def meta_of(values: Mapping[str, Any], name: PageName) -> PageMeta:
    """What a block of metadata says about the page of this name; `locks` is left aside.

    MetaError: a field that is known has a value it cannot have.
    """
    required = (_named(one, "requires", _home(name)) for one in _texts(values, "requires"))
    redirect = _text(values, "redirect")
    meta = PageMeta(
        summary=_text(values, "summary"),
        topics=_texts(values, "topics"),
        aliases=_texts(values, "aliases"),
        tags=_texts(values, "tags"),
        requires=tuple(dict.fromkeys(required)),
        redirect=_named(redirect, "redirect", "Main") if redirect else None,
        fields={key: value for key, value in values.items() if key not in KNOWN},
    )
    alias_names(meta, name)
    return meta


def locks_of(values: Mapping[str, Any]) -> str:
    """The lock string in a block of metadata, "" where there is none."""
    return _text(values, "locks")


def values_of(meta: PageMeta, name: PageName, *, locks: str = "") -> dict[str, Any]:
    """The block that says this: `meta_of` of it is `meta` again. Nothing empty is in it."""
    said = {
        "summary": meta.summary,
        "redirect": meta.redirect.full if meta.redirect else "",
        "topics": list(meta.topics),
        "aliases": list(meta.aliases),
        "tags": list(meta.tags),
        "requires": [_written(one, name) for one in meta.requires],
        "locks": locks,
    }
    return {key: value for key, value in said.items() if value} | dict(meta.fields)


def alias_names(meta: PageMeta, name: PageName) -> tuple[PageName, ...]:
    """The other names of a page; those that name no namespace are in its own.

    MetaError: one is no title.
    """
    named = (_named(alias, "aliases", name.namespace) for alias in meta.aliases)
    return tuple(dict.fromkeys(named))


def _named(text: str, field: str, default: Namespace) -> PageName:
    try:
        return page_name(text, default=default)
    except TitleError as error:
        raise MetaError(field, f"names no page: {error}") from error


def _home(name: PageName) -> Namespace:
    """The namespace of required titles that name none, in the metadata of this page."""
    return "Instructions" if name.namespace == "Instructions" else "Main"


def _written(target: PageName, name: PageName) -> str:
    """A title as the metadata of the page `name` has it."""
    if target.namespace == "Main" and _home(name) != "Main":
        return f"Main:{target.title}"
    return target.full


def _text(values: Mapping[str, Any], field: str) -> str:
    value = values.get(field)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise MetaError(field, f"must be text, not {_kind(value)}; put it in quotes")
    return value.strip()


def _texts(values: Mapping[str, Any], field: str) -> tuple[str, ...]:
    """The texts of a list, each once; one text alone is a list of it."""
    value = values.get(field)
    listed: Sequence[Any] = [value] if isinstance(value, str) else value or []
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise MetaError(field, "must be a list of texts; put numbers and dates in quotes")
    if len(listed) > MAX_ITEMS:
        raise MetaError(field, f"has {len(listed)} items and the limit is {MAX_ITEMS}")
    return tuple(dict.fromkeys(text for one in listed if (text := one.strip())))


def _kind(value: object) -> str:
    kinds = {bool: "true or false", int: "a number", float: "a number", list: "a list"}
    return kinds.get(type(value), "a block")
