"""Hostile names from a builder's client: each is answered in words, and markup has no effect."""

import pytest
from django.test import override_settings

NAMES = [
    "|lclook|ltgo|le",
    "{x} $py(1)",
    "a" * 300,
    "\u202eabc",
    "a\x00b",
    "\ud800x",
    "../up",
    "a#b",
    "a/b",
    "%s{0}",
    "..",
    "|",
    "龙" * 100,
    "off",
]
TYPED = (
    "lore/create {0}/e = {0}: {0}",
    "lore {0}",
    "lore/keys {0}/{0} = {0}",
    "lore/set {0}/e = when {0} is {0}",
    "lore/set {0}/e = group {0}",
    "lore/position {0}/e = outlet:{0}",
    "lore/lock {0} = {0}",
    "lore/lock {0} = view:{0}()",
    "lore/export {0}",
    "lore/import {0}",
    "lore/assign {0} = {0}",
    "lore/assign {0} = player:{0}",
    "lore/lint {0}",
    "lore/test Oren = {0}",
    "lore/why Oren = {0}",
    "lore/revisions {0}",
    "lore/revert {0} = 1",
    "component/preview Oren = {0}",
    "kb/create {0} = {0}",
    "kb/create wiki",
    "kb {0}",
    "kb/pages wiki/{0}",
    "kb/search wiki = {0}",
    "kb wiki/{0}",
    "kb {0}/{0}/1",
    "kb/links wiki/{0}",
    "kb/requires wiki/{0}",
    "kb/set wiki/{0} = {0}",
    "kb/set wiki/summary = {0}",
    "kb/set wiki/keywords = {0}, {0}",
    "kb/set wiki/locks = view:{0}()",
    "kb/assign wiki = {0}",
    "kb/assign wiki = zone:{0}",
    "kb/rename wiki/{0} = {0}",
    "kb/lock wiki/{0} = {0}",
    "kb/revisions wiki/{0}",
    "kb/revert wiki/{0} = 1",
    "kb/import {0}",
    "kb/import/run {0} = {0}",
    "kb/draft {0}",
    "kb/approve {0}",
    "kb/vault wiki = {0}",
    "kb wiki",
    "preset {0}",
    "preset/import {0} = {0}",
    "preset/report {0}",
    "preset/approve {0} = {0}",
    "preset/assign {0} = {0}",
    "preset/assign {0} = zone:{0}",
    "preset/unassign {0}",
    "preset/switch {0} = {0}",
    "preset/export {0}/1",
    "preset/revisions {0} = {0}",
    "preset/revert {0} = 1",
)


@pytest.mark.long
@pytest.mark.parametrize("number", range(len(NAMES)), ids=lambda number: ascii(NAMES[number]))
def test_hostile_name_gets_a_readable_answer(stage, tmp_path, number):
    """Use every name with half of the lines, and every line with half of the names."""
    name = NAMES[number]
    folder = tmp_path / "cards"
    folder.mkdir()
    kinds = ("CARD", "KNOWLEDGE", "PRESET")
    folders = {f"EVENNIA_AI_{kind}_FOLDER": str(folder) for kind in kinds}
    with override_settings(**folders):
        for typed in TYPED[number % 2 :: 2]:
            sent = stage.sent(stage.builder, typed.replace("{0}", name))
            assert "Traceback" not in sent, typed
            assert "|lc" not in sent.replace("||lc", ""), typed
            assert "\x00" not in sent, typed
    assert [path.name for path in tmp_path.iterdir()] == ["cards"]


def test_file_name_outside_of_the_folder_is_not_read(stage, tmp_path):
    folder = tmp_path / "cards"
    folder.mkdir()
    (tmp_path / "out.json").write_text('{"entries": []}')
    (folder / "link.json").symlink_to(tmp_path / "out.json")
    (folder / "loop.json").symlink_to(folder / "loop.json")
    with override_settings(EVENNIA_AI_CARD_FOLDER=str(folder)):
        for name in ("link", "loop", "../out", str(tmp_path / "out.json"), "a" * 5000):
            assert "Imported" not in stage.builds(f"lore/import {name} = taken")
    assert "There is no lorebook" in stage.builds("lore taken")
