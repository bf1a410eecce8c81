"""Pages of knowledge bases are found by their words; `0027_postings` has other tables for it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("evennia_ai", "0016_knowledge_searches")]

    operations = [
        migrations.CreateModel(
            name="KnowledgePageWords",
            fields=[
                (
                    "page",
                    models.OneToOneField(
                        on_delete=models.deletion.CASCADE,
                        primary_key=True,
                        serialize=False,
                        to="evennia_ai.knowledgepage",
                    ),
                ),
                ("title", models.TextField(blank=True)),
                ("body", models.TextField(blank=True)),
            ],
        ),
    ]
