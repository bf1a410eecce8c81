"""An NPC has several notes, told apart by keys: the one there was is called `note`."""

from collections import defaultdict
from typing import Any

from django.db import migrations, models

_TABLES = ("Note", "NoteRevision")


def name_notes(apps: Any, schema_editor: Any) -> None:
    """Those at other positions, which only code could write, are `note_01` and so on."""
    for table in _TABLES:
        rows = apps.get_model("evennia_ai", table).objects
        for position in set(rows.exclude(position=0).values_list("position", flat=True)):
            rows.filter(position=position).update(key=f"note_{position:02}")


def number_notes(apps: Any, schema_editor: Any) -> None:
    """Going back: each note of an NPC has a position again, `note` has 0."""
    keys: dict[str, set[str]] = defaultdict(set)
    for table in _TABLES:
        rows = apps.get_model("evennia_ai", table).objects.exclude(key="note")
        for npc_ref, key in rows.values_list("npc_ref", "key"):
            keys[npc_ref].add(key)
    for table in _TABLES:
        rows = apps.get_model("evennia_ai", table).objects
        for npc_ref, named in keys.items():
            for position, key in enumerate(sorted(named), start=1):
                rows.filter(npc_ref=npc_ref, key=key).update(position=position)


def _by(*fields: str, name: str) -> models.UniqueConstraint:
    return models.UniqueConstraint(fields=("npc_ref", *fields), name=f"evennia_ai_note_{name}")


class Migration(migrations.Migration):
    dependencies = [("evennia_ai", "0030_book_texts")]

    operations = [
        *(
            migrations.AddField(
                model_name=table.lower(),
                name="key",
                field=models.CharField(default="note", max_length=64),
            )
            for table in _TABLES
        ),
        migrations.AddField(
            model_name="note", name="order", field=models.IntegerField(default=100)
        ),
        migrations.AddField(
            model_name="note", name="enabled", field=models.BooleanField(default=True)
        ),
        migrations.RemoveConstraint(model_name="note", name="evennia_ai_note_position"),
        migrations.RemoveConstraint(model_name="noterevision", name="evennia_ai_note_number"),
        migrations.RunPython(name_notes, number_notes),
        migrations.RemoveField(model_name="note", name="position"),
        migrations.RemoveField(model_name="noterevision", name="position"),
        migrations.AddConstraint(model_name="note", constraint=_by("key", name="key")),
        migrations.AddConstraint(
            model_name="noterevision", constraint=_by("key", "number", name="number")
        ),
    ]
