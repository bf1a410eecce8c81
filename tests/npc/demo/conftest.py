"""Games for the tests of the demo: never started, with the demo, or in use before the demo.

Each game is made once per test file. This module must not import Evennia or the demo at its top,
because they start later.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import pytest

from evennia_ai.engine.actors import trusted


@pytest.fixture(scope="module", autouse=True)
def _files() -> Iterator[None]:
    """Read the demo's files once per test file instead of once per build."""
    from world import build_demo

    with pytest.MonkeyPatch.context() as patch:
        for name in ("read_content", "wiki_folder"):
            patch.setattr(build_demo, name, cache(getattr(build_demo, name)))
        yield


@pytest.fixture(scope="module")
def _limbo(world: Callable[[], AbstractContextManager[None]]) -> Iterator[int]:
    """The ID of the only room of a game after Evennia's first start, with the default channels."""
    from django.conf import settings
    from evennia.comms.models import ChannelDB
    from evennia.server.initial_setup import LIMBO_DESC
    from evennia.utils.create import create_channel, create_object

    with world():
        for channel in settings.DEFAULT_CHANNELS:
            if not ChannelDB.objects.get_channel(channel["key"]):
                create_channel(**channel)
        limbo = create_object(
            settings.BASE_ROOM_TYPECLASS,
            key="Limbo",
            nohome=True,
            attributes=[("desc", LIMBO_DESC.strip())],
        )
        yield limbo.id


@pytest.fixture(scope="module")
def _demo(_limbo: int, world: Callable[[], AbstractContextManager[None]]) -> Iterator[int]:
    """The ID of the first room after the demo was built."""
    from world import build_demo

    with world(), pytest.MonkeyPatch.context() as patch:
        _start_in(_limbo, patch)
        build_demo.build()
        yield _limbo


@pytest.fixture(scope="module")
def _settled(_limbo: int, world: Callable[[], AbstractContextManager[None]]) -> Iterator[int]:
    """The ID of the first room of a game that had players before the demo was built."""
    from django.conf import settings
    from evennia.accounts.models import AccountDB
    from evennia.utils.create import create_object
    from evennia.utils.utils import class_from_module

    from evennia_ai.store.authored import cards, components
    from world import build_demo

    with world(), pytest.MonkeyPatch.context() as patch:
        room = _start_in(_limbo, patch)
        components.update("system_prompt", by=trusted("Tamsin"), content="Speak in verse.")
        cards.save_card("oren", '{"name": "Orin"}', by=trusted("Tamsin"))
        AccountDB.objects.create_user("anna", "", "her own password")
        class_from_module(settings.BASE_ACCOUNT_TYPECLASS).create(
            username=settings.DEMO_PASSWORDS.builder[0], password="of-theirs-own"
        )
        create_object(settings.BASE_CHARACTER_TYPECLASS, key="admin", location=room, home=room)
        build_demo.build()
        yield _limbo


@pytest.fixture
def settled(_settled: int, db: None, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The first room of a game that had players before the demo was built."""
    return _start_in(_settled, monkeypatch)


@pytest.fixture
def new_game(_limbo: int, db: None, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The first room of a new game, in which all characters start."""
    return _start_in(_limbo, monkeypatch)


@pytest.fixture
def demo(_demo: int, db: None, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The first room of a game with the demo."""
    return _start_in(_demo, monkeypatch)


def _start_in(room_id: int, patch: pytest.MonkeyPatch) -> Any:
    from django.conf import settings
    from evennia.objects.models import ObjectDB

    room = ObjectDB.objects.get(id=room_id)
    patch.setattr(settings, "START_LOCATION", room.dbref)
    patch.setattr(settings, "DEFAULT_HOME", room.dbref)
    return room
