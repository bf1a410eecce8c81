"""Memories know the words of the scene they were learnt in; of those that are there none is known."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("evennia_ai", "0027_postings")]

    operations = [
        migrations.AddField(
            model_name="memory",
            name="scene",
            field=models.TextField(blank=True, default=""),
        ),
    ]
