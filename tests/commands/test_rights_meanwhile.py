"""A builder who loses a right between opening a thing and saving it writes nothing.

Each thing that can be opened is tested with a demotion and with one other way to lose a right.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import evennia
import pytest
from django.apps import apps
from evennia.accounts.accounts import DefaultAccount
from evennia.server.models import ServerConfig
from evennia.server.serversession import ServerSession
from evennia.utils.create import create_account

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import NotPermittedError
from evennia_ai.engine.prompt.personas import Persona
from evennia_ai.npc.mind.actors import actor_of
from evennia_ai.store.authored import components, lorebooks
from evennia_ai.store.authored.personas import persona_of, set_persona
from evennia_ai.store.knowledge import knowledge_bases
from tests.commands.knowledge_bases import make_base, write
from tests.commands.stage import component

ADDRESS = "203.0.113.7"
ADMIN = trusted("Ada")
LOCK = "view:perm(Admin);edit:perm(Admin)"

MADE = (
    "component/create mood = 1200: It is hot.",
    "component/off mood",
    "note oren = The ferry is late.",
    "note oren = The ferry is lost.",
    "lore/create harbour/ferry = ferry: It sails at dusk.",
    "lore/keys harbour/ferry = boat",
    "card/create Mira = Mira sells herbs.",
    "card/edit Mira/personality = gruff",
)
OPENED = {
    "the editor of a component": ("component/edit mood", "New words.", ":w"),
    "the editor of a note": ("note/edit oren", "New words.", ":w"),
    "the editor of a card": ("card/edit Mira/description", "New words.", ":w"),
    "the editor of lore": ("lore/edit harbour/ferry", "New words.", ":w"),
    "the editor of a page": ("kb/edit port/Oren", "New words.", ":w"),
    "component/remove": ("component/remove mood", "yes"),
    "component/revert": ("component/revert mood = 1", "yes"),
    "note/revert": ("note/revert oren = 1", "yes"),
    "lore/remove": ("lore/remove harbour", "yes"),
    "lore/revert": ("lore/revert harbour = 1", "yes"),
    "lore/lock": ("lore/lock harbour = view:perm(Admin)", "yes"),
    "card/revert": ("card/revert Mira = 1", "yes"),
    "kb/remove": ("kb/remove port", "yes"),
    "kb/revert": ("kb/revert port/Oren = 1", "yes"),
    "kb/lock": ("kb/lock port/Oren = view:perm(Admin)", "yes"),
    "kb/set": ("kb/set port/locks = view:perm(Admin)", "yes"),
}
"""The lines typed before the right is lost, and the last line, typed after it."""


def demoted(account: Any) -> None:
    account.permissions.remove("Builder")
    account.permissions.add("Player")


def banned(account: Any, *, name: str = "", address: str = "") -> None:
    """Ban the builder as Evennia's command `ban` does."""
    found = re.compile(re.escape(address)) if address else ""
    now = datetime.now(tz=UTC).isoformat()
    ServerConfig.objects.conf("server_bans", [(name, address, found, now, "rude")])


def deleted(account: Any) -> None:
    """Delete the account as Evennia does. No Portal is here that could end the session."""
    evennia.SESSION_HANDLER.pop(77)
    account.delete()


LOSSES: dict[str, Callable[[Any], None]] = {
    "demotion": demoted,
    "ban by name": lambda account: banned(account, name=account.username.lower()),
    "ban by address": lambda account: banned(account, address=ADDRESS),
    "deletion": deleted,
}


@pytest.fixture(scope="module")
def made(beforehand: Any) -> Any:
    def make(stage: Any) -> None:
        stage.builds(*MADE)
        make_base("port")
        write("Oren", "Oren is gone.", base="port", was="1")

    return beforehand(make)


@pytest.fixture
def account(stage: Any, made: Any) -> Iterator[Any]:
    """Return the account of the builder. Only its character lacks a rank; it plays at `ADDRESS`."""
    account = create_account("Mara", "", "harbour-player-1", typeclass=DefaultAccount)
    account.permissions.clear()
    account.permissions.add("Builder")
    stage.builder.permissions.clear()
    stage.builder.permissions.add("Player")
    stage.builder.account = account
    session = ServerSession()
    session.init_session("telnet", (ADDRESS, 4000), evennia.SESSION_HANDLER)
    session.sessid, session.logged_in, session.uid = 77, True, account.pk
    session.account = account
    evennia.SESSION_HANDLER[77] = session
    try:
        yield account
    finally:
        evennia.SESSION_HANDLER.pop(77, None)
        ServerConfig.objects.conf("server_bans", delete=True)


def everything() -> dict[str, list[Any]]:
    """Return all rows of the package's tables, including the counters of revisions."""
    tables = apps.get_app_config("evennia_ai").get_models()
    return {model.__name__: list(model.objects.order_by("pk").values()) for model in tables}


ALSO = [name for name in LOSSES if name != "demotion"]


