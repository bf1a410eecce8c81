"""Presets have their files, revisions and grants, and count where they are assigned.

Writers of one kind take turns at its row of the state revisions; presets get theirs here, so that
two processes cannot both make it.
"""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models

KIND = "presets"


def _id() -> models.BigAutoField:
    return models.BigAutoField(
        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
    )


def _protected(to: str) -> models.ForeignKey:
    return models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to=f"evennia_ai.{to}")


def add_state(apps: Any, schema_editor: Any) -> None:
    apps.get_model("evennia_ai", "StateRevision").objects.get_or_create(name=KIND)


def remove_state(apps: Any, schema_editor: Any) -> None:
    apps.get_model("evennia_ai", "StateRevision").objects.filter(name=KIND).delete()


class Migration(migrations.Migration):
    dependencies = [("evennia_ai", "0032_places_of_notes")]

    operations = [
        migrations.CreateModel(
            name="PresetFile",
            fields=[
                ("id", _id()),
                ("sha256", models.CharField(max_length=64, unique=True)),
                ("source", models.TextField()),
            ],
        ),
        migrations.CreateModel(
            name="Preset",
            fields=[
                ("id", _id()),
                ("name", models.CharField(max_length=200, unique=True)),
                ("file", _protected("presetfile")),
                ("grants", models.TextField(blank=True, default="")),
                ("switches", models.TextField(default="{}")),
                ("revision", models.PositiveIntegerField(default=1)),
            ],
        ),
        migrations.CreateModel(
            name="PresetRevision",
            fields=[
                ("id", _id()),
                ("name", models.CharField(max_length=200)),
                ("number", models.PositiveIntegerField()),
                ("action", models.CharField(max_length=16)),
                ("changed_by", models.CharField(max_length=200)),
                ("changed_at", models.FloatField()),
                ("file", _protected("presetfile")),
                ("grants", models.TextField(blank=True, default="")),
                ("switches", models.TextField(default="{}")),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("name", "number"), name="evennia_ai_preset_number"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="PresetAssignment",
            fields=[
                ("id", _id()),
                ("scope_kind", models.CharField(max_length=16)),
                ("scope_ref", models.CharField(blank=True, default="", max_length=255)),
                ("preset", _protected("preset")),
                ("assigned_by", models.CharField(max_length=200)),
                ("assigned_at", models.FloatField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("scope_kind", "scope_ref"), name="evennia_ai_preset_assigned"
                    )
                ],
            },
        ),
        migrations.RunPython(add_state, remove_state),
    ]
