"""Author's notes: short texts of a builder that the prompt repeats every so many messages."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal, NamedTuple, get_args

from pydantic import Field

from evennia_ai.engine.foreign.fields import Must, plain_form
from evennia_ai.engine.prompt.components import DEFAULT_ORDER, HISTORY_ID, PromptComponent, When
from evennia_ai.engine.prompt.expansion import CompiledComponent, CompiledComponents, ComponentSet
from evennia_ai.engine.prompt.filling import Filling, MacroState, MacroStore
from evennia_ai.engine.prompt.fragments import Claim, Fragment, SharedMessage, make_fragment
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.memo import Slot
from evennia_ai.engine.prompt.messages import Role, Trust
from evennia_ai.engine.prompt.prefix_rules import (
    SpeechSources,
    restrict_fragment,
)
from evennia_ai.engine.prompt.tokens import TokenCounter
from evennia_ai.engine.prompt.trace import Verdict, not_expanded

# Modes of notes. A "floating" note is placed at its depth in each prompt. An "anchored" note keeps
# its first place until too many messages follow it. A "tail" note is sent at the end of the history
# from time to time, and stays there in the history.
NoteMode = Literal["floating", "anchored", "tail"]
NOTE_MODES: Final[tuple[NoteMode, ...]] = get_args(NoteMode)

NotePlace = Annotated[
    str,
    Field(pattern=r"^((before|after) [a-z][a-z0-9_]{0,63})?$"),
    Must("empty, or `before` or `after` and the key of a component"),
]
"""The place of a note next to a component, as a builder writes it: `before` or `after` a key."""

# A cache in the memo of a note's message, for a note next to a component: the message that the note
# shares with other texts there, and the note's fragment in it.
_BESIDE: Final = Slot[tuple[SharedMessage, Fragment]]("beside")
_MOST_BESIDE: Final = 999_999
SUMMARY: Final = "summary"
"""The key of the note that has a summary of the conversation, as presets place it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorsNote:
    """An author's note: a text in the history that returns every so many messages.

    The note is due at every `every`-th message of role user: 1 means always, 0 never. A note of the
    mode `tail` has no depth. It is due again after `every` messages of role user, or when it was
    cut away.
    """

    content: str
    key: str = ""
    """The name of the note in the trace; "" uses its index."""
    depth: int = 4
    """The number of messages after the note."""
    order: int = DEFAULT_ORDER
    """The order among texts at one depth, low values first."""
    role: Role = "system"
    every: int = 1
    mode: NoteMode = "floating"
    place: NotePlace = ""
    """The component next to which the note is placed, such as `after card_system_prompt`. Then
    depth, order and mode are ignored. "" for a place in the history."""
    scanned: bool = False
    """True if the expanded text is searched for keys of lore while the note is due."""
    trust: Trust = "builder"
    revision: int = 0
    off: str = ""
    """The reason why the note is disabled; "" if it is not."""
    when: When = ""
    """Conditions on facts of the game. The note is only in a prompt while all are met."""

    @property
    def injection_depth(self) -> int:
        """The number of messages of the history that follow the note."""
        return 0 if self.is_tail else self.depth

    @property
    def is_tail(self) -> bool:
        """True if the note is sent from time to time and then stays in the history."""
        return self.mode == "tail" and not self.place

    def is_due(self, user_messages: int) -> bool:
        """True if the note is due after this many messages of role user."""
        if self.every <= 1:
            return self.every == 1
        return user_messages >= self.every and user_messages % self.every == 0


