"""The static components, in the scope of the whole game, and the state revisions."""

import json
import time
from dataclasses import fields
from typing import Any

from django.db import migrations

from evennia_ai.prompt.components import STATIC_COMPONENTS

KINDS = ("components", "cards", "lorebooks", "notes")
BY = "evennia_ai"
# What the tables of this migration hold; a field that comes later is not for this one to fill.
FIELDS = (
    "id",
    "key",
    "name",
    "description",
    "content",
    "role",
    "enabled",
    "is_static",
    "injection_depth",
    "injection_order",
    "placement",
    "volatile",
    "trust",
    "priority",
    "required",
)


def create(apps: Any, schema_editor: Any) -> None:
    component_rows = apps.get_model("evennia_ai", "Component").objects
    revision_rows = apps.get_model("evennia_ai", "ComponentRevision").objects
    known = {field.name for field in fields(STATIC_COMPONENTS[0])}
    for component in STATIC_COMPONENTS:
        value = {name: getattr(component, name) for name in FIELDS if name in known}
        columns = {("registry_id" if n == "id" else n): v for n, v in value.items()}
        _, is_new = component_rows.get_or_create(
            scope_kind="game", scope_ref="", key=component.key, defaults=columns
        )
        if is_new:
            revision_rows.create(
                scope_kind="game",
                scope_ref="",
                key=component.key,
                number=1,
                action="created",
                changed_by=BY,
                changed_at=time.time(),
                new=json.dumps(value, sort_keys=True, separators=(",", ":")),
            )
    for kind in KINDS:
        apps.get_model("evennia_ai", "StateRevision").objects.get_or_create(name=kind)


class Migration(migrations.Migration):
    dependencies = [("evennia_ai", "0002_append_only_records")]

    operations = [migrations.RunPython(create, migrations.RunPython.noop)]
