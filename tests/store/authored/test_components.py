"""Test stored components: create, read, change, remove and revert them."""

import pytest
from django.db import transaction

from evennia_ai import models
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import (
    ComponentValueError,
    DuplicateComponentError,
    EditConflictError,
    StaticComponentError,
    StoreError,
    TemplateError,
    UnknownComponentError,
)
from evennia_ai.engine.prompt.components import GAME, STATIC_COMPONENTS, PromptComponent, Scope
from evennia_ai.store.authored import components
from evennia_ai.store.core.snapshots import forget_everything

OREN = Scope(kind="npc", ref="12")


def a_mood(**fields) -> PromptComponent:
    return PromptComponent(**{"id": 1201, "key": "mood", "content": "Oren is tired.", **fields})


def reloaded(key="mood", scope=GAME) -> PromptComponent:
    """Return the component as a newly started process reads it."""
    forget_everything()
    return components.registry().get(key, scope=scope)


class TestCreate:
    @pytest.mark.req("S3-21")
    def test_component_keeps_depth_order_placement_and_role(self):
        made = components.create(
            a_mood(injection_depth=4, injection_order=50, role="user"), by=trusted("builder")
        )

        assert reloaded() == made
        assert (made.injection_depth, made.injection_order, made.role) == (4, 50, "user")
        assert made.placement == "history"

    @pytest.mark.req("S3-21")
    def test_component_without_depth_and_order_gets_defaults(self):
        components.create(a_mood(), by=trusted("builder"))
        stored = reloaded()

        assert (stored.injection_depth, stored.injection_order) == (0, 100)
        assert (stored.placement, stored.role) == ("ordered", "system")

    @pytest.mark.req("S3-21")
    def test_old_component_row_gets_defaults(self):
        models.Component.objects.create(registry_id=1201, key="mood")
        stored = reloaded()

        assert (stored.injection_depth, stored.injection_order) == (0, 100)
        assert (stored.enabled, stored.trust) == (True, "builder")

    @pytest.mark.req("S3-21")
    def test_depth_zero_in_the_history_differs_from_no_depth(self):
        components.create(a_mood(placement="history", injection_depth=0), by=trusted("builder"))

        assert reloaded().placement == "history"

    def test_every_component_field_is_read_back(self):
        wanted = a_mood(
            name="Mood",
            description="How Oren feels.",
            enabled=False,
            volatile=True,
            trust="author",
            priority=7,
            required=True,
            scope=OREN,
        )
        made = components.create(wanted, by=trusted("builder"))

        assert reloaded(scope=OREN) == made == wanted.changed(revision=1)

    @pytest.mark.parametrize(("field", "value"), [("id", 1202), ("key", "temper")])
    def test_taken_component_key_or_id_is_refused(self, field, value):
        components.create(a_mood(), by=trusted("builder"))

        with pytest.raises(DuplicateComponentError):
            components.create(a_mood(**{field: value}), by=trusted("builder"))
        assert len(components.COMPONENTS.revisions("mood")) == 1

    def test_id_of_a_static_component_cannot_be_taken(self):
        with pytest.raises(DuplicateComponentError, match="goals"):
            components.create(a_mood(id=4000), by=trusted("builder"))

    def test_scopes_have_their_own_keys_and_ids(self):
        components.create(a_mood(), by=trusted("builder"))
        components.create(a_mood(content="Oren is merry.", scope=OREN), by=trusted("builder"))
        resolved = components.registry().resolved([OREN])

        assert resolved.get("mood", scope=OREN).content == "Oren is merry."
        assert reloaded().content == "Oren is tired."

    def test_custom_component_is_never_static(self):
        with pytest.raises(StaticComponentError, match="cannot be created"):
            components.create(a_mood(is_static=True), by=trusted("builder"))

    def test_invalid_template_is_refused_with_its_line(self):
        with pytest.raises(TemplateError, match="line 2"):
            components.create(a_mood(content="fine\n{% if %}"), by=trusted("builder"))
        with pytest.raises(UnknownComponentError):
            reloaded()

    def test_text_that_no_database_stores_is_refused(self):
        with pytest.raises(ComponentValueError, match="null characters"):
            components.create(a_mood(content="a\x00b"), by=trusted("builder"))


