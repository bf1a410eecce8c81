"""Test imports of presets, grants, switches, scopes and reverts."""

import pytest
from django.test.utils import CaptureQueriesContext

from evennia_ai import models
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import (
    ComponentValueError,
    EditConflictError,
    FormatError,
    NotStoredError,
    StoreError,
)
from evennia_ai.engine.prompt.components import ALL_GRANTS, GAME, NO_GRANTS, Scope
from evennia_ai.store.authored import presets
from evennia_ai.store.authored.life_cycle import grant_givers, grants_text
from evennia_ai.store.core.snapshots import forget_everything

FIRST = '{"prompts": [{"identifier": "main", "content": "One."}]}'
SECOND = '{"prompts": [{"identifier": "main", "content": "Two."}]}'
ROLES = frozenset({"roles"})
HARBOUR, QUAY, OREN = Scope(kind="zone", ref="harbour"), Scope(kind="room", ref="3"), "12"
NPC = Scope(kind="npc", ref=OREN)


def approved(source=FIRST, *, name="Loom", grants=NO_GRANTS):
    """Return the preset of this text, imported and approved."""
    number = presets.import_preset(name, source, by=trusted("Mira"))
    return presets.PRESETS.approve(name, number, grants=grants, by=trusted("Tam"))


def told(name="Loom"):
    """Return the changes of a preset in short form."""
    return [
        f"{one.number} {one.action} by {one.changed_by}: {grants_text(one.value.grants)}"
        f" {dict(one.value.switches)}"
        for one in presets.PRESETS.revisions(name)
    ]


def test_preset_import_changes_nothing_until_approved():
    assert presets.import_preset("Loom", FIRST, by=trusted("Mira")) == 1

    assert (presets.PRESETS.list_keys(), presets.preset_or_none("Loom")) == ((), None)
    assert [(one.number, one.changed_by) for one in presets.PRESETS.waiting("Loom")] == [
        (1, "Mira")
    ]
    assert presets.PRESETS.waiting_names() == ("Loom",)


def test_approved_preset_import_is_current_with_its_grants():
    preset = approved(grants=ROLES)

    assert (preset.source, preset.grants, preset.revision) == (FIRST, ROLES, 2)
    assert presets.PRESETS.waiting("Loom") == ()
    assert told() == ["1 imported by Mira:  {}", "2 approved by Tam: roles {}"]


def test_preset_that_is_no_object_is_refused_and_does_not_wait():
    for text in ("[]", "{", '{"a": NaN}'):
        with pytest.raises(FormatError, match="preset 'Loom'"):
            presets.import_preset("Loom", text, by=trusted("Mira"))
    assert (models.SourceFile.objects.count(), presets.PRESETS.waiting_names()) == (0, ())


def test_preset_over_the_limit_is_refused_with_the_settings_name(settings_of_ai):
    settings_of_ai(MAX_SOURCE_CHARACTERS=1000)
    long = f'{{"a": "{1000 * "x"}"}}'
    with pytest.raises(FormatError, match="EVENNIA_AI_MAX_SOURCE_CHARACTERS"):
        presets.import_preset("Loom", long, by=trusted("Mira"))


def test_another_preset_file_has_no_grants_and_no_switches():
    first = presets.switch(approved(grants=ALL_GRANTS), {"main": False}, by=trusted("Tam"))
    number = presets.import_preset("Loom", SECOND, by=trusted("Mira"))
    assert presets.get_preset("Loom") == first

    second = presets.PRESETS.approve("Loom", number, grants=NO_GRANTS, by=trusted("Tam"))
    assert (second.source, second.grants, second.switches) == (SECOND, NO_GRANTS, ())


def test_current_or_waiting_preset_file_is_not_imported_again():
    approved()
    assert presets.import_preset("Loom", FIRST, by=trusted("Mira")) is None
    number = presets.import_preset("Loom", SECOND, by=trusted("Mira"))
    assert presets.import_preset("Loom", SECOND, by=trusted("Ben")) == number
    assert len(told()) == 3


def test_rejected_preset_import_cannot_be_approved():
    number = presets.import_preset("Loom", FIRST, by=trusted("Mira"))

    assert [presets.PRESETS.reject("Loom", by=trusted("Tam")) for _ in range(2)] == [1, 0]
    with pytest.raises(StoreError, match="not an import that waits"):
        presets.PRESETS.approve("Loom", number, grants=NO_GRANTS, by=trusted("Tam"))


def test_waiting_preset_imports_are_limited(monkeypatch):
    monkeypatch.setattr(presets.PRESETS, "most_waiting", 1)
    presets.import_preset("Loom", FIRST, by=trusted("Mira"))
    with pytest.raises(StoreError, match=r"more than 1 imports would wait.*Loom$"):
        presets.import_preset("Nemo", SECOND, by=trusted("Mira"))
    assert (presets.PRESETS.waiting_names(), models.SourceFile.objects.count()) == (("Loom",), 1)


def test_grant_and_revocation_of_a_preset_are_revisions():
    approved()
    presets.PRESETS.grant("Loom", ROLES, by=trusted("Ben"))
    presets.PRESETS.grant("Loom", ROLES, by=trusted("Ben"))
    presets.PRESETS.revoke("Loom", ROLES, by=trusted("Anna"))

    assert told()[2:] == ["3 granted by Ben: roles {}", "4 revoked by Anna:  {}"]
    assert grant_givers(presets.PRESETS.revisions("Loom")) == {}


