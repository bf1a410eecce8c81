"""Edits tried out on past turns: what each would have changed. Nothing is stored."""

import json
import tracemalloc

import pytest
from twisted.internet.task import Clock

from evennia_ai import models
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import FormatError
from evennia_ai.npc.views.edits import AsOfToday, read_edit, read_edit_file
from evennia_ai.npc.views.recomposing import PastReader, compare_turn, see_all
from evennia_ai.store.authored import components, notes
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.history.past_turns import turns_in_order
from tests.npc.conftest import Stage
from tests.npc.scripted_games import CARD, an_entry, edit_everything, furnish, play


@pytest.fixture(scope="module")
def _talk(world, _cast):
    """Play a few turns once for all tests of this file. The tests only read them."""
    with world():
        stage = Stage(Clock(), _cast)
        stage.room.db.desc = "Planks, ropes and fog."
        furnish(stage)
        stage.talks_with(lambda request: f"Aye, {len(request.messages)}.")
        play(stage, rounds=1)
        stage.running.install(None)
        forget_everything()
        yield


@pytest.fixture
def played(_talk, stage):
    return stage


def with_edit(stage, edit):
    reader = PastReader()
    return [compare_turn(turn, edit, reader, see_all) for turn in turns_in_order(stage.npc.ai.ref)]


def edited(stage, folder, **keys):
    return with_edit(stage, read_edit(keys, folder=folder))


def changed_lines(comparison):
    return [line for one in comparison.differences for line in one.lines]


def test_edited_component_keeps_the_fields_that_the_edit_does_not_name(played, tmp_path):
    found = edited(played, tmp_path, components=[{"key": "spare", "content": "Be gruff."}])
    assert {one.outcome for one in found} == {"changed"}
    for one in found:
        # The old text named the speaker, so it was placed after the history.
        lines = changed_lines(one)
        assert "+ Be gruff." in lines
        assert any(line.startswith("- Speak as to") for line in lines)


def test_new_component_is_added_without_other_changes(played, tmp_path):
    new = {"key": "oath", "content": "By the tide.", "id": 4999, "placement": "ordered"}
    for one in edited(played, tmp_path, components=[new]):
        assert one.outcome == "changed"
        assert changed_lines(one)[-1] == "+ By the tide."
        assert not [line for line in changed_lines(one) if line.startswith("-")]


def test_edited_lorebook_changes_only_turns_with_its_keys(played, tmp_path):
    book = {"name": "secrets", "book": {"entries": [an_entry("lamp", "Anna sold the lamp.")]}}
    found = edited(played, tmp_path, lorebooks=[book])
    outcomes = [one.outcome for one in found]
    assert "changed" in outcomes and "unchanged" in outcomes
    assert "unknown" not in outcomes
    for one in found:
        if one.outcome == "changed":
            assert [line for line in changed_lines(one) if "sold the lamp" in line]


def test_new_lorebook_of_a_file_applies_in_all_turns(played, tmp_path):
    (tmp_path / "gulls.json").write_text(
        json.dumps({"entries": [an_entry("", "Gulls everywhere.", keys=[], constant=True)]})
    )
    (tmp_path / "edit.yaml").write_text("lorebooks: [gulls.json]\n")
    found = with_edit(played, read_edit_file(tmp_path / "edit.yaml"))
    assert {one.outcome for one in found} == {"changed"}
    assert all("Gulls everywhere." in " ".join(changed_lines(one)) for one in found)


def test_edited_card_replaces_the_earlier_card_and_keeps_its_grants(played, tmp_path):
    data = {**CARD, "nickname": "Ned", "description": "{{char}} is new."}
    card = {"spec": "chara_card_v3", "spec_version": "3.0", "data": data}
    for one in edited(played, tmp_path, card=card):
        assert one.outcome == "changed"
        assert "+ Ned is new." in changed_lines(one)


def test_edited_notes_replace_the_earlier_notes(played, tmp_path):
    found = edited(played, tmp_path, notes=[{"content": "Whistle.", "depth": 0}])
    assert all("+ Whistle." in " ".join(changed_lines(one)) for one in found)
    assert any("- Be brief." in " ".join(changed_lines(one)) for one in found)


def test_edit_changes_only_the_lore_rules_that_it_names(played, tmp_path):
    found = edited(played, tmp_path, settings={"lore": {"recursive": False, "budget_tokens": 0}})
    assert {one.outcome for one in found} == {"changed"}
    assert {one.outcome for one in edited(played, tmp_path, settings={"lore": {}})} == {"unchanged"}


def test_edit_can_change_the_mode_of_notes_and_blocks(played, tmp_path):
    note = {"content": "Whistle.", "every": 1, "mode": "tail"}
    assert {one.outcome for one in edited(played, tmp_path, notes=[note])} == {"changed"}
    found = edited(played, tmp_path, settings={"blocks": "on_change"})
    assert "unknown" not in {one.outcome for one in found}


