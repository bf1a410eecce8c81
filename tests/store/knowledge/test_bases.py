"""Test stored knowledge bases, and the scopes to which they are bound."""

from dataclasses import replace

import pytest

from evennia_ai import models
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import ComponentValueError, NotStoredError
from evennia_ai.engine.knowledge.pages.page import BaseInfo, page_name
from evennia_ai.engine.prompt.components import GAME, Scope
from evennia_ai.store.core.snapshots import forget_everything, refresh_if_changed
from evennia_ai.store.knowledge import knowledge_bases, pages
from evennia_ai.store.knowledge.knowledge_bases import (
    assign_base,
    assigned_to,
    base_or_none,
    bases_for,
    list_bases,
    remove_base,
    save_base,
    set_restricted,
    unassign_base,
)
from tests.store.knowledge.knowledge_builders import a_base, a_saved_page

OREN = Scope(kind="npc", ref="12")
QUAY = Scope(kind="room", ref="3")
HARBOUR = Scope(kind="zone", ref="harbour")
TALK = Scope(kind="conversation", ref="7")


def keys_of(infos) -> list[str]:
    return [info.key for info in infos]


def test_settings_of_a_knowledge_base_are_stored():
    info = a_base(
        summary="The village.",
        topics=("ferry", "tides"),
        hint="old ships",
        keywords=("ship",),
        restricted=True,
        keeps_chunks=False,
        direct_characters=500,
        locks="search:all()",
        backend="mediawiki",
    )
    forget_everything()

    assert base_or_none("harbour") == info
    assert (info.topics, info.restricted, info.keeps_chunks) == (("ferry", "tides"), True, False)


def test_knowledge_bases_are_sorted_by_key():
    for key in ("quay", "ash", "harbour"):
        a_base(key)

    assert keys_of(list_bases()) == ["ash", "harbour", "quay"]


def test_unknown_knowledge_base_does_not_exist():
    a_base()

    assert base_or_none("quay") is None
    with pytest.raises(NotStoredError, match="no knowledge base 'quay'; there are harbour"):
        knowledge_bases.get_base("quay")


def test_knowledge_base_gets_a_new_revision_only_when_it_changes():
    told = [a_base(name=name).revision for name in ("Harbour", "Harbour", "The harbour")]

    assert told == [1, 1, 2]


def test_saving_a_knowledge_base_keeps_its_counts():
    a_base()
    a_saved_page(body="12345")
    save_base(replace(base_or_none("harbour"), summary="New.", pages=99), by=trusted("Mira"))

    assert (base_or_none("harbour").pages, base_or_none("harbour").characters) == (1, 5)


def test_knowledge_base_can_be_restricted_and_released():
    a_base(summary="Secret.")

    assert set_restricted("harbour", True, by=trusted("Mira")).restricted
    assert base_or_none("harbour") == replace(
        base_or_none("harbour"), restricted=True, summary="Secret."
    )
    assert not set_restricted("harbour", False, by=trusted("Mira")).restricted


def test_restricting_an_unknown_knowledge_base_is_an_error():
    with pytest.raises(NotStoredError, match="no knowledge base 'quay'"):
        set_restricted("quay", True, by=trusted("Mira"))


@pytest.mark.parametrize(
    ("field", "value", "wanted"),
    [
        ("key", "The Harbour", "a slug"),
        ("key", "", "a slug"),
        ("key", "x" * 65, "a slug"),
        ("name", "  ", "1 to 200 printable characters"),
        ("name", "a\nb", "1 to 200 printable characters"),
        ("summary", "x" * 4001, "at most 4000"),
        ("hint", "\ud800", "at most 4000"),
        ("topics", ("x",) * 51, "at most 50"),
        ("keywords", (" ",), "1 to 200"),
        ("direct_characters", -1, "a whole number"),
        ("backend", "My Wiki", "a slug"),
        ("locks", "x" * 2001, "a lock string"),
    ],
)
def test_invalid_knowledge_base_settings_are_refused_with_the_reason(field, value, wanted):
    info = replace(BaseInfo(key="harbour", name="Harbour"), **{field: value})

    with pytest.raises(ComponentValueError, match=wanted):
        save_base(info, by=trusted("Mira"))
    assert list_bases() == ()


