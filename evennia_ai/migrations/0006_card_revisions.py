"""Cards keep the bytes of their files, have revisions and grants, and may greet.

A card that is there already was assigned by a builder who vouched for all of it: it keeps
everything it could do.
"""

from hashlib import sha256
from typing import Any

import django.db.models.deletion
from django.db import migrations, models

# The grants there were when this migration was written.
_ALL = "fields system_prompt after_history positions roles lore_budget regex"
_ID = models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


def keep_files(apps: Any, schema_editor: Any) -> None:
    files = apps.get_model("evennia_ai", "CardFile").objects
    revisions = apps.get_model("evennia_ai", "CardRevision").objects
    for card in apps.get_model("evennia_ai", "Card").objects.iterator():
        content = card.source.encode()
        card.file, _ = files.get_or_create(
            sha256=sha256(content).hexdigest(),
            defaults={"carrier": "json", "content": content, "source": card.source},
        )
        card.grants = _ALL
        card.save()
        revisions.create(
            name=card.name,
            number=card.revision,
            action="approved",
            changed_by=card.added_by,
            changed_at=card.added_at,
            file=card.file,
            grants=_ALL,
        )


class Migration(migrations.Migration):
    dependencies = [("evennia_ai", "0005_lore_state")]

    operations = [
        migrations.CreateModel(
            name="CardFile",
            fields=[
                ("id", _ID),
                ("sha256", models.CharField(max_length=64, unique=True)),
                ("carrier", models.CharField(max_length=16)),
                ("content", models.BinaryField()),
                ("source", models.TextField()),
            ],
        ),
        migrations.CreateModel(
            name="CardRevision",
            fields=[
                ("id", _ID),
                ("name", models.CharField(max_length=200)),
                ("number", models.PositiveIntegerField()),
                ("action", models.CharField(max_length=16)),
                ("changed_by", models.CharField(max_length=200)),
                ("changed_at", models.FloatField()),
                (
                    "file",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="evennia_ai.cardfile"
                    ),
                ),
                ("grants", models.TextField(blank=True, default="")),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("name", "number"), name="evennia_ai_card_number"
                    )
                ],
            },
        ),
        migrations.AddField(
            model_name="card",
            name="file",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                to="evennia_ai.cardfile",
            ),
        ),
        migrations.AddField(
            model_name="card", name="grants", field=models.TextField(blank=True, default="")
        ),
        migrations.RunPython(keep_files, migrations.RunPython.noop),
        migrations.AlterField(
            model_name="card",
            name="file",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, to="evennia_ai.cardfile"
            ),
        ),
        *(
            migrations.RemoveField(model_name="card", name=name)
            for name in ("source", "sha256", "added_by", "added_at")
        ),
        migrations.AddField(
            model_name="cardassignment",
            name="greeting",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
    ]
