"""A library in a file, and another game that publishes into it from the same process."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evennia_ai.engine.actors import trusted

OTHER: dict[str, str] = {"game": "f" * 32, "game_name": "Saltholm"}
"""The game that publishes; the one of the test is another."""


@contextmanager
def a_library(path: Path) -> Iterator[Path]:
    """The settings name a library at `path`; whether there is a file is for whoever publishes."""
    from django.db import connections

    from evennia_ai.services.settings.database import LIBRARY, library

    made = library(f"sqlite:///{path}")
    given = {"default": dict(connections.settings["default"]), **made}
    connections.settings[LIBRARY] = connections.configure_settings(given)[LIBRARY]
    try:
        yield path
    finally:
        connections[LIBRARY].close()
        del connections[LIBRARY]
        del connections.settings[LIBRARY]


def elsewhere(do: Callable[[], Any]) -> Any:
    """What `do` returns as another game, which has nothing of what this one has.

    What it writes into its own database is forgotten; what it publishes stays.
    """
    from django.db import transaction

    from evennia_ai.models import Card, LibraryCopy
    from evennia_ai.store.core.snapshots import forget_everything
    from evennia_ai.store.knowledge.knowledge_bases import bases, remove_base

    with transaction.atomic():
        LibraryCopy.objects.all().delete()
        Card.objects.all().delete()
        for info in bases():
            remove_base(info.key, by=trusted("Ismay"))
        made = do()
        transaction.set_rollback(True)
    forget_everything()
    return made


def published_base(texts: dict[str, str], *, key: str = "harbour", **said: Any) -> Any:
    """Another game publishes a base with these pages, in place of what it published before."""
    from evennia_ai.engine.knowledge.pages.markup import read_page
    from evennia_ai.engine.knowledge.pages.page import BaseInfo, PageDraft, page_name
    from evennia_ai.store.knowledge import knowledge_bases, pages
    from evennia_ai.store.library.bases import publish_base

    def publish() -> Any:
        info = BaseInfo(key=key, **{"name": "The Harbour", **said})
        knowledge_bases.save_base(info, by=trusted("Ismay"))
        for title, text in texts.items():
            page = read_page(page_name(title), text)
            pages.save_page(key, PageDraft(page=page, was="", by=trusted("Ismay")))
        return publish_base(key, by=trusted("Ismay"), **OTHER)

    return elsewhere(publish)


def published_card(description: str, *, name: str = "Oren") -> bool:
    """Another game publishes a card that says this."""
    import json

    from evennia_ai.store.authored.cards import save_card
    from evennia_ai.store.library.cards import publish_card

    data = {"name": name, "description": description}
    card = {"spec": "chara_card_v3", "spec_version": "3.0", "data": data}

    def publish() -> bool:
        save_card(name, json.dumps(card), by=trusted("Ismay"))
        return publish_card(name, by=trusted("Ismay"), **OTHER)

    return bool(elsewhere(publish))