def test_outcome_is_unknown_with_a_reason_when_the_edit_does_not_fit(played, tmp_path):
    long = {"key": "system_prompt", "content": "word " * 9_000}
    for one in edited(played, tmp_path, components=[long]):
        assert one.outcome == "unknown"
        assert "system_prompt" in one.problem


@pytest.mark.req("S0-28")
@pytest.mark.parametrize(
    "edit",
    [
        {"components": [{"key": "system_prompt", "content": "Answer {{speaker}}."}]},
        {"components": [{"key": "brand_new", "content": "Answer {{speaker}}."}]},
        {"components": [{"key": "spare", "volatile": False}]},
    ],
    ids=["text", "new", "place"],
)
def test_edit_with_a_speaker_macro_before_the_history_is_refused(played, tmp_path, edit):
    for one in edited(played, tmp_path, **edit):
        assert one.outcome == "unknown"
        assert "is placed before the history, which must begin alike in every turn" in one.problem


def test_comparison_with_an_edit_stores_nothing(played, tmp_path):
    def rows():
        return [
            list(model.objects.order_by("pk").values_list())
            for model in (models.Component, models.Record, models.Turn, models.LoreState)
        ]

    before = rows()
    edited(played, tmp_path, components=[{"key": "spare", "content": "Be gruff."}])
    assert rows() == before
    assert components.registry().get("spare").content == "Speak as to {{speaker}}."


def test_as_of_today_changes_nothing_until_something_is_edited(played):
    assert {one.outcome for one in with_edit(played, AsOfToday())} == {"unchanged"}
    notes.set_note(played.npc.ai.ref, "gulls", by=trusted("editor"), content="No gulls.")
    found = with_edit(played, AsOfToday())
    assert all("No gulls." in " ".join(changed_lines(one)) for one in found)


def test_as_of_today_shows_all_later_edits(played):
    edit_everything(played)
    found = with_edit(played, AsOfToday())
    assert {one.outcome for one in found} == {"changed"}
    lines = " ".join(line for one in found for line in changed_lines(one))
    for text in ("Somebody else.", "New words.", "Never said.", "Ramble on."):
        assert text in lines


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ([], "the scenario: .* must be a mapping of components"),
        ({}, "changes nothing"),
        ({"component": []}, "unknown key 'component'; did you mean 'components'"),
        ({"components": [{"key": "x", "contents": "y"}]}, "did you mean 'content'"),
        ({"settings": {"lore": {"dept": 1}}}, "unknown setting dept"),
        ({"settings": {"user": "Ben"}}, "unknown key 'user'"),
        ({"lorebooks": ["nowhere.json"]}, "nowhere.json: cannot be read"),
        (
            {"components": [{"key": "x", "content": "y" * 50_001}]},
            r"components\[0\]: component 'x': has 50001 characters, and 50000 are the limit; split",
        ),
        ({"components": [{"key": "x", "content": "{% if %}"}]}, "component 'x': line 1: "),
        ({"notes": [{"content": "y" * 50_001}]}, r"notes\[0\]: the author's note: has 50001 chara"),
        ({"card": 7}, "a path or a card's object"),
        ({"notes": [{"content": "x", "role": "wizard"}]}, "one of system, user, assistant"),
    ],
)
def test_invalid_edit_raises_an_error_with_its_path(db, tmp_path, data, told):
    with pytest.raises(FormatError, match=told):
        read_edit(data, folder=tmp_path)


def test_invalid_edit_file_raises_an_error_with_its_name(db, tmp_path):
    path = tmp_path / "edit.yaml"
    path.write_text("components: 7\n")
    with pytest.raises(FormatError, match=r"edit\.yaml: components: 7 is not allowed"):
        read_edit_file(path)


@pytest.mark.long
def test_comparing_many_turns_uses_bounded_memory(played, tmp_path):
    last = models.Turn.objects.order_by("-number").first()
    copies = [
        models.Turn(
            npc_ref=last.npc_ref,
            number=last.number + more,
            conversation_id=last.conversation_id,
            event_record_id=last.event_record_id,
            state="done",
            manifest=last.manifest,
            prompt_sha256=last.prompt_sha256,
            tokens=last.tokens,
            created_at=last.created_at,
        )
        for more in range(1, 501)
    ]
    models.Turn.objects.bulk_create(copies, batch_size=500)
    edit = read_edit({"components": [{"key": "spare", "content": "Be gruff."}]}, folder=tmp_path)
    reader = PastReader()
    stream = (
        compare_turn(turn, edit, reader, see_all) for turn in turns_in_order(played.npc.ai.ref)
    )
    for _ in range(250):  # fill the caches before measuring
        next(stream)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        outcomes = {one.outcome for one in stream}
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert outcomes == {"changed"}
    assert grown < 500_000, grown
