"""Seeds for fuzzing lorebooks: books and byte strings."""

import json
from collections.abc import Iterator
from typing import Any


def seeds() -> Iterator[bytes]:
    """Yield a file of each format and program, and some byte strings."""
    world = {"key": ["coin", "/ga?te/i"], "keysecondary": ["red"], "content": "@@depth 1\nA coin."}
    entry = {"keys": ["coin"], "content": "The gate.", "enabled": True, "use_regex": False}
    entry |= {"insertion_order": 5, "extensions": {"evennia_ai": {"npcs": ["Oren"]}}}
    for book in (
        {"entries": {"0": {**world, "selective": True, "sticky": 2}, "7": world}},
        {"spec": "lorebook_v3", "data": {"entries": [entry], "extensions": {}, "token_budget": 9}},
        {"name": "old", "entries": [{**entry, "keys": ["/c.*n/"], "use_regex": True}]},
        *_foreign_books(),
    ):
        yield json.dumps(book).encode()
    for start in range(0, 256, 32):
        yield bytes((start + 37 * step * step) % 256 for step in range(200))


def _foreign_books() -> Iterator[dict[str, Any]]:
    """Yield a book of each program whose books become V3."""
    placing = {"budgetPriority": 400, "prefix": "[", "insertionPosition": -1}
    novel = {"text": "The gate.", "keys": ["coin", "/ga?te/i", "a & b"], "category": "c"}
    off = {"id": "c", "name": "Old", "enabled": False}
    yield {
        "lorebookVersion": 5,
        "entries": [{**novel, "contextConfig": placing, "searchRange": 90, "id": "5f"}],
        "categories": [off],
    }
    memory = {"entry": "The gate.", "keywords": ["co?n", "*gate*", "***"], "weight": 3}
    yield {
        "kind": "memory",
        "entries": [{**memory, "secondaryKeys": ["r*d"], "selective": True, "priority": 1}],
    }
    row = {"key": "coin, /a,b/i", "secondkey": "red", "selective": True, "insertorder": 9}
    head = "@@probability 50\n@@exclude_keys_all a,b\n@@inject_at main\n@@end\n"
    yield {
        "type": "risu",
        "data": [
            {"mode": "folder", "key": "\uf000folder:1", "comment": "Old", "content": ""},
            {**row, "content": f"{head}The gate.", "useRegex": True, "alwaysActive": False},
        ],
    }
