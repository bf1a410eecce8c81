"""Memories and what was lived through elsewhere are told as a user's words, never the system's."""

import json
import time
from typing import Any

from django.db import migrations
from django.db.models import F

KEYS = ("semantic_memories", "context_buffer")
BY = "evennia_ai"


def tell_as_users(apps: Any, schema_editor: Any) -> None:
    components = apps.get_model("evennia_ai", "Component").objects
    revisions = apps.get_model("evennia_ai", "ComponentRevision").objects
    changed = False
    for row in components.filter(scope_kind="game", key__in=KEYS, is_static=True, role="system"):
        known = revisions.filter(scope_kind="game", scope_ref=row.scope_ref, key=row.key)
        last = known.order_by("-number").first()
        if last is None or not last.new:
            continue
        row.role, row.revision = "user", last.number + 1
        row.save()
        new = {**json.loads(last.new), "role": "user"}
        revisions.create(
            scope_kind="game",
            scope_ref=row.scope_ref,
            key=row.key,
            number=row.revision,
            action="updated",
            changed_by=BY,
            changed_at=time.time(),
            old=last.new,
            new=json.dumps(new, sort_keys=True, separators=(",", ":")),
        )
        changed = True
    if changed:
        states = apps.get_model("evennia_ai", "StateRevision").objects
        states.filter(name="components").update(number=F("number") + 1)


class Migration(migrations.Migration):
    dependencies = [("evennia_ai", "0025_known_names")]

    operations = [migrations.RunPython(tell_as_users, migrations.RunPython.noop)]
