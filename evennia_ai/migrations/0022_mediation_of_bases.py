"""A restricted base may tell nothing but hints that its authors wrote."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("evennia_ai", "0021_refused_sayings")]

    operations = [
        migrations.AddField(
            model_name="knowledgebase",
            name="mediation",
            field=models.CharField(default="summary", max_length=16),
        ),
    ]
