"""The text of a lorebook stands once, in its revision, which may be a difference over another."""

import json
from typing import Any

from django.db import migrations, models


def make_whole(apps: Any, schema_editor: Any) -> None:
    """Going back: each revision is a whole text, and a book has that of its newest one."""
    books = apps.get_model("evennia_ai", "Lorebook").objects
    texts: dict[str, str] = {}
    for row in apps.get_model("evennia_ai", "LorebookRevision").objects.order_by("name", "number"):
        if row.over is not None:
            at, length, piece = json.loads(row.source)
            before = texts[row.name]
            row.source = before[:at] + piece + before[at + length :]
            row.save(update_fields=["source"])
        texts[row.name] = row.source
        books.filter(name=row.name, revision=row.number).update(source=row.source)


class Migration(migrations.Migration):
    dependencies = [("evennia_ai", "0029_languages_of_bases")]

    operations = [
        migrations.AddField(
            model_name="lorebookrevision",
            name="over",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.RunPython(migrations.RunPython.noop, make_whole),
        migrations.AlterField(
            model_name="lorebook", name="source", field=models.TextField(default="")
        ),
        migrations.RemoveField(model_name="lorebook", name="source"),
    ]
