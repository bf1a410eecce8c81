"""Kept answers: make one of a past turn, and compose its prompt with the game's present texts."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cache
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any, Final, Literal

from evennia_ai.engine.compose import compose_with_lore
from evennia_ai.engine.errors import EvenniaAIError, FormatError
from evennia_ai.engine.inputs import Inputs
from evennia_ai.engine.lorebook.book import names_of
from evennia_ai.engine.prompt.components import Scope
from evennia_ai.engine.prompt.prompt import Prompt
from evennia_ai.formats.kept import (
    KIND,
    SUFFIX,
    CaseChange,
    KeptCase,
    KeptScope,
    Named,
    accepted,
    case_text,
    expected_prompt,
    judge,
    kept_inputs,
    parse_case,
    read_case,
)
from evennia_ai.npc.views.edits import with_texts_of
from evennia_ai.npc.views.recomposing import PastInputs
from evennia_ai.npc.views.view import NPCView, revisions_of, sources_of, view_of
from evennia_ai.services.private_files import open_private
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.authored import contexts
from evennia_ai.store.history.turns import StoredTurn

State = Literal["same", "differs", "unreadable"]

Finder = Callable[[str, str, bool], str]
"""Returns the reference of an object by its name and the reference that it had, "" for none.

The third argument is True for an NPC."""

NameOf = Callable[[str], str]
"""Returns the name of the object with this reference, "" for none."""

_OBJECTS: Final = ("room", "npc")


class KeptCaseError(EvenniaAIError):
    """A case cannot be composed in this game, or cannot be kept. The message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCase:
    """A kept answer (test case), and how its prompt differs today."""

    name: str
    """The name of the file, without its suffix."""
    path: Path
    state: State
    case: KeptCase | None = None
    """The case, None if it cannot be read."""
    change: CaseChange | None = None
    """How its prompt differs, None if it does not."""
    problem: str = ""
    """Why it cannot be read or composed."""
    inputs: Inputs | None = None
    """The inputs with the texts of today, None if it was not composed."""
    prompt: Prompt | None = None
    """The prompt with the present texts; None if it was not composed."""


class KeptChecker:
    """Composes the prompts of kept answers with the game's present texts.

    Answers of one NPC share a view, which is made once.
    """

    def __init__(self, find: Finder) -> None:
        self._find = cache(find)
        self._views: dict[tuple[Any, ...], NPCView] = {}

    def check(self, path: Path, *, only_changed: bool = False) -> CheckedCase:
        """Read a kept answer from a file, and compare its prompt with what the file expects.

        Args:
            only_changed: Do not compose the case if all its texts have the same revisions as when
                the file was written.
        """
        try:
            case: KeptCase | FormatError = read_case(path)
        except FormatError as error:
            case = error
        return self.check_case(path, case, only_changed=only_changed)

    def check_case(
        self, path: Path, case: KeptCase | FormatError, *, only_changed: bool = False
    ) -> CheckedCase:
        """Check a case that was read from this file, or report why it cannot be read."""
        if isinstance(case, FormatError):
            return CheckedCase(name=path.stem, path=path, state="unreadable", problem=case.message)
        try:
            view, inputs = self._today(case)
            if only_changed and case.seen == _seen(view, inputs, case.context):
                return CheckedCase(name=path.stem, path=path, state="same", case=case)
            composition = compose_with_lore(inputs)
            change = judge(case.expect, composition, names=names_of(inputs.books))
        except EvenniaAIError as error:
            problem = f"{path}: cannot be composed: {error}"
            return CheckedCase(
                name=path.stem, path=path, state="unreadable", case=case, problem=problem
            )
        return CheckedCase(
            name=path.stem,
            path=path,
            state="same" if change is None else "differs",
            case=case,
            change=change,
            inputs=inputs,
            prompt=composition.prompt,
        )

    def accept(self, path: Path) -> KeptCase:
        """Write the prompt that a case gets now as its expectation. Return the new case.

        Raises:
            EvenniaAIError: The case cannot be read, composed or written.
        """
        case = read_case(path)
        view, inputs = self._today(case)
        composition = compose_with_lore(inputs)
        expect = accepted(case.expect, composition, names=names_of(inputs.books))
        changed = replace(case, expect=expect, seen=_seen(view, inputs, case.context))
        if changed != case:
            write_whole(path, case_text(changed))
        return changed

    def _today(self, case: KeptCase) -> tuple[NPCView, Inputs]:
        npc_ref = self._find(case.npc.name, case.npc.ref, True)
        if not npc_ref:
            raise KeptCaseError(
                f"the game must have exactly one NPC with the name '{case.npc.name}'; write the"
                " name and the number of an NPC into npc of the file"
            )
        scopes = tuple(self._scope(one, npc_ref) for one in case.scopes)
        key = (npc_ref, scopes, case.npc_tools, case.limit_tokens)
        if key not in self._views:
            sources = sources_of(
                npc_ref,
                scopes,
                facts={},
                conf=conf(),
                limit_tokens=case.limit_tokens,
                tools=case.npc_tools,
            )
            self._views[key] = view_of(case.npc.name, sources)
        view, speaker = self._views[key], case.speaker
        speaker_ref = self._find(speaker.name, speaker.ref, False) if speaker else ""
        base = case.inputs.inputs()
        return view, with_texts_of(view, base, context=case.context, speaker_ref=speaker_ref)

    def _scope(self, kept: KeptScope, npc_ref: str) -> Scope:
        ref = kept.ref
        if kept.kind == "npc":
            ref = npc_ref
        elif kept.kind == "room":
            ref = self._find(kept.name, kept.ref, False)
            if not ref:
                raise KeptCaseError(
                    f"the game must have exactly one room with the name '{kept.name}'; write the"
                    " name and the number of a room into scopes of the file"
                )
        return Scope(kind=kept.kind, ref=ref)


