"""The database itself refuses to change or remove a record."""

from django.db import migrations

from evennia_ai.migrations._append_only import protect, unprotect


class Migration(migrations.Migration):
    dependencies = [("evennia_ai", "0001_tables")]

    operations = [migrations.RunPython(protect, unprotect)]
