"""docs/build/tools.md lists every tool, and its examples work as it says."""

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from django.test import override_settings

from evennia_ai.npc.tools.registry import registry_of
from tests.npc.tools.acting import does

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "build" / "tools.md").read_text(
    encoding="utf-8"
)
EXAMPLE = re.compile(r"^```python(?: world/tools\.py)?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ROW = re.compile(r"^\| `(\w+)`[^|]*?( \(dangerous\))? \|", re.MULTILINE)


def example(part: str) -> str:
    (text,) = [text for text in EXAMPLE.findall(PAGE) if part in text]
    return text


@pytest.fixture
def page_tools(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the example tool as a module that settings can name."""
    module = ModuleType("tools_of_the_page")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(example("class PayOut"), "docs/build/tools.md", "exec"), module.__dict__)
    with override_settings(EVENNIA_AI_TOOLS=["tools_of_the_page.PayOut"]):
        yield module


def test_tools_page_lists_every_tool_and_whether_it_is_dangerous() -> None:
    told = {name: bool(danger) for name, danger in ROW.findall(PAGE)}
    tools = registry_of(()).tools
    assert told == {name: one.tool.dangerous for name, one in tools.items()}


def test_example_tool_of_the_page_pays(stage: Any, page_tools: Any) -> None:
    stage.npc.db.purse = 12
    ran = does(stage, "pay_out", to="Anna", coins=5)
    assert ran.text == "You paid 5 coins to Anna."
    assert (stage.npc.db.purse, stage.anna.db.purse) == (7, 5)
    assert stage.screen_of(stage.anna) == ["You get 5 coins."]


def test_example_tool_of_the_page_refuses_an_impossible_payment(
    stage: Any, page_tools: Any
) -> None:
    assert does(stage, "pay_out", to="Anna", coins=5).text == "Your purse is empty."
    stage.npc.db.purse = 3
    assert does(stage, "pay_out", to="Anna", coins=5).text == "You have 3 coins."
    assert does(stage, "pay_out", to="Cara", coins=1).text == "There is no 'Cara' here."


def test_example_bell_of_the_page_can_be_used(stage: Any) -> None:
    from evennia.objects.objects import DefaultObject

    made: dict[str, Any] = {"Object": type("Object", (), {})}
    exec(compile(example("class Bell"), "docs/build/tools.md", "exec"), made)
    bell = stage.make("bell", "evennia.objects.objects.DefaultObject")
    assert isinstance(bell, DefaultObject)
    bell.at_use = lambda user, target: made["Bell"].at_use(bell, user, target)
    assert does(stage, "use", item="bell").text == "You hear it far over the water."
    assert stage.screen_of(stage.anna) == ["The bell rings."]
