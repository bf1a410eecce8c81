"""Finds parts of the secret in a text, also disguised ones, without using the tested code."""

import json
import re
import unicodedata

from tests.npc.knowledge.cellars import CODE, TITLE, WATCHWORD

WANTED = (WATCHWORD, CODE, TITLE, "fourth step", "left of the barrel", "Old Cellar")


def found_in(text: str) -> list[str]:
    """Return the parts of the secret in a text. Ignore blanks, signs, case and JSON escapes."""
    try:
        plain = json.loads(f'"{text}"')
    except ValueError:
        plain = text
    seen = _squeezed(text) + "\n" + _squeezed(plain)
    return [part for part in WANTED if _squeezed(part) in seen]


def _squeezed(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text).casefold()
    return re.sub(r"[^a-z0-9]", "", plain)
