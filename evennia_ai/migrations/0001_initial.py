"""All tables, with what protects records and turns, and the rows that every game begins with."""

import django.db.models.deletion
from django.db import migrations, models

from evennia_ai.migrations._append_only import protect, protect_turns, unprotect, unprotect_turns
from evennia_ai.migrations._first_rows import create, keep_plain


class Migration(migrations.Migration):
    initial = True

    dependencies: list[tuple[str, str]] = []

    operations = [
        migrations.CreateModel(
            name="BreakerRow",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=200, unique=True)),
                ("state", models.CharField(max_length=16)),
                ("since", models.FloatField()),
            ],
        ),
        migrations.CreateModel(
            name="Halt",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("npc_ref", models.CharField(blank=True, default="", max_length=255, unique=True)),
                ("halted_by", models.CharField(max_length=200)),
                ("halted_at", models.FloatField()),
                ("reason", models.CharField(blank=True, default="", max_length=200)),
            ],
        ),
        migrations.CreateModel(
            name="KnowledgeBase",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.CharField(max_length=64, unique=True)),
                ("name", models.CharField(max_length=200)),
                ("summary", models.TextField(blank=True, default="")),
                ("topics", models.TextField(default="[]")),
                ("hint", models.TextField(blank=True, default="")),
                ("keywords", models.TextField(default="[]")),
                ("restricted", models.BooleanField(default=False)),
                ("keeps_chunks", models.BooleanField(default=True)),
                ("direct_characters", models.PositiveIntegerField(default=0)),
                ("page_count", models.PositiveIntegerField(default=0)),
                ("characters", models.PositiveBigIntegerField(default=0)),
                ("revision", models.PositiveIntegerField(default=1)),
                ("locks", models.TextField(blank=True, default="")),
                ("backend", models.CharField(default="database", max_length=16)),
                ("mediation", models.CharField(default="summary", max_length=16)),
                ("indexed_for", models.CharField(blank=True, default="", max_length=128)),
                ("changed_by", models.CharField(max_length=200)),
                ("changed_at", models.FloatField()),
            ],
        ),
        migrations.CreateModel(
            name="Persona",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("owner_ref", models.CharField(max_length=255, unique=True)),
                ("content", models.TextField(blank=True, default="")),
                ("place", models.CharField(default="prompt", max_length=16)),
                ("depth", models.PositiveIntegerField(default=2)),
                ("kept", models.TextField(blank=True, default="")),
                ("changed_at", models.FloatField()),
            ],
        ),
        migrations.CreateModel(
            name="SourceFile",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("sha256", models.CharField(max_length=64, unique=True)),
                ("carrier", models.CharField(max_length=16)),
                ("content", models.BinaryField()),
                ("source", models.TextField()),
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
            name="Worker",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=200, unique=True)),
                ("version", models.PositiveIntegerField()),
                ("kinds", models.TextField(blank=True, default="")),
                ("begun_at", models.FloatField()),
                ("seen_at", models.FloatField()),
                ("doing", models.CharField(blank=True, default="", max_length=255)),
            ],
        ),
        migrations.CreateModel(
            name="Assignment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(max_length=16)),
                ("key", models.CharField(max_length=200)),
                ("scope_kind", models.CharField(max_length=16)),
                ("scope_ref", models.CharField(blank=True, default="", max_length=255)),
                ("greeting", models.PositiveIntegerField(blank=True, null=True)),
                ("assigned_by", models.CharField(max_length=200)),
                ("assigned_at", models.FloatField()),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["kind", "scope_kind", "scope_ref"], name="evennia_ai_assigned_to"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("kind", "key", "scope_kind", "scope_ref"),
                        name="evennia_ai_assignment_once",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("kind__in", ("card", "preset"))),
                        fields=("kind", "scope_kind", "scope_ref"),
                        name="evennia_ai_assigned_alone",
                    ),
                ],
            },
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
                ("depth_counts", models.CharField(default="messages", max_length=16)),
                ("placement", models.CharField(default="ordered", max_length=16)),
                ("volatile", models.BooleanField(default=False)),
                ("trust", models.CharField(default="builder", max_length=16)),
                ("priority", models.IntegerField(default=100)),
                ("required", models.BooleanField(default=False)),
                ("when", models.TextField(blank=True, default="")),
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
            name="KnowledgeDraft",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("base_key", models.CharField(max_length=64)),
                ("namespace", models.CharField(max_length=16)),
                ("title", models.CharField(max_length=255)),
                ("body", models.TextField(blank=True)),
                ("meta", models.TextField(default="{}")),
                ("locks", models.TextField(blank=True, default="")),
                ("was", models.CharField(blank=True, default="", max_length=200)),
                ("made_by", models.CharField(max_length=200)),
                ("made_at", models.FloatField()),
                ("note", models.TextField(blank=True, default="")),
                ("task", models.TextField(blank=True, default="")),
                ("context_meta", models.TextField(default="{}")),
                ("package", models.TextField(blank=True, default="")),
                ("state", models.CharField(default="waiting", max_length=16)),
                ("decided_by", models.CharField(blank=True, default="", max_length=200)),
                ("decided_at", models.FloatField(blank=True, null=True)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["state", "base_key"], name="evennia_ai_draft_state")
                ],
            },
        ),
        migrations.CreateModel(
            name="KnowledgeHold",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("base_key", models.CharField(max_length=64)),
                ("npc_ref", models.CharField(max_length=255)),
                ("held_since", models.FloatField()),
                ("locks", models.TextField(blank=True, default="")),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("base_key", "npc_ref"), name="evennia_ai_hold_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="KnowledgePage",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("namespace", models.CharField(max_length=16)),
                ("title", models.CharField(max_length=255)),
                ("folded", models.CharField(max_length=512)),
                ("body", models.TextField(blank=True)),
                ("aliases", models.TextField(blank=True, default="")),
                ("meta", models.TextField(default="{}")),
                ("sha256", models.CharField(max_length=64)),
                ("characters", models.PositiveIntegerField(default=0)),
                ("revision", models.PositiveIntegerField(default=1)),
                ("locks", models.TextField(blank=True, default="")),
                (
                    "base",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="evennia_ai.knowledgebase"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="KnowledgeLink",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(max_length=16)),
                ("place", models.PositiveIntegerField()),
                ("namespace", models.CharField(max_length=16)),
                ("title", models.CharField(max_length=255)),
                ("folded", models.CharField(max_length=512)),
                (
                    "base",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="evennia_ai.knowledgebase"
                    ),
                ),
                (
                    "page",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="evennia_ai.knowledgepage"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="KnowledgeAlias",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("namespace", models.CharField(max_length=16)),
                ("folded", models.CharField(max_length=512)),
                (
                    "base",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="evennia_ai.knowledgebase"
                    ),
                ),
                (
                    "page",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="evennia_ai.knowledgepage"
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "knowledge aliases",
            },
        ),
        migrations.CreateModel(
            name="KnowledgePageRevision",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("base_key", models.CharField(max_length=64)),
                ("namespace", models.CharField(max_length=16)),
                ("title", models.CharField(max_length=255)),
                ("folded", models.CharField(max_length=512)),
                ("number", models.PositiveIntegerField()),
                ("action", models.CharField(max_length=16)),
                ("changed_by", models.CharField(max_length=200)),
                ("changed_at", models.FloatField()),
                ("note", models.TextField(blank=True, default="")),
                ("sha256", models.CharField(blank=True, default="", max_length=64)),
                ("body", models.TextField(blank=True, default="")),
                ("meta", models.TextField(blank=True, default="")),
                ("locks", models.TextField(blank=True, default="")),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("base_key", "namespace", "folded", "number"),
                        name="evennia_ai_page_number",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="KnowledgePageVector",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("place", models.PositiveIntegerField()),
                ("model", models.CharField(max_length=64)),
                ("sha256", models.CharField(max_length=64)),
                ("vector", models.BinaryField()),
                (
                    "page",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="evennia_ai.knowledgepage"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="KnowledgePosting",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("word", models.CharField(max_length=64)),
                ("field", models.CharField(max_length=16)),
                ("span", models.PositiveIntegerField()),
                ("pages", models.PositiveIntegerField()),
                ("packed", models.BinaryField()),
                (
                    "base",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="evennia_ai.knowledgebase",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="KnowledgeSearch",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
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
                "verbose_name_plural": "knowledge searches",
            },
        ),
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
        migrations.CreateModel(
            name="LorekeeperTask",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("asked_by", models.CharField(max_length=255)),
                ("base_key", models.CharField(max_length=64)),
                ("task", models.TextField()),
                ("context_meta", models.TextField(default="{}")),
                ("request", models.TextField()),
                ("sha256", models.CharField(max_length=64)),
                ("text", models.TextField(blank=True, default="")),
                ("drafts", models.TextField(default="[]")),
                ("error", models.TextField(blank=True, default="")),
                ("began_at", models.FloatField()),
                ("ended_at", models.FloatField(blank=True, null=True)),
            ],
            options={
                "indexes": [models.Index(fields=["asked_by"], name="evennia_ai_task_asked_by")],
            },
        ),
        migrations.CreateModel(
            name="LoreState",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("state", models.TextField(default="{}")),
                ("turn", models.PositiveIntegerField(default=0)),
                ("updated_at", models.FloatField()),
                (
                    "conversation",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, to="evennia_ai.conversation"
                    ),
                ),
            ],
        ),
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
                ("scene", models.TextField(blank=True, default="")),
                ("revision", models.PositiveIntegerField(default=1)),
            ],
            options={
                "verbose_name_plural": "memories",
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
                "indexes": [models.Index(fields=["about"], name="evennia_ai_memory_rev_about")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("memory_id", "number"), name="evennia_ai_memory_number"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ModelCallDay",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.PositiveIntegerField()),
                ("npc_ref", models.CharField(max_length=255)),
                ("role", models.CharField(max_length=16)),
                ("model", models.CharField(blank=True, default="", max_length=200)),
                ("calls", models.PositiveIntegerField()),
                ("failures", models.PositiveIntegerField()),
                ("input_tokens", models.PositiveBigIntegerField()),
                ("cached_tokens", models.PositiveBigIntegerField()),
                ("output_tokens", models.PositiveBigIntegerField()),
                ("nanodollars", models.PositiveBigIntegerField(default=0)),
                ("unpriced_calls", models.PositiveIntegerField(default=0)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["npc_ref", "day"], name="evennia_ai_call_day_npc")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("day", "npc_ref", "role", "model"), name="evennia_ai_call_day"
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
                ("key", models.CharField(default="note", max_length=64)),
                ("content", models.TextField(blank=True, default="")),
                ("depth", models.PositiveIntegerField(default=4)),
                ("role", models.CharField(default="system", max_length=16)),
                ("every", models.PositiveIntegerField(default=1)),
                ("mode", models.CharField(default="floating", max_length=16)),
                ("place", models.CharField(blank=True, default="", max_length=80)),
                ("order", models.IntegerField(default=100)),
                ("when", models.TextField(blank=True, default="")),
                ("enabled", models.BooleanField(default=True)),
                ("revision", models.PositiveIntegerField(default=1)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("npc_ref", "key"), name="evennia_ai_note_key")
                ],
            },
        ),
        migrations.CreateModel(
            name="Proposal",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("idempotency", models.CharField(max_length=255, unique=True)),
                ("kind", models.CharField(max_length=200)),
                ("job", models.TextField()),
                ("state", models.CharField(default="offered", max_length=16)),
                ("head_sha256", models.CharField(blank=True, default="", max_length=64)),
                ("body", models.TextField(blank=True, default="")),
                ("calls", models.TextField(default="[]")),
                ("reason", models.TextField(blank=True, default="")),
                ("worker", models.CharField(max_length=200)),
                ("begun_at", models.FloatField()),
                ("offered_at", models.FloatField()),
                ("handled_at", models.FloatField(blank=True, null=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("handled_at", None)),
                        fields=["id"],
                        name="evennia_ai_proposal_open",
                    ),
                    models.Index(
                        condition=models.Q(("state", "poisoned")),
                        fields=["idempotency"],
                        name="evennia_ai_proposal_poisoned",
                    ),
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
                ("content_sha256", models.CharField(max_length=64)),
                ("sha256", models.CharField(max_length=64)),
                ("messages", models.PositiveIntegerField(default=0)),
                ("users", models.PositiveIntegerField(default=0)),
                ("replies", models.PositiveIntegerField(default=0)),
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
            name="ModelCall",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("npc_ref", models.CharField(max_length=255)),
                ("player_ref", models.CharField(blank=True, default="", max_length=255)),
                ("role", models.CharField(max_length=16)),
                ("profile", models.CharField(blank=True, default="", max_length=200)),
                ("model", models.CharField(blank=True, default="", max_length=200)),
                ("turn", models.PositiveIntegerField(blank=True, null=True)),
                ("started_at", models.FloatField()),
                ("seconds", models.FloatField()),
                ("first_piece_seconds", models.FloatField(blank=True, null=True)),
                ("input_tokens", models.PositiveIntegerField()),
                ("cached_tokens", models.PositiveIntegerField(blank=True, null=True)),
                ("written_tokens", models.PositiveIntegerField(blank=True, null=True)),
                ("output_tokens", models.PositiveIntegerField()),
                ("is_estimated", models.BooleanField(default=False)),
                ("whole_tokens", models.PositiveIntegerField(blank=True, null=True)),
                ("nanodollars", models.PositiveBigIntegerField(blank=True, null=True)),
                ("outcome", models.CharField(max_length=64)),
                (
                    "event_record",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="evennia_ai.record",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Revision",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(max_length=16)),
                ("scope_kind", models.CharField(default="game", max_length=16)),
                ("scope_ref", models.CharField(blank=True, default="", max_length=255)),
                ("key", models.CharField(max_length=200)),
                ("number", models.PositiveIntegerField()),
                ("action", models.CharField(max_length=16)),
                ("changed_by", models.CharField(max_length=200)),
                ("changed_at", models.FloatField()),
                ("value", models.TextField()),
                (
                    "file",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="evennia_ai.sourcefile",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Preset",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=200, unique=True)),
                ("grants", models.TextField(blank=True, default="")),
                ("switches", models.TextField(default="{}")),
                ("revision", models.PositiveIntegerField(default=1)),
                (
                    "file",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="evennia_ai.sourcefile"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="RegexScript",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=200, unique=True)),
                ("position", models.PositiveIntegerField()),
                ("source", models.TextField()),
                ("revision", models.PositiveIntegerField(default=1)),
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
                ("locks", models.TextField(blank=True, default="")),
                ("entry_locks", models.TextField(blank=True, default="{}")),
                ("revision", models.PositiveIntegerField(default=1)),
                (
                    "file",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="evennia_ai.sourcefile"
                    ),
                ),
            ],
        ),
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
                ("grants", models.TextField(blank=True, default="")),
                ("revision", models.PositiveIntegerField(default=1)),
                (
                    "file",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="evennia_ai.sourcefile"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="TokenLease",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("minute", models.PositiveBigIntegerField()),
                ("npc_ref", models.CharField(blank=True, default="", max_length=255)),
                ("tokens", models.PositiveBigIntegerField(default=0)),
                ("calls", models.PositiveIntegerField(default=0)),
                ("game_tokens", models.PositiveBigIntegerField(default=0)),
                ("game_calls", models.PositiveIntegerField(default=0)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("minute", "npc_ref"), name="evennia_ai_lease")
                ],
            },
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
                ("manifest", models.BinaryField()),
                ("is_erased", models.BooleanField(default=False)),
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
            name="PlayerReport",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("prompt_sha256", models.CharField(max_length=64)),
                ("words", models.TextField(blank=True, default="")),
                ("why", models.TextField(blank=True, default="")),
                ("reporter_ref", models.CharField(blank=True, default="", max_length=255)),
                ("reported_at", models.FloatField()),
                (
                    "turn",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="evennia_ai.turn"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="VaultedChunk",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("base_key", models.CharField(max_length=64)),
                ("place", models.PositiveIntegerField()),
                ("title", models.CharField(max_length=255)),
                ("page_revision", models.CharField(blank=True, default="", max_length=200)),
                ("sha256", models.CharField(max_length=64)),
                ("content", models.TextField()),
                (
                    "search",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="evennia_ai.knowledgesearch"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="VaultReading",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("base_key", models.CharField(max_length=64)),
                ("read_by", models.CharField(max_length=200)),
                ("read_at", models.FloatField()),
                ("chunks", models.PositiveIntegerField()),
            ],
            options={
                "indexes": [models.Index(fields=["base_key"], name="evennia_ai_vault_reading")],
            },
        ),
        migrations.CreateModel(
            name="Errand",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("npc_ref", models.CharField(max_length=255)),
                ("number", models.PositiveIntegerField()),
                ("turn", models.PositiveIntegerField()),
                ("call", models.TextField()),
                ("state", models.CharField(default="open", max_length=16)),
                ("result", models.TextField(blank=True, default="")),
                ("begun_at", models.FloatField()),
                ("ended_at", models.FloatField(blank=True, null=True)),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="evennia_ai.conversation"
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["state"], name="evennia_ai_errand_state")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("npc_ref", "number"), name="evennia_ai_errand_number"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="KnowledgeBinding",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("scope_kind", models.CharField(max_length=16)),
                ("scope_ref", models.CharField(blank=True, default="", max_length=255)),
                ("bound_by", models.CharField(max_length=200)),
                ("bound_at", models.FloatField()),
                (
                    "base",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="evennia_ai.knowledgebase"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["scope_kind", "scope_ref"], name="evennia_ai_bound_to")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("base", "scope_kind", "scope_ref"), name="evennia_ai_binding"
                    )
                ],
            },
        ),
        migrations.AddConstraint(
            model_name="knowledgepage",
            constraint=models.UniqueConstraint(
                fields=("base", "namespace", "folded"), name="evennia_ai_page_title"
            ),
        ),
        migrations.AddIndex(
            model_name="knowledgelink",
            index=models.Index(
                fields=["base", "namespace", "folded"], name="evennia_ai_page_linked"
            ),
        ),
        migrations.AddIndex(
            model_name="knowledgealias",
            index=models.Index(
                fields=["base", "namespace", "folded"], name="evennia_ai_page_alias"
            ),
        ),
        migrations.AddConstraint(
            model_name="knowledgepagevector",
            constraint=models.UniqueConstraint(
                fields=("page", "model", "place"), name="evennia_ai_page_vector"
            ),
        ),
        migrations.AddConstraint(
            model_name="knowledgeposting",
            constraint=models.UniqueConstraint(
                fields=("base", "word", "field", "span"), name="evennia_ai_posting"
            ),
        ),
        migrations.AddIndex(
            model_name="knowledgesearch",
            index=models.Index(fields=["conversation", "began_at"], name="evennia_ai_search_when"),
        ),
        migrations.AddIndex(
            model_name="knowledgesearch",
            index=models.Index(fields=["npc_ref", "turn"], name="evennia_ai_search_turn"),
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                fields=["conversation", "content_sha256"], name="evennia_ai_record_content"
            ),
        ),
        migrations.AddConstraint(
            model_name="record",
            constraint=models.UniqueConstraint(
                fields=("conversation", "segment", "seq"), name="evennia_ai_record_seq"
            ),
        ),
        migrations.AddIndex(
            model_name="modelcall",
            index=models.Index(fields=["started_at"], name="evennia_ai_call_time"),
        ),
        migrations.AddIndex(
            model_name="modelcall",
            index=models.Index(fields=["npc_ref", "started_at"], name="evennia_ai_call_npc"),
        ),
        migrations.AddIndex(
            model_name="modelcall",
            index=models.Index(fields=["player_ref", "started_at"], name="evennia_ai_call_player"),
        ),
        migrations.AddConstraint(
            model_name="revision",
            constraint=models.UniqueConstraint(
                fields=("kind", "scope_kind", "scope_ref", "key", "number"),
                name="evennia_ai_revision_number",
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
        migrations.AddIndex(
            model_name="vaultedchunk",
            index=models.Index(fields=["base_key"], name="evennia_ai_vault_base"),
        ),
        migrations.AddIndex(
            model_name="playerreport",
            index=models.Index(fields=["reporter_ref"], name="evennia_ai_report_by"),
        ),
        migrations.RunPython(protect, unprotect),
        migrations.RunPython(protect_turns, unprotect_turns),
        migrations.RunPython(create, migrations.RunPython.noop),
        migrations.RunPython(keep_plain, migrations.RunPython.noop),
    ]