class Notes:
    """The author's notes of a conversation, compiled once."""

    __slots__ = ("anchored", "compiled", "given", "notes", "off")

    def __init__(self, notes: Sequence[AuthorsNote] = ()) -> None:
        """Compile the notes. A note with a reason in `off` only gets a verdict."""
        self.given = tuple(notes)
        self.notes = tuple(note for note in notes if not note.off)
        self.off = tuple(
            not_expanded(note_origin(note, i), note.off) for i, note in enumerate(notes) if note.off
        )
        self.compiled = CompiledComponents(
            CompiledComponent(
                _component(note, i),
                origin=note_origin(note, i),
                stays=note_origin(note, i) if note.is_tail else "",
            )
            for i, note in enumerate(self.notes)
        )
        self.anchored = frozenset(
            note_origin(note, i)
            for i, note in enumerate(self.notes)
            if note.mode == "anchored" and not note.place
        )

    __get_pydantic_core_schema__ = plain_form(
        lambda: tuple[AuthorsNote, ...],
        written=lambda notes: notes.given,
        made=lambda given: Notes(given),  # noqa: PLW0108 - the class does not exist yet
    )

    def origins_reading(self, name: str) -> list[str]:
        """Return the origins of the notes whose texts name this value."""
        members = self.compiled.members
        return [one.origin for one in members if one.template and name in one.template.names]

    @property
    def first_origin(self) -> str:
        """The origin of the first note that is used; "" if there is none."""
        return note_origin(self.notes[0], 0) if self.notes else ""


class ExpandedNote(NamedTuple):
    """An author's note in one turn: its fragment, or the verdict that says why there is none."""

    note: AuthorsNote
    made: Fragment | Verdict
    is_due: bool


def expand_notes(
    notes: Notes,
    filling: Filling,
    *,
    components: ComponentSet,
    lore: SpeechSources,
    history: History,
    said: int,
    cut: int,
) -> tuple[list[ExpandedNote], Filling]:
    """Expand the author's notes that are due in this turn.

    Args:
        notes: The notes.
        filling: The values that notes may name.
        components: The components next to which notes may be placed.
        lore: The outlets and variables of lore that depend on what is said.
        history: The messages that the prompt may show.
        said: The number of messages of role user.
        cut: The index at which the previous prompt cut the history.

    Returns:
        The notes, and the filling with the work that they used.
    """
    if not notes.notes:
        return [], filling
    expanded: list[ExpandedNote] = []
    made_of_notes, left = notes.compiled.expand(filling)
    if left.left != filling.state.left:
        done = MacroState(work=left.work, work_contained=left.work_contained)
        filling = replace(filling, state=done)
    for index, made in enumerate(made_of_notes):
        note = notes.notes[index]
        verdict = verdict_if_not_due(note, index, history=history, said=said, cut=cut)
        placed = _at_its_place(
            made, notes, index, components=components, filling=filling, lore=lore
        )
        expanded.append(ExpandedNote(note, verdict or placed, verdict is None))
    return expanded, filling


def _at_its_place(
    made: Fragment | Verdict,
    notes: Notes,
    index: int,
    *,
    components: ComponentSet,
    filling: Filling,
    lore: SpeechSources,
) -> Fragment | Verdict:
    """Return a note's fragment, moved next to the component that the note names, if any."""
    note, member = notes.notes[index], notes.compiled.members[index]
    if not note.place or not isinstance(made, Fragment):
        return made
    shared = message_next_to(note, index, components=components)
    if shared is None:
        key = note.place.partition(" ")[2]
        placed = made._replace(
            note=f"there is no component {key} to be placed next to, so it is at its depth"
        )
    else:
        placed = _move_next_to(made, note, shared, filling.counter)
    inherited = components.dependences(lore)
    why = member.dependence(inherited.said, fields=inherited.fields)
    return restrict_fragment(placed, why, layout=filling.layout, counter=filling.counter)


def message_next_to(
    note: AuthorsNote, index: int, *, components: ComponentSet
) -> SharedMessage | None:
    """Return the message next to the component that an author's note names.

    Outside the history, the message has the note's role. Of several notes, the summary is the
    nearest to the component, then they follow in their order. Inside the history, the message has
    the role, depth and order of the component, and the summary is the farthest (SillyTavern 1.19).

    Returns None if the note names no component, or if that component is missing.
    """
    if not note.place:
        return None
    side, _, key = note.place.partition(" ")
    shared = components.next_to(key, side="before" if side == "before" else "after")
    if shared is None:
        return None
    is_inside = shared.depth is not None
    near = 0 if note.key == SUMMARY else index + 1
    number = near if (side == "before") is is_inside else _MOST_BESIDE - near
    role = shared.role if is_inside else note.role
    return replace(shared, key=f"{shared.key} {number:06}", role=role)


