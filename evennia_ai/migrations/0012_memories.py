"""NPCs remember what they learnt, each memory with all its changes."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("evennia_ai", "0011_halts")]

    operations = [
        migrations.CreateModel(
            name="Memory",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("npc_ref", models.CharField(max_length=255)),
                ("text", models.TextField()),
                ("about", models.CharField(blank=True, default="", max_length=255)),
                ("importance", models.PositiveSmallIntegerField(default=5)),
                ("created_at", models.FloatField()),
                ("recalled_at", models.FloatField()),
                ("learnt", models.CharField(default="aloud", max_length=16)),
                ("place_ref", models.CharField(blank=True, default="", max_length=255)),
                ("turn", models.PositiveIntegerField(default=0)),
                ("author", models.CharField(max_length=200)),
                ("revision", models.PositiveIntegerField(default=1)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["npc_ref"], name="evennia_ai_memory_npc"),
                    models.Index(fields=["about"], name="evennia_ai_memory_about"),
                ],
            },
        ),
        migrations.CreateModel(
            name="MemoryRevision",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("memory_id", models.PositiveBigIntegerField()),
                ("npc_ref", models.CharField(max_length=255)),
                ("about", models.CharField(blank=True, default="", max_length=255)),
                ("number", models.PositiveIntegerField()),
                ("action", models.CharField(max_length=16)),
                ("changed_by", models.CharField(max_length=200)),
                ("changed_at", models.FloatField()),
                ("value", models.TextField(blank=True, default="")),
            ],
            options={
                "indexes": [
                    models.Index(fields=["about"], name="evennia_ai_memory_rev_about"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("memory_id", "number"), name="evennia_ai_memory_number"
                    )
                ],
            },
        ),
    ]
