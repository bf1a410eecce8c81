"""Tables of knowledge bases: pages, what finds and guards them, drafts, the lorekeeper's tasks.

Titles are kept as they are shown and, folded, as they are looked for. Columns of JSON are texts, so
that a revision is the same bytes on every database. A task of the lorekeeper is there before its
model is asked, so that whatever can come of it is known to have been asked for.
"""

from django.db import models

from evennia_ai.models.core import KEY, KINDS, NAME, REF, SHA256, TITLE

# A folded title may be longer than the title: some letters fold to three.
FOLDED = 512

MODEL = 64
WORD = 64
INDEXED_FOR = 128


class KnowledgeBase(models.Model):
    """A knowledge base and what is told of it.

    `page_count` and `characters` are counted with every change of a page; `revision` rises with
    every change of the base or of a page in it. `indexed_for` says in which languages its pages
    are found by other forms of their words: "words" and their codes, "" before they are found.
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
    indexed_for = models.CharField(max_length=INDEXED_FOR, default="", blank=True)
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


class KnowledgeHold(models.Model):
    """An NPC that the lock of a base once held to safe summaries.

    It outlives the base: one of the same key holds the NPC too. `locks` are those of bases of this
    key that were removed, one a line: who lets the NPC go must pass them as well.
    """

    base_key = models.CharField(max_length=KEY)
    npc_ref = models.CharField(max_length=REF)
    held_since = models.FloatField()
    locks = models.TextField(default="", blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["base_key", "npc_ref"], name="evennia_ai_hold_once")
        ]

    def __str__(self) -> str:
        return f"{self.npc_ref} guards {self.base_key}"


class KnowledgePosting(models.Model):
    """A word in a field of pages, and which pages of a span of their ids have it, `packed`.

    `field` is title, body or namespace, `pages` how many of them there are; the rest is told in
    `engine/knowledge/postings.py`.
    """

    # The constraint below begins with the base: a second index of it would be of no use.
    base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, db_index=False)
    word = models.CharField(max_length=WORD)
    field = models.CharField(max_length=KINDS)
    span = models.PositiveIntegerField()
    pages = models.PositiveIntegerField()
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
    """What a model makes of one part of a page: a vector of numbers of 4 bytes.

    `sha256` is that of the page it was made from: where the page says something else by now, the
    vector is old. `place` is the place of the part among those of the page.
    """

    page = models.ForeignKey(KnowledgePage, on_delete=models.CASCADE)
    place = models.PositiveIntegerField()
    model = models.CharField(max_length=MODEL)
    sha256 = models.CharField(max_length=SHA256)
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
    """One task; `ended_at` is None while a model writes, and where the server stopped meanwhile.

    `request` is what was sent, message by message, `sha256` its hash; `context_meta` tells what is
    in it and why. `text` is what the model wrote, `drafts` the numbers of the pages in it; `error`
    says why there is no answer.
    """

    asked_by = models.CharField(max_length=REF)
    base_key = models.CharField(max_length=KEY)
    task = models.TextField()
    context_meta = models.TextField(default="{}")
    request = models.TextField()
    sha256 = models.CharField(max_length=SHA256)
    text = models.TextField(default="", blank=True)
    drafts = models.TextField(default="[]")
    error = models.TextField(default="", blank=True)
    began_at = models.FloatField()
    ended_at = models.FloatField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=["asked_by"], name="evennia_ai_task_asked_by")]

    def __str__(self) -> str:
        return f"task {self.pk} of {self.asked_by} for {self.base_key}"
