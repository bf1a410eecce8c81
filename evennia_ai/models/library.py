"""Tables of what games share: the library's own two, and what a game has taken from it.

A library is a database beside the game's. Its tables are made where something is published, and no
migration of a game touches them; `format` says how an entry is to be read.
"""

from django.db import models

from evennia_ai.models.core import KEY, KINDS, NAME, REF, SHA256

PATH = 600


class LibraryEntry(models.Model):
    """A knowledge base or a card that a game published; in the library's database.

    `sha256` is that of the list of its files, `game` the random name of the game.
    """

    kind = models.CharField(max_length=KINDS)
    name = models.CharField(max_length=NAME)
    format = models.PositiveIntegerField()
    sha256 = models.CharField(max_length=SHA256)
    game = models.CharField(max_length=KEY)
    game_name = models.CharField(max_length=NAME)
    published_by = models.CharField(max_length=REF)
    published_at = models.FloatField()

    class Meta:
        managed = False
        db_table = "evennia_ai_library_entry"
        verbose_name_plural = "library entries"
        constraints = [
            models.UniqueConstraint(fields=["kind", "name"], name="evennia_ai_library_name")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class LibraryFile(models.Model):
    """A file of an entry, as an export writes it; in the library's database.

    `sha256` is that of the page in it, with its lock, or of the file where it holds none.
    """

    entry = models.ForeignKey(LibraryEntry, on_delete=models.CASCADE, db_index=False)
    path = models.CharField(max_length=PATH)
    sha256 = models.CharField(max_length=SHA256)
    content = models.BinaryField()

    class Meta:
        managed = False
        db_table = "evennia_ai_library_file"
        constraints = [
            models.UniqueConstraint(fields=["entry", "path"], name="evennia_ai_library_path")
        ]

    def __str__(self) -> str:
        return self.path


class LibraryCopy(models.Model):
    """What this game has taken from the library; in the game's own database.

    `sha256` is that of the entry as it was taken, `said` what the library says of who may read a
    base, in words. `is_gone`: it is in the library no more.
    """

    kind = models.CharField(max_length=KINDS)
    name = models.CharField(max_length=NAME)
    sha256 = models.CharField(max_length=SHA256)
    said = models.CharField(max_length=NAME, default="", blank=True)
    game_name = models.CharField(max_length=NAME)
    is_gone = models.BooleanField(default=False)
    taken_by = models.CharField(max_length=REF)
    taken_at = models.FloatField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["kind", "name"], name="evennia_ai_copy")]
        verbose_name_plural = "library copies"

    def __str__(self) -> str:
        return f"{self.kind} {self.name} of {self.game_name}"
