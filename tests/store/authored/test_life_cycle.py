"""Test what all kinds of authored things can do: revisions, reverts, removals, conflicts, rights.

The test module of each kind tests what only this kind does.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from evennia_ai.engine.actors import Actor, trusted
from evennia_ai.engine.errors import (
    EditConflictError,
    NotPermittedError,
    NotStoredError,
    StoreError,
)
from evennia_ai.engine.prompt.components import GAME, PromptComponent, Scope, of_npc
from evennia_ai.store.authored import cards, components, lorebooks, notes, presets
from evennia_ai.store.authored.life_cycle import Kind, with_values_before
from evennia_ai.store.core.snapshots import forget_everything

MIRA, TAM = trusted("Mira"), trusted("Tam")


@dataclass(frozen=True)
class Example:
    """A kind, and how to write one thing of it with a text."""

    kind: Kind[Any]
    write: Callable[[str, Actor], Any]
    text: Callable[[Any], str]
    key: str = "mood"
    scope: Scope = GAME


def write_component(text: str, by: Actor) -> Any:
    if components.COMPONENTS.current("mood"):
        return components.update("mood", content=text, by=by)
    return components.create(PromptComponent(id=1200, key="mood", content=text), by=by)


def write_preset(text: str, by: Actor) -> Any:
    number = presets.import_preset("mood", f'{{"text": "{text}"}}', by=by)
    return presets.PRESETS.approve("mood", number or 0, grants=frozenset(), by=by)


def in_json(value: Any) -> str:
    return str(value.source.removeprefix('{"text": "').removesuffix('"}'))


EXAMPLES = {
    "component": Example(components.COMPONENTS, write_component, lambda c: c.content),
    "component of a room": Example(
        components.COMPONENTS,
        lambda text, by: (
            components.update("mood", content=text, scope=Scope(kind="room", ref="3"), by=by)
            if components.COMPONENTS.current("mood", Scope(kind="room", ref="3"))
            else components.create(
                PromptComponent(
                    id=1200, key="mood", content=text, scope=Scope(kind="room", ref="3")
                ),
                by=by,
            )
        ),
        lambda c: c.content,
        scope=Scope(kind="room", ref="3"),
    ),
    "note": Example(
        notes.NOTES,
        lambda text, by: notes.set_note("12", "mood", content=text, by=by),
        lambda note: note.content,
        scope=of_npc("12"),
    ),
    "card": Example(
        cards.CARDS,
        lambda text, by: cards.save_card("mood", f'{{"text": "{text}"}}', by=by),
        in_json,
    ),
    "preset": Example(presets.PRESETS, write_preset, in_json),
    "lorebook": Example(
        lorebooks.LOREBOOKS,
        lambda text, by: lorebooks.save_book("mood", f'{{"text": "{text}"}}', by=by),
        in_json,
    ),
}
example_of_each_kind = pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)


def in_force(example: Example) -> Any:
    """Return the thing as the database has it now."""
    forget_everything()
    return example.kind.current(example.key, example.scope)


def written(example: Example) -> tuple[Any, Any]:
    """A thing with the text "calm" by Mira, then with "angry" by Tam."""
    return example.write("calm", MIRA), example.write("angry", TAM)


@example_of_each_kind
def test_change_is_a_revision_with_author_and_number(example: Example) -> None:
    first, second = written(example)
    changes = example.kind.revisions(example.key, scope=example.scope)
    made = [one for one in changes if one.takes_effect]

    assert [(one.number, one.changed_by) for one in made] == [
        (first.revision, "Mira"),
        (second.revision, "Tam"),
    ]
    assert [one.number for one in changes] == list(range(1, len(changes) + 1))
    assert made[1].changed_at >= made[0].changed_at > 0
    assert in_force(example) == second


@example_of_each_kind
def test_saving_the_current_value_makes_no_revision(example: Example) -> None:
    _, second = written(example)

    assert example.kind.revert(example.key, second.revision, by=MIRA, scope=example.scope) == second
    assert example.kind.newest_number(example.key, example.scope) == second.revision


@example_of_each_kind
def test_revert_makes_an_earlier_value_current_as_a_new_revision(example: Example) -> None:
    first, second = written(example)
    back = example.kind.revert(example.key, first.revision, by=MIRA, scope=example.scope)

    assert (example.text(back), back.revision) == ("calm", second.revision + 1)
    assert in_force(example) == back
    last = example.kind.revisions(example.key, scope=example.scope)[-1]
    assert (last.action, last.changed_by) == ("reverted", "Mira")


@example_of_each_kind
def test_removed_thing_is_gone_until_reverted(example: Example) -> None:
    first, second = written(example)
    example.kind.remove(example.key, by=TAM, scope=example.scope)

    assert in_force(example) is None
    assert example.key not in example.kind.list_keys(example.scope)
    last = example.kind.revisions(example.key, scope=example.scope)[-1]
    assert (last.action, last.after, last.takes_effect) == ("removed", None, False)
    back = example.kind.revert(example.key, first.revision, by=MIRA, scope=example.scope)
    assert (example.text(back), back.revision) == ("calm", second.revision + 2)
    assert in_force(example) == back


@example_of_each_kind
def test_removal_cannot_be_reverted_to(example: Example) -> None:
    _, second = written(example)
    example.kind.remove(example.key, by=TAM, scope=example.scope)

    with pytest.raises(StoreError, match="choose another revision"):
        example.kind.revert(example.key, second.revision + 1, by=MIRA, scope=example.scope)
    assert in_force(example) is None


@example_of_each_kind
def test_unknown_revision_error_names_the_known_numbers(example: Example) -> None:
    written(example)
    with pytest.raises(NotStoredError, match="with number 99; there are 1, 2"):
        example.kind.revert(example.key, 99, by=MIRA, scope=example.scope)


@example_of_each_kind
def test_nonexistent_thing_cannot_be_removed(example: Example) -> None:
    with pytest.raises(Exception, match="mood"):
        example.kind.remove(example.key, by=MIRA, scope=example.scope)
    assert example.kind.revisions(example.key, scope=example.scope) == ()


@example_of_each_kind
@pytest.mark.parametrize("verb", ["revert", "remove"])
def test_change_from_an_old_revision_is_refused_and_names_the_other_author(
    example: Example, verb: str
) -> None:
    first, second = written(example)
    given = {"number": first.revision} if verb == "revert" else {}

    with pytest.raises(EditConflictError, match="changed by Tam"):
        getattr(example.kind, verb)(
            example.key, **given, by=MIRA, scope=example.scope, seen_revision=first.revision
        )
    assert in_force(example) == second


@example_of_each_kind
def test_revert_of_a_removed_thing_requires_having_seen_the_removal(
    example: Example,
) -> None:
    first, second = written(example)
    example.kind.remove(example.key, by=TAM, scope=example.scope)
    newest = example.kind.newest_number(example.key, example.scope)

    with pytest.raises(EditConflictError):
        example.kind.revert(
            example.key,
            first.revision,
            by=MIRA,
            scope=example.scope,
            seen_revision=second.revision,
        )
    back = example.kind.revert(
        example.key, first.revision, by=MIRA, scope=example.scope, seen_revision=newest
    )
    assert in_force(example) == back


@example_of_each_kind
@pytest.mark.parametrize("verb", ["revert", "remove"])
def test_actor_without_rights_changes_nothing(example: Example, verb: str) -> None:
    first, second = written(example)
    demoted = Actor(name="Ida", why_not=lambda: "you are no builder any more")
    given = {"number": first.revision} if verb == "revert" else {}

    with pytest.raises(NotPermittedError, match="no builder any more"):
        getattr(example.kind, verb)(example.key, **given, by=demoted, scope=example.scope)
    assert in_force(example) == second
    assert example.kind.newest_number(example.key, example.scope) == second.revision


@example_of_each_kind
def test_revision_has_the_complete_value(example: Example) -> None:
    first, second = written(example)
    forget_everything()

    then = example.kind.then(example.key, first.revision, scope=example.scope)
    assert (example.text(then), then.revision) == ("calm", first.revision)
    before = example.kind.revision_before(example.key, second.revision, scope=example.scope)
    assert before is not None
    assert before.number == first.revision


def test_revisions_of_different_kinds_with_one_name_are_separate() -> None:
    written(EXAMPLES["card"])
    written(EXAMPLES["lorebook"])
    cards.CARDS.remove("mood", by=TAM)

    assert lorebooks.LOREBOOKS.newest_number("mood") == 2
    assert in_force(EXAMPLES["lorebook"]) is not None


def test_revision_after_a_removal_replaces_nothing() -> None:
    example = EXAMPLES["note"]
    written(example)
    notes.NOTES.remove("mood", by=TAM, scope=example.scope)
    example.write("glad", MIRA)
    pairs = with_values_before(notes.NOTES.revisions("mood", scope=example.scope))

    assert [(before and before.number, one.number) for before, one in pairs] == [
        (None, 1),
        (1, 2),
        (2, 3),
        (None, 4),
    ]
