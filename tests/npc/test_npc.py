"""An NPC that a builder creates with Evennia's own commands."""

import pytest
from evennia.accounts.accounts import DefaultAccount
from evennia.commands.default.building import CmdCreate
from evennia.objects.models import ObjectDB
from evennia.objects.objects import DefaultRoom
from evennia.utils.create import create_object

from evennia_ai.typeclasses import AINPC


@pytest.fixture
def builder(db):
    """Return a builder's character in a room. Its account has no free character slot."""
    account, errors = DefaultAccount.create(
        username="mason", password="a-long-password-1", permissions=["Builder"]
    )
    assert not errors
    character = account.characters.all()[0]
    character.location = create_object(DefaultRoom, key="Yard")
    character.account = account
    assert account.check_available_slots()
    return character


def _create(builder, line):
    command = CmdCreate()
    command.caller, command.session, command.cmdstring, command.raw_string = builder, None, "", ""
    command.args = line
    command.parse()
    command.func()


def test_builder_creates_an_npc_without_using_a_character_slot(builder):
    _create(builder, "/drop Karl:evennia_ai.typeclasses.AINPC")

    karl = ObjectDB.objects.get(db_key="Karl")
    assert isinstance(karl, AINPC)
    assert karl.location == builder.location
    assert karl not in builder.account.characters.all()


def test_builders_may_edit_an_npc_and_players_may_not(builder):
    _create(builder, "/drop Karl:evennia_ai.typeclasses.AINPC")
    karl = ObjectDB.objects.get(db_key="Karl")

    assert karl.access(builder, "edit")
    assert karl.access(builder, "delete")
    builder.account.permissions.clear()
    builder.account.permissions.add("Player")
    builder.permissions.clear()
    assert not karl.access(builder, "edit")
    assert not karl.access(builder, "delete")
    assert not karl.access(builder, "puppet")
