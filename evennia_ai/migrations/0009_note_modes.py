"""Author's notes have a mode: whether one floats, keeps its place, or stays where it was said."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("evennia_ai", "0008_note_revisions")]

    operations = [
        migrations.AddField(
            model_name="note",
            name="mode",
            field=models.CharField(default="floating", max_length=16),
        ),
    ]
