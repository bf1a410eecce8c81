"""A process that shares a database file with others and does one of `JOBS` (`tests/forking.py`).

It runs without Evennia, because the store needs only Django. It prints one line of JSON when it is
ready and one when it is done. Between the two it waits for a line in a pipe.
"""

import json
from pathlib import Path
from typing import Any

from evennia_ai.engine.actors import trusted

_go = Path()
"""The pipe in which a line lets this process go on."""


def prepare() -> None:
    """Start Django and import the store, without a query of the database."""
    import django
    from django.conf import settings

    settings.configure(
        INSTALLED_APPS=["evennia_ai"],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "OPTIONS": {"timeout": 20}}},
        USE_TZ=True,
        # Evennia's settings that our app reads.
        AT_SERVER_STARTSTOP_MODULE=[],
        SERVER_SERVICES_PLUGIN_MODULES=[],
    )
    django.setup()
    from evennia_ai.store.authored import (  # noqa: F401
        cards,
        components,
        lorebooks,
        notes,
        presets,
    )
    from evennia_ai.store.history import conversations, windows  # noqa: F401
    from evennia_ai.store.knowledge import knowledge_bases, pages  # noqa: F401


def live(given: dict[str, Any]) -> None:
    """Do the job `given["doing"]` on the database file `given["database"]`."""
    global _go
    from django.db import connections

    connections.settings["default"]["NAME"] = given["database"]
    _go = Path(given["go"])
    JOBS[given["doing"]](given["name"])


def say(**told: object) -> None:
    print(json.dumps(told), flush=True)


def wait_to_go() -> None:
    """Wait for a line in the pipe."""
    _go.read_text(encoding="utf-8")


def the_quay():
    """Return the conversation of an NPC in its room."""
    from evennia_ai.store.history import conversations

    return conversations.get_or_open_conversation("12", kind="room", place_ref="3")


def migrate(_: str) -> None:
    """Create the tables."""
    from django.core.management import call_command

    call_command("migrate", "evennia_ai", verbosity=0)
    say(ready=True)


def edit(name: str) -> None:
    """Change one component as an editor who saw its first revision."""
    from evennia_ai.engine.errors import EditConflictError
    from evennia_ai.store.authored import components

    components.registry()
    say(ready=True)
    wait_to_go()
    try:
        components.update("goals", by=trusted(name), content=f"{name} wins.", seen_revision=1)
    except EditConflictError as error:
        say(conflict=error.changed_by)
    else:
        say(saved=name)


def make_preset(name: str) -> None:
    """Save a preset."""
    from evennia_ai.store.authored import presets

    number = presets.import_preset("Loom", "{}", by=trusted(name))
    presets.PRESETS.approve("Loom", number or 0, grants=frozenset(), by=trusted(name))
    say(ready=True)


def switch_preset(name: str) -> None:
    """Switch a prompt of a preset as a builder who saw its first revision."""
    from evennia_ai.engine.errors import EditConflictError
    from evennia_ai.store.authored import presets

    seen = presets.get_preset("Loom")
    say(ready=True)
    wait_to_go()
    try:
        presets.switch(seen, {name: True}, by=trusted(name))
    except EditConflictError as error:
        say(conflict=error.changed_by)
    else:
        say(saved=name)


def edit_book(name: str) -> None:
    """Change one lorebook as an editor who saw its first revision."""
    from evennia_ai.engine.errors import EditConflictError
    from evennia_ai.store.authored import lorebooks

    say(ready=True)
    wait_to_go()
    try:
        lorebooks.save_book("harbour", json.dumps({"n": name}), by=trusted(name), seen_revision=1)
    except EditConflictError as error:
        say(conflict=error.changed_by)
    else:
        say(saved=name)


def make_book(name: str) -> None:
    """Create the lorebook that others edit."""
    from evennia_ai.store.authored import lorebooks

    lorebooks.save_book("harbour", "{}", by=trusted(name))
    say(ready=True)


def the_ferry(body: str, *, was: str, by: str):
    """Return the draft of a page."""
    from evennia_ai.engine.knowledge.pages.page import Page, PageDraft, page_name

    return PageDraft(page=Page(name=page_name("Ferry"), body=body), was=was, by=by)


def make_page(name: str) -> None:
    """Create the page that others edit, in a base that an NPC uses."""
    from evennia_ai.engine.knowledge.pages.page import BaseInfo
    from evennia_ai.engine.prompt.components import Scope
    from evennia_ai.store.knowledge import knowledge_bases, pages

    knowledge_bases.save_base(BaseInfo(key="harbour", name="Harbour"), by=trusted(name))
    knowledge_bases.assign_base("harbour", Scope(kind="npc", ref="12"), by=trusted(name))
    pages.save_page("harbour", the_ferry("It crosses.", was="", by=trusted(name)))
    say(ready=True)


def edit_page(name: str) -> None:
    """Change one page as an editor who saw its first revision."""
    from evennia_ai.engine.errors import EditConflictError
    from evennia_ai.store.knowledge import pages

    say(ready=True)
    wait_to_go()
    try:
        pages.save_page("harbour", the_ferry(f"{name} wins.", was="1", by=trusted(name)))
    except EditConflictError as error:
        say(conflict=error.changed_by)
    else:
        say(saved=name)