def _seen(view: NPCView, inputs: Inputs, context: str) -> dict[str, str]:
    """Return the revisions of all texts that a builder wrote and that may be in the prompt."""
    sources = view.sources
    components = {
        f"component:{one.key}@{one.scope.kind}": str(one.revision)
        for one in sources.registry.resolved(sources.scopes)
        if one.revision
    }
    notes = {f"note:{note.key}": str(note.revision) for note in sources.notes}
    off = contexts.context(context).off
    return {
        **components,
        **revisions_of(view, inputs.books),
        **notes,
        "left out": ", ".join(sorted(off)),
        "settings": _settings_sha256(view),
    }


def _settings_sha256(view: NPCView) -> str:
    """Return a short hash of the settings that prompts depend on."""
    rules = view.rules
    values = {
        **{one.name: getattr(rules, one.name) for one in fields(rules) if one.name != "dice"},
        "post_history_depth": view.sources.conf.post_history_depth,
    }
    return sha256(repr(values).encode()).hexdigest()[:12]


def kept_case(
    turn: StoredTurn, past: PastInputs, *, about: str, reply: str, name_of: NameOf
) -> KeptCase:
    """Return a past turn as a case that expects the whole prompt that was sent.

    Args:
        past: The inputs of the turn. Nothing in them may be hidden from the person who keeps it.

    Raises:
        KeptCaseError: The inputs of the case do not give the prompt that was sent.
    """
    sources, speaker_ref = past.view.sources, past.speaker_ref
    limit = past.inputs.rules.budget.limit_tokens
    case = KeptCase(
        about=about,
        npc=Named(name=name_of(past.npc_ref), ref=past.npc_ref),
        speaker=Named(name=name_of(speaker_ref), ref=speaker_ref) if speaker_ref else None,
        conversation=turn.conversation.kind,
        context=past.context,
        scopes=tuple(
            KeptScope(
                kind=one.kind, ref=one.ref, name=name_of(one.ref) if one.kind in _OBJECTS else ""
            )
            for one in sources.scopes
        ),
        limit_tokens=None if limit == conf().limit_tokens else limit,
        npc_tools=sources.tools,
        reply=reply,
        expect=expected_prompt(compose_with_lore(past.inputs)),
        inputs=kept_inputs(past.inputs),
        seen=_seen(past.view, past.inputs, past.context),
    )
    # The case is read back from its own text, so that nothing outside the file can count.
    read = parse_case(case_text(case), where="the case")
    alone = with_texts_of(
        past.view, read.inputs.inputs(), context=read.context, speaker_ref=speaker_ref
    )
    own = replace(
        alone,
        components=past.inputs.components,
        books=past.inputs.books,
        rules=past.inputs.rules,
        notes=past.inputs.notes,
    )
    if judge(read.expect, compose_with_lore(own), names={}) is not None:
        raise KeptCaseError(
            f"turn {turn.number} cannot be kept: composed from what a case has, its prompt differs"
            " from the one that was sent"
        )
    return read


ReadCase = tuple[Path, KeptCase | FormatError]
"""The file of a case, and the case, or why it cannot be read."""

_parsed: Final[dict[Path, tuple[tuple[int, int], KeptCase | FormatError]]] = {}
"""The cases that `read_cases` has read, with the time and the size of their files."""


def read_cases(folder: Path, *, most: int) -> tuple[list[ReadCase], int]:
    """Read the cases of a folder, at most so many. Return them and how many files there are.

    Any thread may call this: it needs no database. A file that did not change is not read again.
    """
    files = case_files(folder)
    for gone in _parsed.keys() - set(files):
        _parsed.pop(gone, None)
    return [(path, _case_in(path)) for path in files[:most]], len(files)


def _case_in(path: Path) -> KeptCase | FormatError:
    try:
        there = path.stat()
        stamp = (there.st_mtime_ns, there.st_size)
        if path in _parsed and _parsed[path][0] == stamp:
            return _parsed[path][1]
        case: KeptCase | FormatError = read_case(path)
    except FormatError as error:
        case = error
    except OSError as error:
        return FormatError(KIND, f"{path}: cannot be read: {error.strerror}")
    _parsed[path] = (stamp, case)
    return case


def case_files(folder: Path) -> list[Path]:
    """Return the files of the kept answers in a folder, sorted by name."""
    return sorted(folder.glob(f"*{SUFFIX}"))


def free_path(folder: Path, name: str) -> Path:
    """Return the path of a new case in this folder, which is made if it does not exist.

    Raises:
        FormatError: The folder cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FormatError(KIND, f"{folder}: cannot be made: {error.strerror}") from error
    names = (name if number == 1 else f"{name}-{number}" for number in count(1))
    return next(path for one in names if not (path := folder / f"{one}{SUFFIX}").exists())


def write_whole(path: Path, text: str) -> None:
    """Write a file so that it has either its old or its new content, also after a crash.

    Raises:
        FormatError: It cannot be written.
    """
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        with open(unfinished, "w", encoding="utf-8", newline="", opener=open_private) as file:
            file.write(text)
        unfinished.replace(path)
    except OSError as error:
        with suppress(OSError):
            unfinished.unlink()
        raise FormatError(KIND, f"{path}: cannot be written: {error.strerror}") from error
