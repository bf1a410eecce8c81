"""Author's notes have revisions; what a note is now is its first known revision."""

import json
import time
from typing import Any

from django.db import migrations, models

FIELDS = ("content", "depth", "role", "every")


def record_notes(apps: Any, schema_editor: Any) -> None:
    revisions = apps.get_model("evennia_ai", "NoteRevision").objects
    for note in apps.get_model("evennia_ai", "Note").objects.iterator():
        value = {name: getattr(note, name) for name in FIELDS}
        revisions.create(
            npc_ref=note.npc_ref,
            position=note.position,
            number=note.revision,
            action="created",
            changed_by=note.changed_by,
            changed_at=time.time(),
            value=json.dumps(value, sort_keys=True, separators=(",", ":")),
        )


class Migration(migrations.Migration):
    dependencies = [("evennia_ai", "0007_record_contents")]

    operations = [
        migrations.CreateModel(
            name="NoteRevision",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("npc_ref", models.CharField(max_length=255)),
                ("position", models.PositiveIntegerField(default=0)),
                ("number", models.PositiveIntegerField()),
                ("action", models.CharField(max_length=16)),
                ("changed_by", models.CharField(max_length=200)),
                ("changed_at", models.FloatField()),
                ("value", models.TextField(blank=True, default="")),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("npc_ref", "position", "number"), name="evennia_ai_note_number"
                    )
                ],
            },
        ),
        migrations.RunPython(record_notes, migrations.RunPython.noop),
    ]
