"""Halts: an NPC that is paused, or the whole game that is stopped, stays so over a restart."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("evennia_ai", "0010_model_calls")]

    operations = [
        migrations.CreateModel(
            name="Halt",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "npc_ref",
                    models.CharField(blank=True, default="", max_length=255, unique=True),
                ),
                ("halted_by", models.CharField(max_length=200)),
                ("halted_at", models.FloatField()),
                ("reason", models.CharField(blank=True, default="", max_length=200)),
            ],
        ),
    ]
