from django.db import migrations


class Migration(migrations.Migration):
    """What Django's admin calls several rows; no table changes."""

    dependencies = [("evennia_ai", "0022_mediation_of_bases")]

    operations = [
        migrations.AlterModelOptions(
            name="knowledgealias",
            options={"verbose_name_plural": "knowledge aliases"},
        ),
        migrations.AlterModelOptions(
            name="knowledgepagewords",
            options={"verbose_name_plural": "knowledge page words"},
        ),
        migrations.AlterModelOptions(
            name="knowledgesearch",
            options={"verbose_name_plural": "knowledge searches"},
        ),
        migrations.AlterModelOptions(
            name="memory",
            options={"verbose_name_plural": "memories"},
        ),
    ]
