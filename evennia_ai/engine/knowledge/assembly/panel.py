"""The CONTEXT panel: lines for a screen that show which wiki pages a model got for a task.

The panel is rendered only from the record of the choice of pages (`context_meta`). So the panel of
an old draft shows the pages as they were then.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from evennia_ai.engine.text.columns import WIDTH, clip_text, escape_controls, pad_text, wrap_hanging

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
    """Render the CONTEXT panel. `title` names the draft or the answer that the panel is about."""
    return [
        clip_text(escape_controls(f"CONTEXT of {title}"), WIDTH),
        *field_lines("task", " ".join(task.split())),
        *field_lines("base", str(meta.get("base", ""))),
        *field_lines("task type", f"{meta['task_type']}, by {meta['type_from']}"),
        *field_lines("entities", ", ".join(meta["entities"]) or "none"),
        *field_lines("model", str(meta.get("model", "")) or "none"),
        *field_lines("tokens", _tokens(meta)),
        *_pages(meta),
        *_list_lines("Left out:", [_left_out(one) for one in meta["dropped"]]),
        *_list_lines("Warnings:", meta["warnings"]),
        *_list_lines("Steps:", meta["steps"]),
    ]


def why_no_package(meta: Mapping[str, Any]) -> str:
    """Render a line that says why a model answered without wiki pages."""
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
            yield from wrap_hanging(f"  {_page(one)}: {one['why']}")


def _page(one: Mapping[str, Any]) -> str:
    revision = f" revision {one['revision']}" if one["revision"] else ""
    depth = f", {one['depth']} hops away" if one["depth"] > 1 else ""
    return f"{one['page']}{revision} sha256 {one['sha256'][:8]}{depth}"


def _left_out(one: Mapping[str, Any]) -> str:
    return f"{one['page']} ({one['section']}): {one['dropped']}"


def _list_lines(title: str, lines: Sequence[str]) -> list[str]:
    return (
        [title, *(shown for line in lines for shown in wrap_hanging(f"  {line}"))] if lines else []
    )


def field_lines(title: str, text: str) -> list[str]:
    """Render one field of the CONTEXT panel, wrapped to as many lines as it needs."""
    return wrap_hanging(f"  {pad_text(title, _TITLE)}{text}")
