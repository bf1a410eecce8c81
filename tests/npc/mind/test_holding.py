"""An NPC that once had to guard a restricted base guards it until somebody with the right ends
that.

Medium 8 of the audit: a builder could undo `restricted:tag(outsider)` at once with `tag/del`.
"""

from unittest.mock import patch

import pytest
from evennia.objects.models import ObjectDB
from evennia.utils.search import search_object

from evennia_ai.commands.cmdset import AICmdSet
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.knowledge.pages.page import BaseInfo
from evennia_ai.npc.knowledge.guarding import must_guard
from evennia_ai.npc.mind.guard_watch import record_all_guards
from evennia_ai.npc.service import at_server_start, at_server_stop
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.knowledge import knowledge_bases
from tests.npc.knowledge.cellars import a_page, written

HOLDERS = "restricted:tag(outsider);edit:perm(Admin)"


@pytest.fixture
def types(stage):
    """Return a function that types lines as somebody of a rank and returns what they read."""
    from evennia.commands.default.cmdset_character import CharacterCmdSet

    from tests.commands.stage import _at_once, hearing

    def read(rank, *lines):
        viewer = stage.make("Mara", "evennia.objects.objects.DefaultCharacter")
        viewer.permissions.clear()
        viewer.permissions.add(rank)
        viewer.cmdset.add(CharacterCmdSet)
        viewer.cmdset.add(AICmdSet)
        with hearing(viewer) as heard, patch("evennia.commands.cmdhandler.deferLater", _at_once):
            for line in lines:
                viewer.execute_cmd(line)
        viewer.delete()
        return " ".join("\n".join(heard).split())

    return read


@pytest.fixture
def outsider(stage):
    """Make Oren an outsider, and create a base that is restricted for outsiders and owned by
    Admins.
    """
    made(HOLDERS)
    stage.npc.tags.add("outsider")
    return stage.npc


def made(locks, **fields):
    info = BaseInfo(key="vault", name="The vault", restricted=True, locks=locks, **fields)
    return knowledge_bases.save_base(info, by=trusted("Ada"))


def holds_oren(npc):
    return must_guard(npc, knowledge_bases.get_base("vault"))


# Commands of Evennia that a builder may type, which also run code with effects on tags.
UNDOINGS = {
    "tag/del": "tag/del oren = outsider",
    "tag/del of all": "tag/del oren",
    "set": "set oren/outsider =",
    "lock": "lock oren = view:all()",
    "typeclass": "typeclass/force oren = evennia.objects.objects.DefaultCharacter",
    "name": "name oren = Ned",
    "tel": "tel oren = #2",
}


@pytest.mark.req("S0-45")
@pytest.mark.parametrize("undoing", UNDOINGS)
def test_guard_does_not_end_when_a_builder_uses_a_command_of_evennia(outsider, types, undoing):
    types("Builder", "tag/del oren = outsider", UNDOINGS[undoing])
    npc = ObjectDB.objects.get(id=outsider.id)
    assert "outsider" not in npc.tags.all()
    assert holds_oren(npc)


@pytest.mark.long
@pytest.mark.req("S0-45")
def test_guard_does_not_end_when_a_builder_uses_kb(outsider, types):
    written("vault", a_page("The Hoard", "Under the fourth step."))
    before = knowledge_bases.get_base("vault")
    lines = (
        *("kb/set vault/locks = off", "kb/set vault/locks = restricted:none()"),
        *("kb/restricted vault = off", "kb/release vault = oren", "kb/assign vault = game"),
        *("kb/unassign vault = game", "kb/set vault/mediation = hints", "kb/set vault/name = Open"),
        *("kb/rename vault/The Hoard = Hoard", "kb/lock vault/The Hoard = search:all()"),
        *("kb/hints vault/The Hoard = A hint.", "kb/edit vault/The Hoard", "kb/edit vault/New"),
        *("kb/revert vault/The Hoard = 1", "kb/remove vault/The Hoard", "kb/remove vault"),
        *("kb/vault vault = empty", "kb/import/run vault"),
    )
    for line in lines:
        told = types("Builder", line, "yes")
        assert "may not change" in told or "There is no folder" in told, line
    outsider.tags.remove("outsider")
    assert knowledge_bases.get_base("vault") == before
    assert holds_oren(outsider)


def test_npc_with_the_tag_guards_before_its_first_check(outsider):
    outsider.tags.clear()  # no signal of the database is sent for this
    assert holds_oren(outsider)


def test_guard_does_not_end_when_a_tag_that_frees_is_added_later(stage):
    made("restricted:not tag(insider)")
    stage.npc.tags.add("insider")
    assert holds_oren(stage.npc)


