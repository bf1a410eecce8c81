"""Tasks of the lorekeeper are kept before its model is asked."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("evennia_ai", "0018_page_vectors"),
    ]

    operations = [
        migrations.CreateModel(
            name="LorekeeperTask",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
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
    ]
