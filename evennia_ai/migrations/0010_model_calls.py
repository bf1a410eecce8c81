"""Every call of a model is a row, and later part of the sum of its day."""

from django.db import migrations, models

_ID = models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


class Migration(migrations.Migration):
    dependencies = [("evennia_ai", "0009_note_modes")]

    operations = [
        migrations.CreateModel(
            name="ModelCall",
            fields=[
                ("id", _ID),
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
                ("outcome", models.CharField(max_length=64)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["started_at"], name="evennia_ai_call_time"),
                    models.Index(fields=["npc_ref", "started_at"], name="evennia_ai_call_npc"),
                    models.Index(
                        fields=["player_ref", "started_at"], name="evennia_ai_call_player"
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="ModelCallDay",
            fields=[
                ("id", _ID),
                ("day", models.PositiveIntegerField()),
                ("npc_ref", models.CharField(max_length=255)),
                ("role", models.CharField(max_length=16)),
                ("model", models.CharField(blank=True, default="", max_length=200)),
                ("calls", models.PositiveIntegerField()),
                ("failures", models.PositiveIntegerField()),
                ("input_tokens", models.PositiveBigIntegerField()),
                ("cached_tokens", models.PositiveBigIntegerField()),
                ("output_tokens", models.PositiveBigIntegerField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=["day", "npc_ref", "role", "model"], name="evennia_ai_call_day"
                    )
                ],
                "indexes": [
                    models.Index(fields=["npc_ref", "day"], name="evennia_ai_call_day_npc")
                ],
            },
        ),
    ]
