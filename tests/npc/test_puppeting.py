"""An NPC that was played by a player gets its own rights and its place back."""

from itertools import count
from types import SimpleNamespace

import evennia
import pytest
from evennia.accounts.accounts import DefaultAccount
from evennia.server.portal.telnet import TelnetProtocol
from evennia.utils.create import create_object

from evennia_ai.engine.actors import THE_GAME
from evennia_ai.npc.npc_settings import change_settings
from evennia_ai.npc.senses.presence import is_on
from evennia_ai.typeclasses import AIMixin
from tests.npc.screens import session_at
from tests.npc.turn.test_turn_acts import calls

THING = "evennia.objects.objects.DefaultObject"
_numbers = count(900)
_NO_PORTAL = SimpleNamespace(
    sessions_from_account=lambda account: [],
    disconnect=lambda session, reason: session.at_disconnect(reason),
)
"""The part of Evennia's session handler that a session calls when it ends."""


class Player:
    """An account with a telnet session."""

    def __init__(self, name: str, *, superuser: bool = False, permission: str = "Developer"):
        account, errors = DefaultAccount.create(
            username=name, password="a-long-password-1", permissions=[permission]
        )
        assert not errors
        account.is_superuser = superuser
        account.is_connected = True
        account.save()
        self.account = account
        self.session = self.another_session()

    def another_session(self):
        session = session_at(TelnetProtocol)
        session.sessid = next(_numbers)
        session.account, session.uid, session.logged_in = self.account, self.account.uid, True
        session.sessionhandler = _NO_PORTAL
        evennia.SESSION_HANDLER[session.sessid] = session
        return session

    def plays(self, character, session=None) -> None:
        session = session or self.session
        self.account.puppet_object(session, character)
        assert session.puppet is character

    def stops(self, session=None) -> None:
        self.account.unpuppet_object(session or self.session)


@pytest.fixture
def players(stage):
    made = []

    def player(name: str = "god", **more) -> Player:
        made.append(Player(name, **more))
        return made[-1]

    yield player
    for one in made:
        evennia.SESSION_HANDLER.pop(one.session.sessid, None)


@pytest.fixture
def god(players):
    return players(superuser=True)


@pytest.fixture
def crown(stage):
    crown = create_object(THING, key="crown", location=stage.room, nohome=True)
    crown.locks.add("get:perm(Admin)")
    return crown


def dropped(player, npc):
    player.session.at_disconnect()


def went_elsewhere(player, npc):
    player.plays(player.account.characters.all()[0])


def deleted(player, npc):
    player.account.delete()


def shut_down(player, npc):
    player.account.unpuppet_all()


def quelled(player, npc):
    player.account.attributes.add("_quell", True)
    npc.locks.cache_lock_bypass(npc)
    player.account.attributes.remove("_quell")
    npc.locks.cache_lock_bypass(npc)
    player.stops()


def crashed(player, npc):
    """End the process without a stop. The next process loads the NPC from the database."""
    evennia.SESSION_HANDLER.pop(player.session.sessid)
    npc.sessions._recache()
    npc.locks.reset()
    npc.at_init()


def crashed_and_cleaned(player, npc):
    """Let Evennia clean up after a crash some minutes later, while the objects are in memory."""
    evennia.SESSION_HANDLER.pop(player.session.sessid)
    npc.sessions._recache()
    npc.at_pre_unpuppet()
    npc.at_post_unpuppet(None, reason=" (connection lost)")


def stopped(player, npc):
    player.stops()


ENDS = [
    stopped,
    dropped,
    went_elsewhere,
    deleted,
    shut_down,
    quelled,
    crashed,
    crashed_and_cleaned,
]


@pytest.mark.parametrize("ends", ENDS, ids=lambda ends: ends.__name__)
def test_npc_has_its_own_rights_and_its_place_when_playing_it_ends(stage, god, crown, ends):
    npc, room = stage.npc, stage.room
    god.plays(npc)
    assert crown.access(npc, "get")
    ends(god, npc)

    assert not crown.access(npc, "get")
    assert not npc.locks.lock_bypass
    assert not npc.is_superuser
    assert npc.account is None
    assert npc.location == room
    assert is_on(npc)


@pytest.mark.parametrize("permission", ["Developer", "Admin"])
def test_npc_loses_the_permissions_of_an_account_that_is_no_superuser(
    stage, players, crown, permission
):
    mason = players("mason", permission=permission)
    stage.npc.locks.add("puppet:all()")
    mason.plays(stage.npc)
    assert crown.access(stage.npc, "get")
    mason.stops()
    assert not crown.access(stage.npc, "get")


def test_npc_stays_played_when_one_of_two_sessions_ends(stage, god, crown):
    god.plays(stage.npc)
    other = god.another_session()
    stage.npc.sessions.add(other)
    other.puppet, other.puid = stage.npc, stage.npc.id
    god.stops(other)
    assert crown.access(stage.npc, "get")
    assert stage.npc.account == god.account
    god.stops()
    assert not crown.access(stage.npc, "get")


def test_npc_gets_the_rights_of_the_next_one_who_plays_it(stage, god, players, crown):
    god.plays(stage.npc)
    god.stops()
    mason = players("mason")
    mason.account.permissions.clear()
    stage.npc.locks.add("puppet:all()")
    mason.plays(stage.npc)
    assert not crown.access(stage.npc, "get")


def test_no_arrival_or_departure_is_shown_when_an_npc_is_played(stage, god):
    god.plays(stage.npc)
    god.stops()
    stage.passes(1)
    assert stage.screen_of(stage.anna) == []
    assert stage.npc.attributes.get("prelogout_location") is None


def test_other_npcs_perceive_no_arrival_when_an_npc_is_played(stage, god):
    from evennia_ai.npc.senses.witness import watch_logins

    watch_logins()
    clo = stage.make("Clo", "evennia_ai.typeclasses.AINPC")
    seen = []
    clo.ai.hear = seen.append
    god.plays(stage.npc)
    god.stops()
    stage.passes(1)
    assert seen == []


def test_npc_answers_again_when_playing_it_ends(stage, god):
    stage.talks_with("Aye.")
    god.plays(stage.npc)
    stage.says(stage.anna, "Oren, are you there?")
    assert 'Oren says, "Aye."' not in stage.screen_of(stage.anna)
    god.stops()
    stage.says(stage.anna, "Oren, are you there now?")
    assert stage.screen_of(stage.anna)[-1] == 'Oren says, "Aye."'


def test_tool_call_does_not_run_when_the_npc_is_played_meanwhile(stage, god, crown):
    change_settings(stage.npc, tools=("take",), by=THE_GAME)
    model = stage.talks_with(calls(("take", {"item": "crown"})), "Aye.", delay_seconds=1.0)
    stage.says(stage.anna, "Oren, take the crown.")
    god.plays(stage.npc)
    stage.passes(1)
    stage.passes(1)
    assert model.requests
    assert crown.location == stage.room


class Guest(AIMixin, evennia.DefaultCharacter):
    """A player's character that has a mind."""


def test_character_of_a_player_is_stored_without_the_rights_of_the_account(stage, god, crown):
    guest = create_object(Guest, key="Guest", location=stage.room, nohome=True)
    god.account.characters.add(guest)
    god.plays(guest)
    assert "Guest has entered the game." in stage.screen_of(stage.anna)
    god.stops()
    assert guest.location is None
    assert guest.db.prelogout_location == stage.room
    assert not crown.access(guest, "get")
