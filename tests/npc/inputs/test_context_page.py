"""docs/extend/dynamic-context.md: its example runs, and its table lists every provider."""

import re
from pathlib import Path

import pytest

from evennia_ai.npc.inputs.providers import SHIPPED
from evennia_ai.services.settings.game import SETTINGS

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "extend" / "dynamic-context.md").read_text(
    "utf-8"
)


def test_page_lists_all_providers_and_marks_those_that_are_on_by_default() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .+ \| (yes|no)[^|]* \|$", PAGE, re.MULTILINE)
    default = SETTINGS["context_providers"].default
    assert sorted(name for name, _ in rows) == sorted(SHIPPED)
    assert [name for name, asked in rows if asked == "yes"] == default


@pytest.mark.parametrize(
    ("weather", "told"), [("fog", "Who speaks: Anna (Player).\n\nWeather: fog."), (None, None)]
)
def test_example_provider_of_the_page_adds_the_weather(stage, tmp_path, monkeypatch, weather, told):
    code = re.search(r"^```python\n(# world/context\.py\n.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    (tmp_path / "context_of_the_page.py").write_text(code[1])
    monkeypatch.syspath_prepend(tmp_path)
    if weather:
        stage.room.attributes.add("weather", weather)
    names = ("speaker", "context_of_the_page.weather")
    model = stage.talks_with("Aye.", context_providers=names)
    stage.says(stage.anna, "Oren?")
    facts = next(m.content for m in model.requests[0].messages if "Who speaks" in m.content)
    assert facts == (told or "Who speaks: Anna (Player).")
