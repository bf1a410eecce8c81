import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Knowledge bases, their pages and where they count."""

    dependencies = [
        ("evennia_ai", "0014_errands"),
    ]

    operations = [
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
                ("changed_by", models.CharField(max_length=200)),
                ("changed_at", models.FloatField()),
            ],
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
    ]
