"""Names: who bore which name first, for each NPC, as its records tell it."""

import json
from typing import Any

from django.db import migrations, models

from evennia_ai.prompt.names import folded

_COLUMN = 200


def settle_the_past(apps: Any, schema_editor: Any) -> None:
    """Whoever spoke first under a name has it plain from now on."""
    known: dict[tuple[str, str], dict[str, int]] = {}
    records = apps.get_model("evennia_ai", "Record").objects.filter(kind="user").exclude(name="")
    rows = records.order_by("pk").values_list("conversation__npc_ref", "name", "meta")
    for npc_ref, name, meta in rows.iterator(chunk_size=2000):
        speaker = json.loads(meta).get("speaker")
        if isinstance(speaker, str) and speaker:
            bearers = known.setdefault((npc_ref, folded(name)[:_COLUMN]), {})
            bearers.setdefault(speaker, len(bearers) + 1)
    table = apps.get_model("evennia_ai", "KnownName")
    table.objects.bulk_create(
        (
            table(npc_ref=npc_ref, folded=fold, person_ref=person, number=number)
            for (npc_ref, fold), bearers in known.items()
            for person, number in bearers.items()
        ),
        batch_size=500,
    )
    apps.get_model("evennia_ai", "StateRevision").objects.get_or_create(name="names")


class Migration(migrations.Migration):
    dependencies = [("evennia_ai", "0024_knowledge_holds")]

    operations = [
        migrations.CreateModel(
            name="KnownName",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("npc_ref", models.CharField(max_length=255)),
                ("folded", models.CharField(max_length=200)),
                ("person_ref", models.CharField(max_length=255)),
                ("number", models.PositiveIntegerField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("npc_ref", "folded", "person_ref"), name="evennia_ai_name_person"
                    ),
                    models.UniqueConstraint(
                        fields=("npc_ref", "folded", "number"), name="evennia_ai_name_number"
                    ),
                ],
            },
        ),
        migrations.RunPython(settle_the_past, migrations.RunPython.noop),
    ]
