"""Lorebooks have revisions and locks; what a book is now is its first known revision."""

from typing import Any

from django.db import migrations, models


def record_books(apps: Any, schema_editor: Any) -> None:
    revisions = apps.get_model("evennia_ai", "LorebookRevision").objects
    for book in apps.get_model("evennia_ai", "Lorebook").objects.iterator():
        revisions.create(
            name=book.name,
            number=book.revision,
            action="created",
            changed_by=book.added_by,
            changed_at=book.added_at,
            source=book.source,
        )


class Migration(migrations.Migration):
    dependencies = [("evennia_ai", "0003_static_components")]

    operations = [
        migrations.AddField(
            model_name="lorebook",
            name="locks",
            field=models.TextField(blank=True, default=""),
        ),
        migrations.AddField(
            model_name="lorebook",
            name="entry_locks",
            field=models.TextField(blank=True, default="{}"),
        ),
        migrations.CreateModel(
            name="LorebookRevision",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=200)),
                ("number", models.PositiveIntegerField()),
                ("action", models.CharField(max_length=16)),
                ("changed_by", models.CharField(max_length=200)),
                ("changed_at", models.FloatField()),
                ("source", models.TextField(blank=True, default="")),
                ("locks", models.TextField(blank=True, default="")),
                ("entry_locks", models.TextField(blank=True, default="{}")),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("name", "number"), name="evennia_ai_lorebook_number"
                    )
                ],
            },
        ),
        migrations.RunPython(record_books, migrations.RunPython.noop),
    ]
