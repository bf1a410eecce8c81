"""What players write of their own characters."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("evennia_ai", "0033_presets")]

    operations = [
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
                ("changed_at", models.FloatField()),
            ],
        )
    ]