def test_switch_is_a_revision_that_keeps_file_and_other_switches():
    preset = approved(grants=ROLES)
    preset = presets.switch(preset, {"main": False}, by=trusted("Ben"))
    preset = presets.switch(preset, {"tone": True}, by=trusted("Anna"))

    assert preset.switches == (("main", False), ("tone", True))
    assert (preset.source, preset.grants) == (FIRST, ROLES)
    assert told()[2:] == [
        "3 switched by Ben: roles {'main': False}",
        "4 switched by Anna: roles {'main': False, 'tone': True}",
    ]
    assert models.SourceFile.objects.count() == 1


def test_repeated_switch_changes_nothing():
    preset = presets.switch(approved(), {"main": False}, by=trusted("Ben"))
    assert presets.switch(preset, {"main": False}, by=trusted("Ben")) == preset
    assert len(told()) == 3


def test_switch_of_an_outdated_preset_names_who_changed_it():
    seen = approved()
    presets.switch(seen, {"main": False}, by=trusted("Ben"))
    with pytest.raises(EditConflictError, match="Ben"):
        presets.switch(seen, {"tone": True}, by=trusted("Anna"))
    assert presets.get_preset("Loom").switches == (("main", False),)


def test_revert_restores_file_grants_and_switches():
    presets.switch(approved(grants=ROLES), {"main": False}, by=trusted("Ben"))
    approved(SECOND)
    back = presets.PRESETS.revert("Loom", 3, by=trusted("Ben"))

    assert (back.source, back.grants, back.switches) == (FIRST, ROLES, (("main", False),))
    assert back.revision == 6


def test_preset_that_was_never_current_cannot_be_restored():
    approved()
    with pytest.raises(StoreError, match="imported and never approved"):
        presets.PRESETS.revert("Loom", 1, by=trusted("Ben"))
    with pytest.raises(NotStoredError, match="number 9; there are 1, 2"):
        presets.PRESETS.revert("Loom", 9, by=trusted("Ben"))


def test_past_preset_is_read_from_its_revision_after_removal():
    preset = presets.switch(approved(grants=ROLES), {"main": False}, by=trusted("Ben"))
    approved(SECOND)
    presets.PRESETS.remove("Loom", by=trusted("Ben"))

    assert presets.PRESETS.then("Loom", 3) == preset
    assert presets.PRESETS.then("Loom", 3).source == FIRST


def test_assigned_preset_cannot_be_removed():
    approved()
    presets.PRESETS.assign("Loom", HARBOUR, by=trusted("Ben"))
    with pytest.raises(StoreError, match=r"is assigned to zone:harbour; assign another there"):
        presets.PRESETS.remove("Loom", by=trusted("Ben"))

    assert presets.PRESETS.unassign(HARBOUR, by=trusted("Ben"))
    presets.PRESETS.remove("Loom", by=trusted("Ben"))
    assert presets.PRESETS.list_keys() == ()
    assert presets.PRESETS.revert("Loom", 2, by=trusted("Ben")).source == FIRST


def test_narrowest_scope_with_a_preset_counts():
    for name, scope in (("Game", GAME), ("Harbour", HARBOUR), ("Quay", QUAY), ("Oren", NPC)):
        approved(name=name)
        presets.PRESETS.assign(name, scope, by=trusted("Ben"))

    wide_first = [GAME, HARBOUR, QUAY, NPC]
    found = [presets.preset_for(wide_first[:many]).name for many in range(1, 5)]
    assert found == ["Game", "Harbour", "Quay", "Oren"]
    assert presets.preset_for([NPC, GAME, QUAY]).name == "Oren"
    assert presets.preset_for([Scope(kind="npc", ref="99")]) is None


def test_scope_has_one_preset_which_another_replaces():
    approved()
    approved(SECOND, name="Nemo")
    presets.PRESETS.assign("Loom", GAME, by=trusted("Ben"))
    presets.PRESETS.assign("Nemo", GAME, by=trusted("Ben"))

    assert (presets.PRESETS.assigned_to("Loom"), presets.PRESETS.assigned_to("Nemo")) == (
        (),
        (GAME,),
    )
    assert presets.PRESETS.unassign(GAME, by=trusted("Ben"))
    assert not presets.PRESETS.unassign(GAME, by=trusted("Ben"))


def test_only_scopes_of_components_can_have_a_preset():
    approved()
    with pytest.raises(ComponentValueError, match="zone, room, npc"):
        presets.PRESETS.assign("Loom", Scope(kind="faction", ref="smugglers"), by=trusted("Ben"))


def test_cached_preset_of_a_scope_is_read_without_a_query():
    from django.db import connection

    approved()
    presets.PRESETS.assign("Loom", HARBOUR, by=trusted("Ben"))
    forget_everything()
    first = presets.preset_for([GAME, HARBOUR, NPC])
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert presets.preset_for([GAME, HARBOUR, NPC]) is first
        assert presets.preset_for([GAME]) is None
    assert len(queries) == 0


def test_switch_reaches_the_scopes_with_the_preset():
    preset = approved()
    presets.PRESETS.assign("Loom", NPC, by=trusted("Ben"))
    before = presets.preset_for([NPC])
    presets.switch(preset, {"main": False}, by=trusted("Ben"))

    assert before.switches == ()
    assert presets.preset_for([NPC]).switches == (("main", False),)


def test_preset_names_are_found_with_their_case():
    approved()
    presets.import_preset("Nemo Engine", SECOND, by=trusted("Mira"))
    assert presets.PRESETS.known_name("loom") == "Loom"
    assert presets.PRESETS.known_name("NEMO ENGINE") == "Nemo Engine"
    for name in ("Loom/3", "a = b", "/switch", "a\u115fb", ""):
        with pytest.raises(ComponentValueError, match="name of the preset"):
            presets.PRESETS.typeable_name(name)