class TestUpdate:
    @pytest.mark.req("S3-21")
    def test_depth_order_placement_and_role_can_be_changed(self):
        components.create(a_mood(), by=trusted("builder"))
        changes = {"injection_depth": 2, "injection_order": 7, "role": "assistant"}
        made = components.update("mood", by=trusted("builder"), **changes)

        assert reloaded() == made
        assert (made.injection_depth, made.injection_order) == (2, 7)
        assert (made.placement, made.role) == ("history", "assistant")

    def test_component_is_found_by_its_id(self):
        components.create(a_mood(), by=trusted("builder"))

        assert components.update(1201, by=trusted("builder"), content="x").key == "mood"

    def test_moved_component_has_another_id(self):
        components.create(a_mood(), by=trusted("builder"))
        components.update("mood", by=trusted("builder"), id=1305)

        assert reloaded().id == 1305
        assert models.Component.objects.filter(key="mood").count() == 1

    def test_component_keeps_its_key(self):
        components.create(a_mood(), by=trusted("builder"))
        with pytest.raises(ComponentValueError, match="key 'temper'"):
            components.update("mood", by=trusted("builder"), key="temper")

    @pytest.mark.parametrize("key", [c.key for c in STATIC_COMPONENTS])
    def test_static_component_can_be_disabled_and_given_content(self, key):
        components.update(key, by=trusted("builder"), content="New.", enabled=False)
        stored = reloaded(key)

        assert (stored.content, stored.enabled, stored.is_static) == ("New.", False, True)

    @pytest.mark.parametrize("change", [{"id": 17}, {"role": "user"}])
    def test_static_component_keeps_its_id_and_role(self, change):
        with pytest.raises(StaticComponentError):
            components.update("goals", by=trusted("builder"), **change)
        assert reloaded("goals").id == 4000

    def test_static_component_without_row_can_be_changed(self):
        models.Component.objects.filter(key="goals").delete()
        components.update("goals", by=trusted("builder"), content="Cross the bay.")

        assert reloaded("goals").content == "Cross the bay."

    @pytest.mark.parametrize("field", ["is_static", "revision"])
    def test_fields_set_by_the_store_cannot_be_changed(self, field):
        components.create(a_mood(), by=trusted("builder"))

        with pytest.raises(ComponentValueError, match=field):
            components.update("mood", by=trusted("builder"), **{field: 1})

    @pytest.mark.parametrize("depth", [-1, 2.5, "2", True, None, [2]])
    def test_invalid_depth_changes_nothing(self, depth):
        components.create(a_mood(injection_depth=3), by=trusted("builder"))

        with pytest.raises(ComponentValueError):
            components.update("mood", by=trusted("builder"), injection_depth=depth)
        assert reloaded().injection_depth == 3
        assert len(components.COMPONENTS.revisions("mood")) == 1

    def test_invalid_template_changes_nothing(self):
        components.create(a_mood(), by=trusted("builder"))

        with pytest.raises(TemplateError):
            components.update("mood", by=trusted("builder"), content="{% for %}")
        assert reloaded().content == "Oren is tired."

    def test_unknown_component_error_names_the_known_ones(self):
        with pytest.raises(UnknownComponentError, match="system_prompt"):
            components.update("moood", by=trusted("builder"), content="x")

    def test_unchanged_component_gets_no_revision(self):
        components.create(a_mood(), by=trusted("builder"))
        made = components.update("mood", by=trusted("builder"), content="Oren is tired.")

        assert (made.revision, len(components.COMPONENTS.revisions("mood"))) == (1, 1)


class TestEditConflict:
    def test_second_editor_of_a_component_is_told_who_was_first(self):
        components.create(a_mood(), by=trusted("builder"))
        components.update("mood", by=trusted("Mira"), seen_revision=1, content="Merry.")

        with pytest.raises(EditConflictError, match="was changed by Mira") as told:
            components.update("mood", by=trusted("Tam"), seen_revision=1, content="Sad.")
        assert (told.value.seen, told.value.current) == (1, 2)
        assert reloaded().content == "Merry."

    def test_editor_who_saw_the_newest_revision_can_save(self):
        components.create(a_mood(), by=trusted("builder"))
        components.update("mood", by=trusted("Mira"), content="Merry.")

        assert (
            components.update("mood", by=trusted("Tam"), seen_revision=2, content="Sad.").revision
            == 3
        )

    def test_change_behind_the_snapshot_is_noticed(self):
        components.create(a_mood(), by=trusted("builder"))
        components.registry()
        models.Component.objects.filter(key="mood").update(revision=5)

        with pytest.raises(EditConflictError):
            components.update("mood", by=trusted("Tam"), seen_revision=1, content="Sad.")


