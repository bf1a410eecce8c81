"""The commands in docs/build/knowledge.md do what the page says."""

import re
from pathlib import Path

import pytest
from django.test import override_settings

from evennia_ai.store.knowledge import knowledge_bases as bases
from tests.commands.knowledge_bases import make_base, page
from tests.commands.stage import one_line

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = re.findall(
    r"^```\n(kb/.*?)^```$",
    (ROOT / "docs" / "build" / "knowledge.md").read_text(encoding="utf-8"),
    re.DOTALL | re.MULTILINE,
)
FIRST, FOLDERS, RESTRICTED = (
    [re.split(r"\s{3,}", line)[0] for line in block.splitlines() if not line.startswith(" ")]
    for block in BLOCKS
)


def test_documented_first_knowledge_base_can_be_created(stage):
    make, edit, *others = FIRST
    stage.builds(make, edit, "It was lit for nobody.", ":wq", *others)
    assert page("The Dry Lamp", base="lamps").body == "It was lit for nobody."
    assert bases.base_or_none("lamps").topics == ("lamps", "quay", "light")
    assert f"npc:#{stage.npc.id} (Oren)" in stage.builds("kb lamps")


def test_documented_demo_wiki_can_be_imported(stage):
    with override_settings(EVENNIA_AI_KNOWLEDGE_FOLDER=str(ROOT / "world/demo/knowledge")):
        for typed in FOLDERS:
            assert "harbour" in stage.builds(typed), typed
    assert bases.base_or_none("harbour").pages > 30


def test_documented_restriction_works(stage):
    make_base("secret", {})
    for typed in RESTRICTED:
        assert "secret" in one_line(stage.builds(typed)), typed
    assert bases.base_or_none("secret").restricted


@pytest.mark.parametrize("field", ["view", "search", "restricted"])
def test_documented_access_types_exist(stage, field):
    make_base()
    told = one_line(stage.builds(f"kb/set harbour/locks = {field}:perm(Builder)"))
    assert f"now: {field}:perm(Builder)." in told


def test_documented_help_backend_works(stage):
    stage.builds("kb/create manual", "kb/set manual/backend = help")
    assert "manual/Harbour, revision" in stage.builds("kb manual/harbour")
    assert "Harbour" in stage.builds("kb/pages manual/Har")
