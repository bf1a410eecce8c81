"""Make the tables of the game in the working directory, as `evennia migrate` does.

Only the migrations of evennia_ai run. The tables of other apps are made from their models, in a
quarter of the time, and their migrations are recorded as applied.
"""

import gc

import django
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from server.conf.test_settings import MIGRATION_MODULES


def main() -> None:
    """Make the tables, and record all migrations as applied."""
    all_modules = settings.MIGRATION_MODULES
    settings.MIGRATION_MODULES = MIGRATION_MODULES
    django.setup()
    gc.freeze()  # make the garbage collection after each app's migrations fast
    call_command("migrate", run_syncdb=True, verbosity=0)
    settings.MIGRATION_MODULES = all_modules
    migrations, recorder = MigrationLoader(connection), MigrationRecorder(connection)
    for app, name in migrations.disk_migrations.keys() - migrations.applied_migrations.keys():
        recorder.record_applied(app, name)
    connection.close()  # write everything into the one file that tests copy


if __name__ == "__main__":
    main()
