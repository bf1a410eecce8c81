"""Pages of knowledge bases are found by their meaning as well, where a game wants it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("evennia_ai", "0017_page_search")]

    operations = [
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
                        on_delete=models.deletion.CASCADE, to="evennia_ai.knowledgepage"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("page", "model", "place"), name="evennia_ai_page_vector"
                    )
                ],
            },
        ),
    ]
