"""What an import report says, as values; nothing here is text of ours but short sentences.

Texts of the card are as the file has them: whoever prints a report makes them visible first.
"""

from dataclasses import dataclass

from evennia_ai.cards.suspicions import Suspicion
from evennia_ai.prompt.components import Grant, Grants


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What a card is; nothing of it but its names ever reaches a prompt."""

    name: str
    nickname: str
    spec: str
    spec_version: str
    carrier: str
    creator: str
    version: str
    tags: tuple[str, ...]
    size_bytes: int | None
    greetings: int
    group_greetings: int
    assets_held: int
    assets_missing: int
    lore_entries: int
    creator_notes: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPart:
    """A text of the card that goes into prompts: from which field, as what, and where it stands.

    `place` is where it stands with the grants given, "" where it is left out; `granted` where it
    would stand with `grant` too, both empty where nothing is missing.
    """

    field: str
    key: str
    id: int
    tokens: int
    place: str
    granted: str = ""
    grant: Grant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GreetingPart:
    """A greeting: the character's first message, where an NPC is told to open with it."""

    index: int
    tokens: int
    group_only: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LorePlace:
    """A place that lore asks for: how many entries and tokens, and where they stand instead."""

    wanted: str
    entries: int
    tokens: int
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRow:
    """An entry that stands out, and why; `text` is how it begins."""

    uid: str
    name: str
    text: str
    place: str
    tokens: int
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BookAccount:
    """The card's lorebook in numbers.

    `usable` entries are neither disabled nor refused, and the other numbers are of those alone;
    `always` are the tokens of the entries that are active in every turn. `rows` are the
    entries that stand out, of `standing_out` ones.
    """

    label: str
    entries: int
    disabled: int
    refused: int
    usable: int
    tokens: int
    constants: int
    always: int
    by_depth: int
    pattern_keys: int
    asked_budget: int | None
    places: tuple[LorePlace, ...]
    rows: tuple[EntryRow, ...]
    standing_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantUse:
    """A grant that the card has a use for: what it gives, and whether it is given."""

    grant: Grant
    gives: str
    given: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What a card is, what becomes of everything in it, and what to look at before approving it.

    `clamped`, `neutralised` and `ignored` are a sentence each; `notices` are those of whoever read
    the file. `prompt_tokens` are those of the texts in every prompt, lore that is always on among
    them.
    """

    identity: Identity
    grants: Grants
    counter: str
    limit_tokens: int | None
    prompt_tokens: int
    parts: tuple[TextPart, ...]
    greetings: tuple[GreetingPart, ...]
    book: BookAccount | None
    ignored: tuple[str, ...]
    clamped: tuple[str, ...]
    neutralised: tuple[str, ...]
    uses: tuple[GrantUse, ...]
    suspicions: tuple[Suspicion, ...]
    notices: tuple[str, ...]
