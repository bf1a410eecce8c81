"""Kept answers as one person may see them: keep a turn, check all, show, accept, foresee an edit.

Commands and pages call these functions. `npc/views/kept.py` makes and composes the cases.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from django.db import transaction
from evennia.objects.models import ObjectDB

from evennia_ai.engine.history.records import RecordKind
from evennia_ai.engine.history.turn.sending import storable_messages
from evennia_ai.engine.prompt.messages import messages_sha256
from evennia_ai.formats.kept import KeptCase, case_text
from evennia_ai.npc.mind.viewers import READS_WHISPERS, lock_allows, seer_for
from evennia_ai.npc.senses.presence import find_again
from evennia_ai.npc.views.kept import (
    CheckedCase,
    KeptCaseError,
    KeptChecker,
    ReadCase,
    case_files,
    free_path,
    kept_case,
    read_cases,
    write_whole,
)
from evennia_ai.npc.views.looking import past_inputs_for
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.history.past_turns import acts_of, replay_stored_turn
from evennia_ai.store.history.turns import StoredTurn

MOST_CASES: Final = 50
"""The most kept answers that the game checks at once. `evennia-ai check` has no limit."""
MOST_SECONDS: Final = 0.3
"""After so much processor time, the game checks no further kept answer."""
_UNSAFE: Final = re.compile(r"[^a-z0-9]+")
_MOST_NAME: Final = 60


def keep_turn(looker: Any, turn: StoredTurn, *, about: str) -> tuple[Path, KeptCase]:
    """Write a turn as a kept answer into a new file. Return the file and the kept answer.

    Raises:
        KeptCaseError: Something in it is hidden from `looker`, the turn cannot be replayed, or its
            inputs do not give the prompt that was sent.
        NotReadBackError: Some of its inputs can no longer be read back.
    """
    name = _key_of(turn.npc_ref)
    sent = replay_stored_turn(turn)
    if sent.problem:
        raise KeptCaseError(
            f"Turn {turn.number} cannot be replayed: {sent.problem}. Nothing was written."
        )
    seer, acts = seer_for(looker, turn.npc_ref), acts_of(turn)
    past = past_inputs_for(seer, turn)
    if past.hidden or seer.hides_some(acts):
        raise KeptCaseError(
            f"Turn {turn.number} of {name} has words, lore, memories or facts that locks hide"
            " from you. Nothing was written. A builder who may see them can keep it."
        )
    reply = "\n".join(one.body for one in acts if one.kind is RecordKind.ASSISTANT and one.body)
    case = kept_case(turn, past, about=about, reply=reply, name_of=_key_of)
    file = _UNSAFE.sub("-", f"{name} {about or turn.number}".lower()).strip("-")
    path = free_path(conf().kept_folder, file[:_MOST_NAME].strip("-") or "case")
    write_whole(path, case_text(case))
    return path, case


def _key_of(ref: str) -> str:
    """Return the name of an object as it is stored, "" if there is none."""
    rows = ObjectDB.objects.filter(pk=ref) if ref.isdecimal() else ObjectDB.objects.none()
    return str(rows.values_list("db_key", flat=True).first() or "")


def check_cases() -> tuple[list[CheckedCase], int]:
    """Return the kept answers of the game with their states, and the number of their files.

    Fewer are returned if there are too many to check at once. Do not call this in the reactor's
    thread, because it reads files.
    """
    cases, total = read_cases(conf().kept_folder, most=MOST_CASES)
    found: list[CheckedCase] = []
    for _ in check_each(cases, found):
        pass
    return found, total


def check_each(
    cases: Sequence[ReadCase], found: list[CheckedCase], *, only_changed: bool = False
) -> Iterator[None]:
    """Check a case in each step and add it to `found`, until the time is over."""
    checker, spent = KeptChecker(find_again), 0.0
    for path, case in cases:
        if spent > MOST_SECONDS:
            return
        begun = time.thread_time()  # a busy machine must not leave cases out
        found.append(checker.check_case(path, case, only_changed=only_changed))
        spent += time.thread_time() - begun
        yield


def check_named(name: str) -> CheckedCase | None:
    """Return the kept answer with this name and its state; None if there is none."""
    path = next((one for one in case_files(conf().kept_folder) if one.stem == name), None)
    return None if path is None else KeptChecker(find_again).check(path)


def refuse_hidden(looker: Any, found: CheckedCase) -> None:
    """Refuse to show or accept the prompt of a case that has texts hidden from `looker`.

    Raises:
        KeptCaseError: Something is hidden, or the case could not be composed.
    """
    case, inputs = found.case, found.inputs
    if case is None or inputs is None:
        raise KeptCaseError(f"{found.problem or found.name}. Nothing was changed.")
    is_private = case.conversation == "private"
    npc_ref = find_again(case.npc.name, case.npc.ref, True)
    if (is_private and not lock_allows(looker, READS_WHISPERS, "view")) or seer_for(
        looker, npc_ref
    ).seen(inputs).hidden:
        raise KeptCaseError(
            f"{found.name} has words, lore, memories or facts that locks hide from you. A builder"
            " who may see them can look at it and accept it. Nothing was changed."
        )


def accept_case(looker: Any, found: CheckedCase) -> None:
    """Write the prompt that a case gets now as what must hold of it.

    Raises:
        KeptCaseError: Its prompt is the one that was kept, or has texts hidden from `looker`.
    """
    if found.state == "same":
        raise KeptCaseError(f"{found.name} is the same as it was kept. Nothing was changed.")
    refuse_hidden(looker, found)
    KeptChecker(find_again).accept(found.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeseenEdit:
    """The kept answers whose prompts an edit would change, before the edit is made."""

    cases: tuple[CheckedCase, ...]
    """The cases that the edit gives another prompt, as they would be afterwards."""
    checked: int
    """How many cases were checked."""
    total: int
    """How many cases there are."""


def foresee_edit(edit: Callable[[], object]) -> ForeseenEdit:
    """Return the kept answers whose prompts an edit would change.

    The edit is made in a transaction that is rolled back, so `edit` may do anything that a
    transaction undoes. Do not call this in the reactor's thread, because it reads files.

    Raises:
        EvenniaAIError: `edit` was refused.
    """
    cases, total = read_cases(conf().kept_folder, most=MOST_CASES)
    after: list[CheckedCase] = []
    with transaction.atomic():
        edit()
        # A case whose texts all have the revisions as kept is not concerned by the edit.
        for _ in check_each(cases, after, only_changed=True):
            pass
        transaction.set_rollback(True)
    concerned = [one for one in after if one.prompt is not None]
    paths = {one.path for one in concerned}
    before: list[CheckedCase] = []
    for _ in check_each([one for one in cases if one[0] in paths], before):
        pass
    prompts = {one.path: _sent_sha256(one) for one in before}
    return ForeseenEdit(
        cases=tuple(
            one
            for one in concerned
            if one.path in prompts and prompts[one.path] != _sent_sha256(one)
        ),
        checked=len(after),
        total=total,
    )


def _sent_sha256(found: CheckedCase) -> str:
    """Return the hash of the messages of a case's prompt, "" if it was not composed."""
    prompt = found.prompt
    return "" if prompt is None else messages_sha256(storable_messages(prompt.messages))
