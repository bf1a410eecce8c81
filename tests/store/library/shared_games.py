"""A game of its own process and database: does what a line of standard input says, and answers."""

import json
import sys
from typing import Any

import django

django.setup()

from evennia_ai.engine.actors import trusted  # noqa: E402
from evennia_ai.engine.errors import EvenniaAIError  # noqa: E402 - what follows needs Django
from evennia_ai.engine.knowledge.pages.markup import read_page  # noqa: E402
from evennia_ai.engine.knowledge.pages.page import BaseInfo, PageDraft, page_name  # noqa: E402
from evennia_ai.store.knowledge import knowledge_bases, pages  # noqa: E402
from evennia_ai.store.library.bases import publish_base, take_base  # noqa: E402
from evennia_ai.store.library.entries import entries, entry, reading  # noqa: E402
from evennia_ai.store.library.following import look  # noqa: E402


def write(text: str) -> None:
    """A page of the base `harbour`, as its author leaves it."""
    if knowledge_bases.base("harbour") is None:
        knowledge_bases.save_base(BaseInfo(key="harbour", name="Harbour"), by=trusted("Ismay"))
    known = pages.page("harbour", page_name("Ferry"))
    page = read_page(page_name("Ferry"), text)
    was = known.revision if known else ""
    pages.save_page("harbour", PageDraft(page=page, was=was, by=trusted("Ismay")))


def publish(game: str) -> bool:
    return publish_base("harbour", game=game, game_name=game, by=trusted("Ismay")).is_new


def use() -> int:
    with reading():
        found = entry("base", "harbour")
    return take_base(found, by=trusted("Mara")).changes


def follow() -> list[str]:
    return list(look().bases)


def follow_shortly() -> list[str]:
    """The same, by somebody who waits a second and no longer."""
    with reading(seconds=1):
        entries()
    return follow()


def read() -> str:
    page = pages.page("harbour", page_name("Ferry"))
    return page.body if page else ""


DOES: dict[str, Any] = {
    "write": write,
    "publish": publish,
    "use": use,
    "follow": follow,
    "follow_shortly": follow_shortly,
    "read": read,
}

if __name__ == "__main__":
    for line in sys.stdin:
        doing, *given = json.loads(line)
        try:
            answer = {"done": DOES[doing](*given)}
        except EvenniaAIError as error:
            answer = {"refused": str(error)}
        print(json.dumps(answer), flush=True)
