"""Background work: what workers offer, what they may spend, open breakers, who they are."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("evennia_ai", "0034_personas"),
    ]

    operations = [
        migrations.CreateModel(
            name="BreakerRow",
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
                ("name", models.CharField(max_length=200, unique=True)),
                ("state", models.CharField(max_length=16)),
                ("since", models.FloatField()),
            ],
        ),
        migrations.CreateModel(
            name="TokenLease",
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
                ("minute", models.PositiveBigIntegerField(unique=True)),
                ("tokens", models.PositiveBigIntegerField(default=0)),
                ("calls", models.PositiveIntegerField(default=0)),
                ("game_tokens", models.PositiveBigIntegerField(default=0)),
                ("game_calls", models.PositiveIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name="Worker",
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
                ("name", models.CharField(max_length=200, unique=True)),
                ("version", models.PositiveIntegerField()),
                ("kinds", models.TextField(blank=True, default="")),
                ("begun_at", models.FloatField()),
                ("seen_at", models.FloatField()),
                ("doing", models.CharField(blank=True, default="", max_length=255)),
            ],
        ),
        migrations.CreateModel(
            name="Proposal",
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
                ("idempotency", models.CharField(max_length=255, unique=True)),
                ("kind", models.CharField(max_length=200)),
                ("job", models.TextField()),
                ("state", models.CharField(default="offered", max_length=16)),
                (
                    "head_sha256",
                    models.CharField(blank=True, default="", max_length=64),
                ),
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
    ]
