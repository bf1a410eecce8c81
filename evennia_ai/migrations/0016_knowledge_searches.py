"""Searches in knowledge bases are kept, and what restricted bases gave is kept under lock."""

import django.db.models.deletion
from django.db import migrations, models

_ID = models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


class Migration(migrations.Migration):
    dependencies = [("evennia_ai", "0015_knowledge")]

    operations = [
        migrations.CreateModel(
            name="KnowledgeSearch",
            fields=[
                ("id", _ID.clone()),
                ("npc_ref", models.CharField(max_length=255)),
                ("turn", models.PositiveIntegerField()),
                ("speaker_ref", models.CharField(blank=True, default="", max_length=255)),
                ("bases", models.TextField(default="[]")),
                ("query", models.TextField(blank=True, default="")),
                ("restricted", models.BooleanField(default=False)),
                ("mode", models.CharField(max_length=40)),
                ("decision", models.CharField(blank=True, default="", max_length=16)),
                ("reason", models.CharField(blank=True, default="", max_length=64)),
                ("total", models.PositiveIntegerField(default=0)),
                ("sent", models.PositiveIntegerField(default=0)),
                ("sources", models.TextField(default="[]")),
                ("result", models.TextField(blank=True, default="")),
                ("began_at", models.FloatField()),
                ("ended_at", models.FloatField(blank=True, null=True)),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="evennia_ai.conversation"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["conversation", "began_at"], name="evennia_ai_search_when"
                    ),
                    models.Index(fields=["npc_ref", "turn"], name="evennia_ai_search_turn"),
                ]
            },
        ),
        migrations.CreateModel(
            name="VaultedChunk",
            fields=[
                ("id", _ID.clone()),
                ("base_key", models.CharField(max_length=64)),
                ("place", models.PositiveIntegerField()),
                ("title", models.CharField(max_length=255)),
                ("page_revision", models.CharField(blank=True, default="", max_length=200)),
                ("sha256", models.CharField(max_length=64)),
                ("content", models.TextField()),
                (
                    "search",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        to="evennia_ai.knowledgesearch",
                    ),
                ),
            ],
            options={"indexes": [models.Index(fields=["base_key"], name="evennia_ai_vault_base")]},
        ),
        migrations.CreateModel(
            name="VaultReading",
            fields=[
                ("id", _ID.clone()),
                ("base_key", models.CharField(max_length=64)),
                ("read_by", models.CharField(max_length=200)),
                ("read_at", models.FloatField()),
                ("chunks", models.PositiveIntegerField()),
            ],
            options={
                "indexes": [models.Index(fields=["base_key"], name="evennia_ai_vault_reading")]
            },
        ),
    ]