class TestRemove:
    @pytest.mark.req("S3-21")
    @pytest.mark.parametrize("key", [c.key for c in STATIC_COMPONENTS])
    def test_static_component_cannot_be_removed(self, key):
        with pytest.raises(StaticComponentError, match="cannot be removed"):
            components.COMPONENTS.remove(key, by=trusted("builder"))
        assert reloaded(key).is_static

    def test_removal_leaves_components_of_other_scopes(self):
        components.create(a_mood(), by=trusted("builder"))
        components.create(a_mood(scope=OREN), by=trusted("builder"))
        components.COMPONENTS.remove("mood", by=trusted("builder"), scope=OREN)

        assert reloaded().content == "Oren is tired."


class TestRevisions:
    def test_component_revision_has_author_action_and_old_value(self):
        components.create(a_mood(), by=trusted("Mira"))
        components.update("mood", by=trusted("Tam"), injection_depth=4)
        first, second = components.COMPONENTS.revisions("mood")

        assert (first.number, first.action, first.changed_by) == (1, "created", "Mira")
        assert (second.number, second.action, second.changed_by) == (2, "updated", "Tam")
        assert (first.value.injection_depth, second.value.injection_depth) == (0, 4)
        assert second.changed_at >= first.changed_at > 0

    def test_static_components_begin_with_a_revision(self):
        (revision,) = components.COMPONENTS.revisions("goals")

        assert (revision.number, revision.action) == (1, "created")
        assert revision.after == components.registry().get("goals")

    def test_refused_component_change_leaves_no_revision(self):
        components.create(a_mood(), by=trusted("builder"))
        with pytest.raises(DuplicateComponentError):
            components.update("mood", by=trusted("builder"), id=4000)

        assert len(components.COMPONENTS.revisions("mood")) == 1


class TestRevert:
    def test_static_component_can_be_reverted(self):
        components.update("goals", by=trusted("builder"), content="Cross the bay.")
        components.COMPONENTS.revert("goals", 1, by=trusted("builder"))

        assert reloaded("goals").content == ""

    def test_revert_to_a_taken_id_is_refused(self):
        components.create(a_mood(), by=trusted("builder"))
        components.COMPONENTS.remove("mood", by=trusted("builder"))
        components.create(a_mood(key="temper"), by=trusted("builder"))

        with pytest.raises(DuplicateComponentError, match="temper"):
            components.COMPONENTS.revert("mood", 1, by=trusted("builder"))


class TestRegistry:
    def test_cached_components_are_read_without_a_query(self, no_queries):
        components.create(a_mood(), by=trusted("builder"))
        components.registry()

        with no_queries():
            components.registry().get("mood")

    def test_registry_is_the_same_object_until_a_change(self):
        before = components.registry()
        assert components.registry() is before

        components.create(a_mood(), by=trusted("builder"))
        assert components.registry() is not before

    def test_component_change_is_seen_at_once(self):
        components.registry()
        components.create(a_mood(), by=trusted("builder"))

        assert components.registry().get("mood").content == "Oren is tired."

    def test_rolled_back_component_change_is_not_seen(self):
        components.registry()
        with transaction.atomic():
            components.create(a_mood(), by=trusted("builder"))
            components.registry().get("mood")
            transaction.set_rollback(True)

        with pytest.raises(UnknownComponentError):
            components.registry().get("mood")

    def test_static_components_exist_after_migration(self):
        found = [c.changed(revision=0) for c in components.registry() if c.is_static]

        assert tuple(found) == STATIC_COMPONENTS
        assert models.Component.objects.filter(is_static=True).count() == len(STATIC_COMPONENTS)

    def test_invalid_component_row_is_named(self):
        row = models.Component.objects.create(registry_id=1201, key="mood", role="wizard")

        with pytest.raises(StoreError, match=f"row {row.pk} .*wizard"):
            reloaded()