def test_removed_knowledge_base_loses_pages_and_bindings_and_keeps_revisions():
    a_base()
    a_saved_page("Ferry")
    assign_base("harbour", OREN, by=trusted("Mira"))

    remove_base("harbour", by=trusted("Tam"))

    assert base_or_none("harbour") is None
    assert bases_for([OREN]) == ()
    assert models.KnowledgePage.objects.count() == 0
    told = pages.page_revisions("harbour", page_name("Ferry"))
    assert [(one.action, one.changed_by) for one in told] == [
        ("created", "Mira"),
        ("removed", "Tam"),
    ]
    assert pages.page_at_revision("harbour", page_name("Ferry"), 1).body == "It crosses at dusk."


def test_recreated_knowledge_base_is_empty_and_continues_page_revisions():
    a_base()
    a_saved_page("Ferry")
    remove_base("harbour", by=trusted("Tam"))
    a_base()

    assert base_or_none("harbour").pages == 0
    assert a_saved_page("Ferry").revision == "3"


class TestBindings:
    def test_knowledge_base_is_used_where_it_is_bound(self):
        a_base("harbour")
        a_base("ash")
        assign_base("harbour", GAME, by=trusted("Mira"))
        assign_base("ash", OREN, by=trusted("Mira"))

        assert keys_of(bases_for([GAME])) == ["harbour"]
        assert keys_of(bases_for([GAME, QUAY, OREN])) == ["ash", "harbour"]
        assert bases_for([QUAY]) == ()

    def test_knowledge_base_bound_twice_is_used_once(self):
        a_base()
        for scope in (GAME, OREN, OREN):
            assign_base("harbour", scope, by=trusted("Mira"))

        assert keys_of(bases_for([OREN, GAME])) == ["harbour"]

    def test_bindings_are_listed_from_wide_to_narrow(self):
        a_base()
        for scope in (TALK, OREN, GAME, QUAY, HARBOUR):
            assign_base("harbour", scope, by=trusted("Mira"))

        assert assigned_to("harbour") == (GAME, HARBOUR, QUAY, OREN, TALK)

    def test_unbinding_reports_whether_a_binding_existed(self):
        a_base()
        assign_base("harbour", OREN, by=trusted("Mira"))

        assert [unassign_base("harbour", OREN, by=trusted("Mira")) for _ in range(2)] == [
            True,
            False,
        ]
        assert bases_for([OREN]) == ()

    @pytest.mark.parametrize(
        "scope", [Scope(kind="game", ref="1"), Scope(kind="npc"), Scope(kind="room", ref="\n")]
    )
    def test_invalid_scope_of_a_binding_is_refused(self, scope):
        a_base()

        with pytest.raises(ComponentValueError, match="the game, or zone, room"):
            assign_base("harbour", scope, by=trusted("Mira"))

    def test_binding_an_unknown_knowledge_base_is_an_error(self):
        with pytest.raises(NotStoredError, match="no knowledge base 'quay'"):
            assign_base("quay", OREN, by=trusted("Mira"))

    def test_cached_knowledge_bases_are_read_without_a_query(self, no_queries):
        a_base()
        assign_base("harbour", OREN, by=trusted("Mira"))
        scopes = [GAME, HARBOUR, QUAY, OREN, TALK]
        cold = bases_for(scopes)

        with no_queries():
            assert bases_for(scopes) == cold
            assert base_or_none("harbour") == cold[0]
            assert list_bases() == cold

    def test_changed_knowledge_bases_are_read_again(self):
        a_base()
        assign_base("harbour", OREN, by=trusted("Mira"))
        bases_for([OREN])
        a_base(summary="New.")

        assert bases_for([OREN])[0].summary == "New."

    def test_knowledge_bases_changed_by_another_process_are_read_again(self):
        a_base()
        refresh_if_changed()
        list_bases()
        models.KnowledgeBase.objects.update(summary="By another.")
        models.StateRevision.objects.filter(name="knowledge").update(number=99)

        assert "knowledge" in refresh_if_changed()
        assert base_or_none("harbour").summary == "By another."
