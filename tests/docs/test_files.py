"""Test that files shown on pages are read without problems by the programs that use them."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.template.backends.django import DjangoTemplates

from evennia_ai.apps import TEMPLATES
from evennia_ai.engine.foreign.documents import write_yaml
from evennia_ai.engine.knowledge.assembly.config import AssemblyRules, apply_config_page
from evennia_ai.engine.knowledge.pages.markup import read_page
from evennia_ai.engine.knowledge.pages.page import page_name
from evennia_ai.formats.cards.card import read_card
from evennia_ai.formats.kept import parse_case
from evennia_ai.formats.lorebooks.books import read_book
from evennia_ai.formats.lorebooks.extension import read_own
from evennia_ai.formats.presets.reading import read_preset
from evennia_ai.formats.scenario import run_scenario
from evennia_ai.npc.views.edits import read_edit_file
from evennia_ai.services.llm.clients.scripted import read_script
from tests.acceptance.model_router import PAGE, Router
from tests.docs.fences import ROOT, Block, blocks
from tests.services.wiki.real_wiki import SETTINGS


def _config_page(data: Any) -> None:
    text = f"---\n{yaml.safe_dump(data)}---\n"
    _, warnings = apply_config_page(
        AssemblyRules(), read_page(page_name("Instructions:Config"), text)
    )
    assert warnings == ()


def _edit(folder: Path) -> None:
    """Check an edit together with the lorebook that it names."""
    shutil.copy(ROOT / "world" / "demo" / "lorebooks" / "harbour.json", folder / "harbour-2.json")
    read_edit_file(folder / "edit.yaml")


def _script(folder: Path) -> None:
    script = read_script(folder / "oren.yaml")
    assert script.in_order
    assert script.on_cue


NAMED: dict[str, Callable[[Path], object]] = {"edit.yaml": _edit, "world/oren.yaml": _script}
"""Functions that check a file with this name, in the folder of the file."""


def _book(data: Any) -> None:
    read_book(data)


def _compose(data: Any) -> None:
    """Check services with different GPUs behind a router that knows all of them."""
    models = {key: one for key, one in data["services"].items() if key != "router"}
    assert all(one["image"] and one["volumes"] for one in data["services"].values())
    assert data["services"]["router"]["depends_on"] == list(models)
    devices = [
        one["deploy"]["resources"]["reservations"]["devices"][0]["device_ids"]
        for one in models.values()
    ]
    assert devices == [[str(number)] for number in range(len(models))]


def _preset(data: Any) -> None:
    assert read_preset(data, name="Example").notices == ()


def _expectation(data: Any) -> None:
    """Check that a kept case of the demo may have this expectation."""
    [case] = (ROOT / "world" / "demo" / "kept").glob("ismay-the-candle.yaml")
    values = {**yaml.safe_load(case.read_text(encoding="utf-8")), **data}
    parse_case(write_yaml(values), where="the page")


def _workflow(data: Any) -> None:
    """Check the form of a workflow. A test of `evennia-ai check` runs its commands."""
    [job] = data["jobs"].values()
    assert all("uses" in step or "run" in step for step in job["steps"])


READERS: dict[str, Callable[[Any], object]] = {
    "spec": read_card,
    "evennia_ai": lambda data: read_own(data["evennia_ai"], where="extensions.evennia_ai"),
    "task_types": _config_page,
    "entries": _book,
    "history": run_scenario,
    "event": run_scenario,
    "components": run_scenario,
    "lorebooks": run_scenario,
    "prompts": _preset,
    "services": _compose,
    "expect": _expectation,
    "jobs": _workflow,
}
"""Functions that check a file, by a key that only this kind of file has."""


@pytest.mark.parametrize("block", blocks("file"), ids=lambda block: block.place)
def test_file_shown_on_a_page_is_valid_for_its_reader(block: Block, tmp_path: Path) -> None:
    if block.language == "markdown":
        page = read_page(page_name("Example"), block.text)
        assert page.body or page.meta.fields or page.meta.title
        return
    if block.name in NAMED:
        (tmp_path / Path(block.name).name).write_text(block.text, encoding="utf-8")
        NAMED[block.name](tmp_path)
        return
    data = json.loads(block.text) if block.language == "json" else yaml.safe_load(block.text)
    known = [key for key in READERS if key in data]
    assert known, f"{block.place}: no reader is known; write it into READERS"
    READERS[known[0]](data)


def test_look_on_the_page_sets_known_names_and_is_loaded_after_the_tokens(tmp_path: Path) -> None:
    style, template = (block.text for block in blocks("look"))
    tokens = TEMPLATES.parent / "static" / "evennia_ai" / "tokens.css"
    known = set(re.findall(r"--([a-z0-9-]+):", tokens.read_text(encoding="utf-8")))
    changed = re.findall(r"--([a-z0-9-]+):", style)
    assert changed
    assert set(changed) <= known
    (tmp_path / "evennia_ai").mkdir()
    (tmp_path / "evennia_ai" / "page.html").write_text(template, encoding="utf-8")
    options: dict[str, Any] = {"NAME": "game", "APP_DIRS": False, "OPTIONS": {}}
    engine = DjangoTemplates({**options, "DIRS": [tmp_path, TEMPLATES]})
    page = engine.get_template("evennia_ai/problem.html").render({"problem": "No."})
    sheets = re.findall(r'rel="stylesheet" href="([^"]+)"', page)
    assert [Path(one).name for one in sheets] == ["tokens.css", "pages.css", "ai.css"]


@pytest.mark.parametrize("block", blocks("wiki"), ids=lambda block: block.place)
def test_wiki_settings_on_the_page_equal_those_of_the_test_wiki(block: Block) -> None:
    assert [line for line in block.lines if line not in SETTINGS.splitlines()] == []


@pytest.mark.service
@pytest.mark.parametrize("block", blocks("router"), ids=lambda block: block.place)
def test_nginx_starts_with_the_configuration_on_the_page(block: Block, tmp_path: Path) -> None:
    assert block.page == PAGE.name
    with Router(tmp_path / "router", [f"127.0.0.1:{port}" for port in (1, 2, 3)]) as router:
        assert router.routed == []
