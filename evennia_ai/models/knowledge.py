"""Tables of knowledge bases: pages, their index and guards, drafts, the lorekeeper's tasks.

A title is stored twice: as people read it, and folded for lookups. JSON is in text columns, so that
a revision has the same bytes on every database. A lorekeeper's task is stored before its model is
called, so that every answer has its request.
"""

from django.db import models

from evennia_ai.models.core import KEY, KINDS, NAME, REF, SHA256, TITLE

# A folded title may be longer than the title, because some letters fold to three.
FOLDED = 512

MODEL = 64
WORD = 64
INDEXED_FOR = 128


class KnowledgeBase(models.Model):
    """A knowledge base with its settings and counts."""

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
    """The number of pages. It is updated with every change of a page."""
    characters = models.PositiveBigIntegerField(default=0)
    """The number of characters of all pages. It is updated with every change of a page."""
    revision = models.PositiveIntegerField(default=1)
    """A number that rises with every change of the base or of one of its pages."""
    locks = models.TextField(default="", blank=True)
    backend = models.CharField(max_length=KINDS, default="database")
    mediation = models.CharField(max_length=KINDS, default="summary")
    indexed_for = models.CharField(max_length=INDEXED_FOR, default="", blank=True)
    """"words" and the codes of the languages whose word forms are indexed. "" means no index."""
    changed_by = models.CharField(max_length=NAME)
    changed_at = models.FloatField()

    def __str__(self) -> str:
        return self.key


class KnowledgePage(models.Model):
    """The current revision of a page."""

    base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE)
    namespace = models.CharField(max_length=KINDS)
    title = models.CharField(max_length=TITLE)
    folded = models.CharField(max_length=FOLDED)
    body = models.TextField(blank=True)
    aliases = models.TextField(default="", blank=True)
    """Other titles of the page, one per line, for searches."""
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
    """Another title of a page, folded for lookups."""

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
    """A link from a page to another one, or a requirement of another one.

    The other page need not exist.
    """

    base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE)
    page = models.ForeignKey(KnowledgePage, on_delete=models.CASCADE)
    kind = models.CharField(max_length=KINDS)
    """"link" or "requires"."""
    place = models.PositiveIntegerField()
    """The position among the page's links of the same kind."""
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
    """One change of a page. It stays when the page or its base is removed."""

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
    """The text after the change; "" for a removal."""
    meta = models.TextField(default="", blank=True)
    """The metadata after the change; "" for a removal."""
    locks = models.TextField(default="", blank=True)
    """For a removal: the locks of the page, or of its base if that was removed."""

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
    """A scope in which NPCs use a knowledge base."""

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
    """A proposed text of a page, with a builder's decision about it."""

    base_key = models.CharField(max_length=KEY)
    namespace = models.CharField(max_length=KINDS)
    title = models.CharField(max_length=TITLE)
    body = models.TextField(blank=True)
    meta = models.TextField(default="{}")
    locks = models.TextField(default="", blank=True)
    was = models.CharField(max_length=NAME, default="", blank=True)
    """The revision of the page that the draft starts from; "" for a new page."""
    made_by = models.CharField(max_length=NAME)
    made_at = models.FloatField()
    note = models.TextField(default="", blank=True)
    task = models.TextField(default="", blank=True)
    """The lorekeeper's task that the draft was written for."""
    context_meta = models.TextField(default="{}")
    """JSON: what was in the model's prompt, and why."""
    package = models.TextField(default="", blank=True)
    """The excerpt of the base that the draft was written from."""
    state = models.CharField(max_length=KINDS, default="waiting")
    """"waiting", "approved" or "refused"."""
    decided_by = models.CharField(max_length=NAME, default="", blank=True)
    decided_at = models.FloatField(null=True, blank=True)
    """Set when a builder approves or refuses the draft."""

    class Meta:
        indexes = [models.Index(fields=["state", "base_key"], name="evennia_ai_draft_state")]

    def __str__(self) -> str:
        return f"draft {self.pk} of {self.base_key}/{self.namespace}:{self.title}"


class KnowledgeHold(models.Model):
    """A record that an NPC guards a knowledge base for ever.

    It is made when the base's lock first limits the NPC to safe summaries. It outlives the base: a
    later base with the same key limits the NPC too.
    """

    base_key = models.CharField(max_length=KEY)
    npc_ref = models.CharField(max_length=REF)
    held_since = models.FloatField()
    locks = models.TextField(default="", blank=True)
    """The locks of removed bases with this key, one per line.

    Only a person whom all of them let in may release the NPC.
    """

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["base_key", "npc_ref"], name="evennia_ai_hold_once")
        ]

    def __str__(self) -> str:
        return f"{self.npc_ref} guards {self.base_key}"


class KnowledgePosting(models.Model):
    """The pages that contain a word in one field, for one span of page ids.

    `engine/knowledge/postings.py` defines the packed format.
    """

    # Needs no index: the index of the constraint below begins with this column.
    base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, db_index=False)
    word = models.CharField(max_length=WORD)
    field = models.CharField(max_length=KINDS)
    """"title", "body" or "namespace"."""
    span = models.PositiveIntegerField()
    pages = models.PositiveIntegerField()
    """The number of pages in `packed`."""
    packed = models.BinaryField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["base", "word", "field", "span"], name="evennia_ai_posting"
            )
        ]

    def __str__(self) -> str:
        return f"{self.word} in {self.field} of {self.pages} pages"


class KnowledgePageVector(models.Model):
    """The embedding of one part of a page, as 4-byte numbers."""

    page = models.ForeignKey(KnowledgePage, on_delete=models.CASCADE)
    place = models.PositiveIntegerField()
    """The number of the part in the page, from 0."""
    model = models.CharField(max_length=MODEL)
    sha256 = models.CharField(max_length=SHA256)
    """The hash of the page's text that the vector was made from.

    If the page now has another hash, the vector is out of date.
    """
    vector = models.BinaryField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["page", "model", "place"], name="evennia_ai_page_vector"
            )
        ]

    def __str__(self) -> str:
        return f"vector {self.place} of page {self.page_id}"


class LorekeeperTask(models.Model):
    """One task that a person gave to the lorekeeper."""

    asked_by = models.CharField(max_length=REF)
    base_key = models.CharField(max_length=KEY)
    task = models.TextField()
    context_meta = models.TextField(default="{}")
    """JSON: what the request contains, and why."""
    request = models.TextField()
    """The messages that were sent."""
    sha256 = models.CharField(max_length=SHA256)
    """The hash of `request`."""
    text = models.TextField(default="", blank=True)
    """The model's answer."""
    drafts = models.TextField(default="[]")
    """JSON: the numbers of the drafts in the answer."""
    error = models.TextField(default="", blank=True)
    """The reason why the model gave no answer; "" if it gave one."""
    began_at = models.FloatField()
    ended_at = models.FloatField(null=True, blank=True)
    """Null while the model writes, or if the server stopped before the answer."""

    class Meta:
        indexes = [models.Index(fields=["asked_by"], name="evennia_ai_task_asked_by")]

    def __str__(self) -> str:
        return f"task {self.pk} of {self.asked_by} for {self.base_key}"