@pytest.mark.parametrize(
    ("opened", "loss"),
    [
        pair
        for number, opened in enumerate(OPENED)
        for pair in ((opened, "demotion"), (opened, ALSO[number % len(ALSO)]))
    ],
)
def test_opened_thing_writes_nothing_after_a_right_is_lost(
    stage: Any, account: Any, opened: str, loss: str
) -> None:
    *before, last = OPENED[opened]
    stage.builds(*before)
    LOSSES[loss](account)
    rows = everything()
    told = stage.builds(last)
    assert "was refused: " in " ".join(told.split()), told
    assert everything() == rows


@pytest.mark.parametrize("opened", OPENED)
def test_opened_thing_is_written_if_no_right_is_lost(stage: Any, account: Any, opened: str) -> None:
    *before, last = OPENED[opened]
    stage.builds(*before)
    rows = everything()
    assert "refused" not in stage.builds(last)
    assert everything() != rows


@pytest.mark.parametrize(
    ("opened", "lock"),
    [
        ("the editor of lore", lambda: lorebooks.set_book_locks("harbour", LOCK, by=ADMIN)),
        ("lore/remove", lambda: lorebooks.set_book_locks("harbour", LOCK, by=ADMIN)),
        ("lore/revert", lambda: lorebooks.set_book_locks("harbour", LOCK, by=ADMIN)),
        ("lore/remove", lambda: lorebooks.set_entry_locks("harbour", "0", LOCK, by=ADMIN)),
        ("lore/revert", lambda: lorebooks.set_entry_locks("harbour", "0", LOCK, by=ADMIN)),
        ("the editor of a page", lambda: lock_base()),
        ("kb/revert", lambda: lock_base()),
        ("kb/remove", lambda: lock_base()),
        ("kb/set", lambda: lock_base()),
        ("kb/lock", lambda: lock_base()),
    ],
)
def test_opened_thing_writes_nothing_after_a_lock_is_set(
    stage: Any, account: Any, opened: str, lock: Callable[[], object]
) -> None:
    *before, last = OPENED[opened]
    stage.builds(*before)
    lock()
    rows = everything()
    stage.builds(last)
    assert everything() == rows


def lock_base() -> None:
    base = knowledge_bases.get_base("port")
    knowledge_bases.save_base(replace(base, locks=LOCK), by=ADMIN)


def test_text_stays_in_the_editor_after_a_refused_save(stage: Any, account: Any) -> None:
    stage.builds("component/edit mood", "Kept words.")
    demoted(account)
    stage.builds(":w")
    assert "Kept words." in stage.builds(":")
    account.permissions.add("Builder")
    assert "Saved mood" in stage.builds(":w")
    assert "Kept words." in component("mood").content


@pytest.mark.parametrize(
    ("opened", "change"),
    [
        ("component/remove", lambda: components.update("mood", content="Hers.", by=ADMIN)),
        ("component/revert", lambda: components.update("mood", content="Hers.", by=ADMIN)),
        ("component/revert", lambda: components.COMPONENTS.remove("mood", by=ADMIN)),
        ("lore/remove", lambda: lorebooks.save_book("harbour", "{}", by=ADMIN)),
        ("lore/revert", lambda: lorebooks.LOREBOOKS.remove("harbour", by=ADMIN)),
        ("kb/remove", lambda: knowledge_bases.set_restricted("port", True, by=ADMIN)),
        ("kb/set", lambda: knowledge_bases.set_restricted("port", True, by=ADMIN)),
    ],
)
def test_second_save_names_the_first_builder_and_overwrites_nothing(
    stage: Any, account: Any, opened: str, change: Callable[[], object]
) -> None:
    *before, last = OPENED[opened]
    stage.builds(*before)
    change()
    rows = everything()
    assert "was changed by Ada" in " ".join(stage.builds(last).split())
    assert everything() == rows


def test_actor_counts_as_account_after_its_character_is_left(stage: Any, account: Any) -> None:
    actor = actor_of(stage.builder, "cmd:perm(Builder)")
    stage.builder.account = None
    assert actor.why_not() == ""
    demoted(account)
    assert "permission" in actor.why_not()


def test_persona_is_written_by_its_own_player_only(stage: Any, account: Any) -> None:
    other = str(stage.player.id)
    with pytest.raises(NotPermittedError):
        set_persona(
            other,
            Persona(text="Mean."),
            most_characters=99,
            by=actor_of(stage.builder, "cmd:all()"),
        )
    assert persona_of(other) is None


def test_remove_of_a_base_is_refused_if_pages_are_hidden(stage: Any, account: Any) -> None:
    write("Quay", "---\nlocks: view:perm(Admin)\n---\nUnder it.", base="port")
    actor = actor_of(stage.builder, "cmd:perm(Builder)")
    with pytest.raises(NotPermittedError):
        knowledge_bases.remove_base("port", by=actor)
    assert knowledge_bases.base_or_none("port") is not None
