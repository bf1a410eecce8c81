"""Finds a secret in a text that may hide it, on its own, without the code that is tested."""

import json
import re
import unicodedata

from tests.npc.knowledge.cellars import CODE, TITLE, WATCHWORD

WANTED = (WATCHWORD, CODE, TITLE, "fourth step", "left of the barrel", "Old Cellar")


def found_in(text: str) -> list[str]:
    """Which of the secret's parts a text has, escapes of JSON and blanks aside."""
    try:
        plain = json.loads(f'"{text}"')
    except ValueError:
        plain = text
    seen = _squeezed(text) + "\n" + _squeezed(plain)
    return [part for part in WANTED if _squeezed(part) in seen]


def _squeezed(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text).casefold()
    return re.sub(r"[^a-z0-9]", "", plain)
