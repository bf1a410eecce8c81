"""In which languages the pages of a base are found; they are indexed when migrations are done."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("evennia_ai", "0028_scenes_of_memories")]

    operations = [
        migrations.AddField(
            model_name="knowledgebase",
            name="indexed_for",
            field=models.CharField(blank=True, default="", max_length=128),
        ),
    ]
