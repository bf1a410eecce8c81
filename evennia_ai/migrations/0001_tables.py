"""The tables."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    operations = [
        migrations.CreateModel(
            name="Card",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=200, unique=True)),
                ("source", models.TextField()),
                ("sha256", models.CharField(max_length=64)),
                ("revision", models.PositiveIntegerField(default=1)),
                ("added_by", models.CharField(max_length=200)),
                ("added_at", models.FloatField()),
            ],
        ),
        migrations.CreateModel(
            name="Lorebook",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=200, unique=True)),
                ("source", models.TextField()),
                ("sha256", models.CharField(max_length=64)),
                ("revision", models.PositiveIntegerField(default=1)),
                ("added_by", models.CharField(max_length=200)),
                ("added_at", models.FloatField()),
            ],
        ),
        migrations.CreateModel(
            name="StateRevision",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=16, unique=True)),
                ("number", models.PositiveBigIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name="CardAssignment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("npc_ref", models.CharField(max_length=255, unique=True)),
                ("assigned_by", models.CharField(max_length=200)),
                ("assigned_at", models.FloatField()),
                (
                    "card",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="evennia_ai.card"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Component",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("scope_kind", models.CharField(default="game", max_length=16)),
                ("scope_ref", models.CharField(blank=True, default="", max_length=255)),
                ("registry_id", models.PositiveIntegerField()),
                ("key", models.CharField(max_length=64)),
                ("name", models.CharField(blank=True, default="", max_length=200)),
                ("description", models.TextField(blank=True, default="")),
                ("content", models.TextField(blank=True, default="")),
                ("role", models.CharField(default="system", max_length=16)),
                ("enabled", models.BooleanField(default=True)),
                ("is_static", models.BooleanField(default=False)),
                ("injection_depth", models.PositiveIntegerField(default=0)),
                ("injection_order", models.IntegerField(default=100)),
                ("placement", models.CharField(default="ordered", max_length=16)),
                ("volatile", models.BooleanField(default=False)),
                ("trust", models.CharField(default="builder", max_length=16)),
                ("priority", models.IntegerField(default=100)),
                ("required", models.BooleanField(default=False)),
                ("revision", models.PositiveIntegerField(default=1)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("scope_kind", "scope_ref", "key"), name="evennia_ai_component_key"
                    ),
                    models.UniqueConstraint(
                        fields=("scope_kind", "scope_ref", "registry_id"),
                        name="evennia_ai_component_id",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ComponentRevision",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("scope_kind", models.CharField(max_length=16)),
                ("scope_ref", models.CharField(blank=True, default="", max_length=255)),
                ("key", models.CharField(max_length=64)),
                ("number", models.PositiveIntegerField()),
                ("action", models.CharField(max_length=16)),
                ("changed_by", models.CharField(max_length=200)),
                ("changed_at", models.FloatField()),
                ("old", models.TextField(blank=True, default="")),
                ("new", models.TextField(blank=True, default="")),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("scope_kind", "scope_ref", "key", "number"),
                        name="evennia_ai_component_number",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Conversation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("npc_ref", models.CharField(max_length=255)),
                ("kind", models.CharField(max_length=16)),
                ("partner_ref", models.CharField(blank=True, default="", max_length=255)),
                ("place_ref", models.CharField(blank=True, default="", max_length=255)),
                ("origin", models.CharField(blank=True, default="", max_length=64)),
                ("opened_at", models.FloatField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("npc_ref", "kind", "partner_ref", "place_ref"),
                        name="evennia_ai_conversation_once",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Note",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("npc_ref", models.CharField(max_length=255)),
                ("position", models.PositiveIntegerField(default=0)),
                ("content", models.TextField(blank=True, default="")),
                ("depth", models.PositiveIntegerField(default=4)),
                ("role", models.CharField(default="system", max_length=16)),
                ("every", models.PositiveIntegerField(default=1)),
                ("revision", models.PositiveIntegerField(default=1)),
                ("changed_by", models.CharField(max_length=200)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("npc_ref", "position"), name="evennia_ai_note_position"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Record",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("segment", models.PositiveIntegerField(default=1)),
                ("seq", models.PositiveIntegerField()),
                ("kind", models.CharField(max_length=16)),
                ("role", models.CharField(max_length=16)),
                ("name", models.CharField(blank=True, default="", max_length=200)),
                ("body", models.TextField(blank=True, default="")),
                ("meta", models.TextField(default="{}")),
                ("sha256", models.CharField(max_length=64)),
                ("created_at", models.FloatField()),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="evennia_ai.conversation"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Turn",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("npc_ref", models.CharField(max_length=255)),
                ("number", models.PositiveIntegerField()),
                ("state", models.CharField(default="open", max_length=16)),
                ("manifest", models.TextField()),
                ("prompt_sha256", models.CharField(max_length=64)),
                ("tokens", models.PositiveIntegerField()),
                ("cut", models.PositiveIntegerField(default=0)),
                ("model", models.CharField(blank=True, default="", max_length=200)),
                ("outcome", models.TextField(blank=True, default="")),
                ("created_at", models.FloatField()),
                ("ended_at", models.FloatField(blank=True, null=True)),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="evennia_ai.conversation"
                    ),
                ),
                (
                    "event_record",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="evennia_ai.record",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="LorebookAttachment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("scope_kind", models.CharField(max_length=16)),
                ("scope_ref", models.CharField(blank=True, default="", max_length=255)),
                ("attached_by", models.CharField(max_length=200)),
                ("attached_at", models.FloatField()),
                (
                    "lorebook",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="evennia_ai.lorebook"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["scope_kind", "scope_ref"], name="evennia_ai_attached_to")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("lorebook", "scope_kind", "scope_ref"), name="evennia_ai_attachment"
                    )
                ],
            },
        ),
        migrations.AddConstraint(
            model_name="record",
            constraint=models.UniqueConstraint(
                fields=("conversation", "segment", "seq"), name="evennia_ai_record_seq"
            ),
        ),
        migrations.AddIndex(
            model_name="turn",
            index=models.Index(
                fields=["conversation", "number"], name="evennia_ai_turn_conversation"
            ),
        ),
        migrations.AddIndex(
            model_name="turn",
            index=models.Index(fields=["state"], name="evennia_ai_turn_state"),
        ),
        migrations.AddConstraint(
            model_name="turn",
            constraint=models.UniqueConstraint(
                fields=("npc_ref", "number"), name="evennia_ai_turn_number"
            ),
        ),
    ]
