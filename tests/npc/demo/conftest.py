"""A game that was never started before, and one in which the demo is built: made once a file.

Nothing of Evennia or the demo at the top, which start later.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import pytest

from evennia_ai.engine.actors import trusted


@pytest.fixture(scope="module", autouse=True)
def _files() -> Iterator[None]:
    """The demo's files are read once for a file's tests, and not for each build."""
    from world import build_demo

    with pytest.MonkeyPatch.context() as patch:
        for name in ("read_content", "wiki_folder"):
            patch.setattr(build_demo, name, cache(getattr(build_demo, name)))
        yield


@pytest.fixture(scope="module")
def _limbo(world: Callable[[], AbstractContextManager[None]]) -> Iterator[int]:
    """The id of the one room of a game as Evennia's first start leaves it, with its channels."""
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
    """The id of the first room, once the demo is built: the longest part of most of these tests."""
    from world import build_demo

    with world(), pytest.MonkeyPatch.context() as patch:
        _start_in(_limbo, patch)
        build_demo.build()
        yield _limbo


@pytest.fixture(scope="module")
def _settled(_limbo: int, world: Callable[[], AbstractContextManager[None]]) -> Iterator[int]:
    """The id of the first room of a game in which people were before the demo was built."""
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
    """The first room of a game in which people were before the demo was built."""
    return _start_in(_settled, monkeypatch)


@pytest.fixture
def new_game(_limbo: int, db: None, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The first room of a new game, where everybody starts."""
    return _start_in(_limbo, monkeypatch)


@pytest.fixture
def demo(_demo: int, db: None, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The first room of a game in which the demo is built."""
    return _start_in(_demo, monkeypatch)


def _start_in(room_id: int, patch: pytest.MonkeyPatch) -> Any:
    from django.conf import settings
    from evennia.objects.models import ObjectDB

    room = ObjectDB.objects.get(id=room_id)
    patch.setattr(settings, "START_LOCATION", room.dbref)
    patch.setattr(settings, "DEFAULT_HOME", room.dbref)
    return room