def _move_next_to(
    fragment: Fragment, note: AuthorsNote, shared: SharedMessage, counter: TokenCounter
) -> Fragment:
    """Return a note's fragment placed in this message instead of at a depth. It is cached."""
    known = fragment.message.memo.get(_BESIDE)
    if known is not None and known[0] == shared:
        return known[1]
    claim = Claim(
        origin=fragment.claim.origin,
        id=shared.id,
        key=shared.key,
        role=shared.role,
        depth=shared.depth,
        order=shared.order,
        revision=note.revision,
        priority=fragment.claim.priority,
    )
    made = make_fragment(fragment.message.content, claim, counter=counter, note=fragment.note)
    fragment.message.memo[_BESIDE] = (shared, made)
    return made


def expand_notes_again(
    expanded: Sequence[ExpandedNote],
    notes: Notes,
    filling: Filling,
    store: MacroStore,
    *,
    components: ComponentSet,
    lore: SpeechSources,
) -> Sequence[ExpandedNote]:
    """Expand notes that use variables or outlets again, after all components have set variables.

    The first expansion is before that of lore and components, because notes may activate lore.
    """
    members = notes.compiled.members
    if not any(one.is_due and members[i].reads_later_texts for i, one in enumerate(expanded)):
        return expanded
    made: list[ExpandedNote] = []
    for index, (one, member) in enumerate(zip(expanded, members, strict=True)):
        if one.is_due and member.reads_later_texts:
            again = member.expand_into(filling, store)
            again = _at_its_place(
                again, notes, index, components=components, filling=filling, lore=lore
            )
            made.append(one._replace(made=again))
        else:
            made.append(one)
    return made


def note_origin(note: AuthorsNote, index: int) -> str:
    """Return the name of an author's note in the trace."""
    return f"note:{note.key or index}"


def verdict_if_not_due(
    note: AuthorsNote, index: int, *, history: History, said: int, cut: int
) -> Verdict | None:
    """Return the verdict that an author's note is not due in this turn; None if it is due."""
    if note.is_tail and note.every:
        return _tail_not_due(note, index, history=history, said=said, cut=cut)
    if note.is_due(said):
        return None
    every = f"due every {note.every} messages of role user, {said} were said"
    reason = every if note.every else "never due: every is 0"
    return not_expanded(note_origin(note, index), reason)


def _tail_not_due(
    note: AuthorsNote, index: int, *, history: History, said: int, cut: int
) -> Verdict | None:
    """Return the verdict that a note of the mode "tail" is not due; None if it is due.

    Such a note is not due while the history still has it, or before its first time.
    """
    origin, every = note_origin(note, index), f"due every {note.every} messages of role user"
    at = history.newest_staying(origin, first=max(cut, history.earlier))
    if at is None:
        if said >= note.every:
            return None
        return not_expanded(origin, f"{every}, {said} were said")
    since = history.users_from(at)
    revisions = {part.revision for part in history[at].parts if part.origin == origin}
    if since >= note.every or revisions - {note.revision}:
        return None
    reason = f"already in the history; {every}, {since} were said since"
    return Verdict(stage="expand", item=origin, kept=True, reason=reason)


def _component(note: AuthorsNote, index: int) -> PromptComponent:
    """Return an author's note as a component that is placed in the history."""
    return PromptComponent(
        id=HISTORY_ID,
        key=f"note_{note.key or index}",
        content=note.content,
        role=note.role,
        injection_depth=note.injection_depth,
        injection_order=note.order,
        placement="history",
        trust=note.trust,
        when=note.when,
        revision=note.revision,
    )
