"""Tables of knowledge bases: their pages, what these link to, every change, and where they count.

Titles are kept as they are shown and, folded, as they are looked for. Columns of JSON are texts, so
that a revision is the same bytes on every database.
"""

from django.db import models

from evennia_ai.models.columns import KINDS, NAME, REF, SHA256

KEY = 64
TITLE = 255
# A folded title may be longer than the title: some letters fold to three.
FOLDED = 512


class KnowledgeBase(models.Model):
    """A knowledge base and what is told of it.

    `page_count` and `characters` are counted with every change of a page; `revision` rises with
    every change of the base or of a page in it.
    """

    key = models.CharField(max_length=KEY, unique=True)
    name = models.CharField(max_length=NAME)
    summary = models.TextField(default="", blank=True)
    topics = models.TextField(default="[]")
    hint = models.TextField(default="", blank=True)
    keywords = models.TextField(default="[]")
    restricted = models.BooleanField(default=False)
    keeps_chunks = models.BooleanField(default=True)
    direct_characters = models.PositiveIntegerField(default=0)
    page_count = models.PositiveIntegerField(default=0)
    characters = models.PositiveBigIntegerField(default=0)
    revision = models.PositiveIntegerField(default=1)
    locks = models.TextField(default="", blank=True)
    backend = models.CharField(max_length=KINDS, default="database")
    mediation = models.CharField(max_length=KINDS, default="summary")
    changed_by = models.CharField(max_length=NAME)
    changed_at = models.FloatField()

    def __str__(self) -> str:
        return self.key


class KnowledgePage(models.Model):
    """A page as it is now; `aliases` are its other titles, one a line, for those who search."""

    base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE)
    namespace = models.CharField(max_length=KINDS)
    title = models.CharField(max_length=TITLE)
    folded = models.CharField(max_length=FOLDED)
    body = models.TextField(blank=True)
    aliases = models.TextField(default="", blank=True)
    meta = models.TextField(default="{}")
    sha256 = models.CharField(max_length=SHA256)
    characters = models.PositiveIntegerField(default=0)
    revision = models.PositiveIntegerField(default=1)
    locks = models.TextField(default="", blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["base", "namespace", "folded"], name="evennia_ai_page_title"
            )
        ]

    def __str__(self) -> str:
        return f"{self.namespace}:{self.title}"


class KnowledgeAlias(models.Model):
    """Another title of a page, folded."""

    base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE)
    page = models.ForeignKey(KnowledgePage, on_delete=models.CASCADE)
    namespace = models.CharField(max_length=KINDS)
    folded = models.CharField(max_length=FOLDED)

    class Meta:
        verbose_name_plural = "knowledge aliases"
        indexes = [
            models.Index(fields=["base", "namespace", "folded"], name="evennia_ai_page_alias")
        ]

    def __str__(self) -> str:
        return f"{self.namespace}:{self.folded}"


class KnowledgeLink(models.Model):
    """A page that another one links to or requires, whether there is one or not.

    `kind` is link or requires; `place` is its place among those of its kind on the page.
    """

    base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE)
    page = models.ForeignKey(KnowledgePage, on_delete=models.CASCADE)
    kind = models.CharField(max_length=KINDS)
    place = models.PositiveIntegerField()
    namespace = models.CharField(max_length=KINDS)
    title = models.CharField(max_length=TITLE)
    folded = models.CharField(max_length=FOLDED)

    class Meta:
        indexes = [
            models.Index(fields=["base", "namespace", "folded"], name="evennia_ai_page_linked")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}:{self.title}"


class KnowledgePageRevision(models.Model):
    """One change of a page; stays when the page or its base is removed.

    `body` and `meta` are those after the change, "" for a removal. `locks` of a removal are those
    that the page had, or its base where that was removed.
    """

    base_key = models.CharField(max_length=KEY)
    namespace = models.CharField(max_length=KINDS)
    title = models.CharField(max_length=TITLE)
    folded = models.CharField(max_length=FOLDED)
    number = models.PositiveIntegerField()
    action = models.CharField(max_length=KINDS)
    changed_by = models.CharField(max_length=NAME)
    changed_at = models.FloatField()
    note = models.TextField(default="", blank=True)
    sha256 = models.CharField(max_length=SHA256, default="", blank=True)
    body = models.TextField(default="", blank=True)
    meta = models.TextField(default="", blank=True)
    locks = models.TextField(default="", blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["base_key", "namespace", "folded", "number"],
                name="evennia_ai_page_number",
            )
        ]

    def __str__(self) -> str:
        return f"{self.base_key}/{self.namespace}:{self.title} {self.number} {self.action}"


class KnowledgeBinding(models.Model):
    """Where a knowledge base counts."""

    base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE)
    scope_kind = models.CharField(max_length=KINDS)
    scope_ref = models.CharField(max_length=REF, default="", blank=True)
    bound_by = models.CharField(max_length=NAME)
    bound_at = models.FloatField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["base", "scope_kind", "scope_ref"], name="evennia_ai_binding"
            )
        ]
        indexes = [models.Index(fields=["scope_kind", "scope_ref"], name="evennia_ai_bound_to")]

    def __str__(self) -> str:
        return f"{self.base_id} at {self.scope_kind}:{self.scope_ref}"


class KnowledgeDraft(models.Model):
    """A page as somebody wants it to be, until a builder decides, and what was decided.

    `was` is the revision it was written from, "" for a new page. `state` is waiting, approved or
    refused; `decided_at` is set with the latter two. `task`, `context_meta` (JSON) and `package`
    tell what it was written for and from.
    """

    base_key = models.CharField(max_length=KEY)
    namespace = models.CharField(max_length=KINDS)
    title = models.CharField(max_length=TITLE)
    body = models.TextField(blank=True)
    meta = models.TextField(default="{}")
    locks = models.TextField(default="", blank=True)
    was = models.CharField(max_length=NAME, default="", blank=True)
    made_by = models.CharField(max_length=NAME)
    made_at = models.FloatField()
    note = models.TextField(default="", blank=True)
    task = models.TextField(default="", blank=True)
    context_meta = models.TextField(default="{}")
    package = models.TextField(default="", blank=True)
    state = models.CharField(max_length=KINDS, default="waiting")
    decided_by = models.CharField(max_length=NAME, default="", blank=True)
    decided_at = models.FloatField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=["state", "base_key"], name="evennia_ai_draft_state")]

    def __str__(self) -> str:
        return f"draft {self.pk} of {self.base_key}/{self.namespace}:{self.title}"