def watch_bases(_: str) -> None:
    """Print how many pages the bases of an NPC have before and after a refresh."""
    from evennia_ai.engine.prompt.components import Scope
    from evennia_ai.store.core import snapshots
    from evennia_ai.store.knowledge.knowledge_bases import bases_for

    def seen() -> list:
        return [[info.key, info.characters] for info in bases_for([Scope(kind="npc", ref="12")])]

    snapshots.refresh_if_changed()
    seen()
    say(ready=True)
    wait_to_go()
    before = seen()
    snapshots.refresh_if_changed()
    say(before=before, after=seen())


def append(name: str) -> None:
    """Append 20 pairs of records to one conversation, again after each conflict."""
    from evennia_ai.engine.errors import HistoryConflictError
    from evennia_ai.engine.history.records import NewRecord, RecordKind
    from evennia_ai.store.history import conversations

    where = the_quay()
    say(ready=True)
    wait_to_go()
    conflicts = 0
    for number in range(20):
        pair = [
            NewRecord(kind=RecordKind.EVENT, role="user", name=name, body=f"{number}{part}")
            for part in "ab"
        ]
        while True:
            try:
                conversations.append_records(where, pair)
                break
            except HistoryConflictError:
                conflicts += 1
    say(conflicts=conflicts)


def watch(name: str) -> None:
    """Print what a component contains before and after a refresh."""
    from evennia_ai.store.authored import components
    from evennia_ai.store.core import snapshots

    snapshots.refresh_if_changed()
    components.registry()
    say(ready=True)
    wait_to_go()
    before = components.registry().get("goals").content
    snapshots.refresh_if_changed()
    say(before=before, after=components.registry().get("goals").content)


def remember_lore(_: str) -> None:
    """Store a lore state of the conversation, as a turn does."""
    from evennia_ai.engine.lorebook.activation.timers import LoreState
    from evennia_ai.store.core.snapshots import one_transaction
    from evennia_ai.store.history.windows import remember_lore

    with one_transaction("remembering"):
        remember_lore(the_quay(), LoreState(matched=frozenset({"harbour#7"})), turn=1)
    say(ready=True)


def reset_lore(name: str) -> None:
    """Reset the lore state of the conversation."""
    from evennia_ai.store.history.windows import reset_lore

    say(ready=True)
    wait_to_go()
    say(removed=reset_lore(the_quay(), by=trusted(name)))


def watch_lore(_: str) -> None:
    """Print the lore state before and after a refresh."""
    from evennia_ai.store.core import snapshots
    from evennia_ai.store.history.windows import lore_states

    snapshots.refresh_if_changed()
    lore_states(the_quay().id)
    say(ready=True)
    wait_to_go()
    before = sorted(lore_states(the_quay().id).matched)
    snapshots.refresh_if_changed()
    say(before=before, after=sorted(lore_states(the_quay().id).matched))


def read_everything() -> list[str]:
    """Read everything that is stored, as a turn does."""
    from evennia_ai.engine.prompt.components import GAME
    from evennia_ai.store.authored import cards, components, lorebooks, notes
    from evennia_ai.store.history.windows import windows

    books = lorebooks.books_for([GAME])
    return [
        components.registry().get("goals").content,
        cards.card_of("12").name,
        *(book.name for book in books),
        *(note.content for note in notes.notes_for("12")),
        *(message.content for message in windows(the_quay().id).history),
    ]


def write_everything(number: int) -> None:
    """Write one thing of every kind, with this number in it."""
    from evennia_ai.engine.history.records import NewRecord, RecordKind
    from evennia_ai.engine.prompt.components import GAME, of_npc
    from evennia_ai.store.authored import cards, components, lorebooks, notes
    from evennia_ai.store.history import conversations

    components.update("goals", by=trusted("Mira"), content=f"goal {number}")
    cards.save_card("oren", json.dumps({"n": number}), by=trusted("Mira"))
    cards.CARDS.assign("oren", of_npc("12"), by=trusted("Mira"))
    lorebooks.save_book("harbour", json.dumps({"n": number}), by=trusted("Mira"))
    lorebooks.LOREBOOKS.assign("harbour", GAME, by=trusted("Mira"))
    notes.set_note("12", by=trusted("Mira"), content=f"note {number}")
    new = NewRecord(kind=RecordKind.EVENT, role="user", body=f"line {number}")
    conversations.append_records(the_quay(), [new])


def write_and_read(_: str) -> None:
    """Write one thing of every kind with real commits; then count the queries of reading them."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    say(ready=True)
    wait_to_go()
    write_everything(1)
    read_everything()
    write_everything(2)
    with CaptureQueriesContext(connection) as cold:
        read_everything()
    with CaptureQueriesContext(connection) as warm:
        told = read_everything()
    say(told=told, cold=len(cold), warm=len(warm))


JOBS = {
    "migrate": migrate,
    "edit": edit,
    "make_preset": make_preset,
    "switch_preset": switch_preset,
    "make_book": make_book,
    "edit_book": edit_book,
    "make_page": make_page,
    "edit_page": edit_page,
    "watch_bases": watch_bases,
    "append": append,
    "watch": watch,
    "remember_lore": remember_lore,
    "reset_lore": reset_lore,
    "watch_lore": watch_lore,
    "write_and_read": write_and_read,
}