def test_npc_guards_when_it_has_the_tag_while_the_base_gets_its_lock(stage, types):
    knowledge_bases.save_base(BaseInfo(key="vault", name="The vault"), by=trusted("Ada"))
    stage.npc.tags.add("outsider")
    types("Admin", "kb/set vault/locks = restricted:tag(outsider)", "kb/restricted vault = on")
    stage.npc.tags.clear()
    assert holds_oren(stage.npc)


def test_guards_are_recorded_when_the_server_starts(stage):
    stage.npc.tags.add("outsider")
    made(HOLDERS)
    at_server_start()
    at_server_stop()
    stage.npc.tags.clear()
    assert holds_oren(stage.npc)


def test_npc_without_the_tag_does_not_guard(outsider, stage):
    ned = stage.make("Ned", "evennia_ai.typeclasses.AINPC")
    record_all_guards()
    assert not must_guard(ned, knowledge_bases.get_base("vault"))


def test_guard_does_not_end_when_a_permission_is_added(stage):
    made("restricted:not perm(Helper)")
    stage.npc.permissions.add("Helper")
    assert holds_oren(stage.npc)


def test_other_conditions_of_a_lock_count_from_their_first_check(stage):
    made("restricted:attr(outsider)")
    stage.npc.db.outsider = True
    assert holds_oren(stage.npc)
    del stage.npc.db.outsider
    assert holds_oren(stage.npc)


def test_guard_survives_a_reload_and_is_known_to_another_process(outsider):
    outsider.tags.clear()
    forget_everything()
    assert holds_oren(outsider)


@pytest.mark.long
def test_guard_survives_when_its_base_is_deleted_and_created_again(outsider, types):
    outsider.tags.clear()
    types("Admin", "kb/remove vault", "yes")
    assert knowledge_bases.base_or_none("vault") is None
    told = types("Builder", "kb/create vault", "kb/restricted vault = on")
    assert "restricted from now on" in told
    types("Builder", "kb/set vault/locks = restricted:tag(outsider)")
    assert holds_oren(outsider)
    assert "whose lock does not let you" in types("Builder", "kb/release vault = oren")
    assert holds_oren(outsider)
    assert "no longer guards vault" in types("Admin", "kb/release vault = oren")
    assert not holds_oren(outsider)


def test_guard_does_not_end_when_the_base_gets_a_new_lock(outsider, types):
    told = types("Admin", "kb/set vault/locks = restricted:tag(other)")
    assert "NPCs that guard it for good: 1; kb/release vault lists them" in told
    assert holds_oren(outsider)


@pytest.mark.req("S0-45")
def test_guard_ends_when_somebody_who_may_change_the_base_ends_it(outsider, types):
    told = types("Admin", "kb/release vault")
    assert f"Oren (#{outsider.id}), since" in told and "the lock restricts it now" in told
    assert "still restricts Oren" in types("Admin", "kb/release vault = oren")
    types("Builder", "tag/del oren = outsider")
    assert "the lock does not restrict it now" in types("Builder", "kb/release vault")
    assert "may not change" in types("Builder", "kb/release vault = oren")
    assert holds_oren(outsider)
    assert "no longer guards vault" in types("Admin", "kb/release vault = oren")
    assert not holds_oren(outsider)
    assert "No NPC guards vault for good" in types("Admin", "kb/release vault")
    assert "does not guard" in types("Admin", "kb/release vault = oren")
    outsider.tags.add("outsider")
    outsider.tags.remove("outsider")
    assert holds_oren(outsider)


def test_deleted_guard_is_listed_by_number(outsider, types):
    ref = outsider.id
    outsider.delete()
    assert not search_object(f"#{ref}")
    assert "gone (#" in types("Admin", "kb/release vault")
    assert "no longer" in types("Admin", f"kb/release vault = #{ref}")
    assert knowledge_bases.held_refs("vault") == frozenset()


def test_no_guards_are_recorded_when_the_base_is_restricted_for_all(stage):
    info = made("view:all()")
    assert must_guard(stage.npc, info)
    assert knowledge_bases.held_refs("vault") == frozenset()


def test_guards_are_read_without_a_query(outsider, no_queries):
    holds_oren(outsider)
    with no_queries():
        assert holds_oren(outsider)


def test_builder_is_asked_before_a_lock_takes_away_the_own_right_to_change(types):
    types("Builder", "kb/create lamps")
    told = types("Builder", "kb/set lamps/locks = edit:perm(Admin)", "no")
    assert "could no longer change knowledge base lamps" in told
    assert knowledge_bases.get_base("lamps").locks == ""
