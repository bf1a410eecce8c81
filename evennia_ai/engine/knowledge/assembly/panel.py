"""The CONTEXT panel: what a generator was shown for a task, and why, as lines for a screen.

It is made of what a record keeps of an assembly (`context_meta`) alone, so that an answer of a
moment ago and a draft of last year are shown alike, whatever became of the pages since.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from evennia_ai.engine.text.columns import WIDTH, clipped, hanging, padded, visible

_TITLE: Final = 11
_TITLES: Final = {
    "instructions": "INSTRUCTIONS",
    "encyclopedia": "ENCYCLOPEDIA CONTEXT",
    "sources": "SOURCES",
    "talk": "EDITORIAL NOTES",
    "wikipedia": "REAL-WORLD REFERENCE",
}
_NOT_SECTIONS: Final = ("total", "limit")


def context_panel(title: str, task: str, meta: Mapping[str, Any]) -> list[str]:
    """The lines of the panel; `title` says whose context it is."""
    return [
        clipped(visible(f"CONTEXT of {title}"), WIDTH),
        *titled("task", " ".join(task.split())),
        *titled("base", str(meta.get("base", ""))),
        *titled("task type", f"{meta['task_type']}, by {meta['type_from']}"),
        *titled("entities", ", ".join(meta["entities"]) or "none"),
        *titled("model", str(meta.get("model", "")) or "none"),
        *titled("tokens", _tokens(meta)),
        *_pages(meta),
        *_listed("Left out:", [_left_out(one) for one in meta["dropped"]]),
        *_listed("Warnings:", meta["warnings"]),
        *_listed("Steps:", meta["steps"]),
    ]


def why_no_package(meta: Mapping[str, Any]) -> str:
    """A line for below an answer that was made without a package."""
    return f"Task type {meta['task_type']}, no package: {meta['reason']}."


def _tokens(meta: Mapping[str, Any]) -> str:
    if meta["bypassed"]:
        return f"none, no package: {meta['reason']}"
    tokens = meta["tokens"]
    parts = [f"{name} {count}" for name, count in tokens.items() if name not in _NOT_SECTIONS]
    return f"{', '.join(parts) or 'none'}; {tokens['total']} of at most {tokens['limit']}"


def _pages(meta: Mapping[str, Any]) -> Iterator[str]:
    for section, title in _TITLES.items():
        found = [one for one in meta["pages"] if one["section"] == section]
        if found:
            yield f"[{title}]"
        for one in found:
            yield from hanging(f"  {_page(one)}: {one['why']}")


def _page(one: Mapping[str, Any]) -> str:
    revision = f" revision {one['revision']}" if one["revision"] else ""
    depth = f", {one['depth']} hops away" if one["depth"] > 1 else ""
    return f"{one['page']}{revision} sha256 {one['sha256'][:8]}{depth}"


def _left_out(one: Mapping[str, Any]) -> str:
    return f"{one['page']} ({one['section']}): {one['dropped']}"


def _listed(title: str, lines: Sequence[str]) -> list[str]:
    return [title, *(shown for line in lines for shown in hanging(f"  {line}"))] if lines else []


def titled(title: str, text: str) -> list[str]:
    """A line of the panel, or as many as it takes."""
    return hanging(f"  {padded(title, _TITLE)}{text}")
