"""Properties of all presets: nothing is lost, and an edit changes one value."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.prompt.components import ALL_GRANTS
from evennia_ai.formats.presets.export import FORMS, Form, convert_preset, dump_preset
from evennia_ai.formats.presets.mapping import preset_components
from evennia_ai.formats.presets.preset import OWN
from evennia_ai.formats.presets.reading import read_preset
from tests.formats.cards.test_read_in_part import ODD, spoilt
from tests.formats.presets.builders import a_file, a_prompt
from tests.formats.presets.differing import differences

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
# Each row is a field of a component, its member in a preset file, and a value that no generated
# prompt has.
EDITS: list[tuple[str, str, Any]] = [
    ("content", "content", "Something that nobody drew, at all and ever, in these forty."),
    ("name", "name", "A name that nobody drew, at all and ever, in these forty."),
    ("enabled", "enabled", None),
    ("injection_depth", "injection_depth", 77),
    ("injection_order", "injection_order", 777),
]


@st.composite
def files(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a preset file with random prompts, order and other members."""
    names = draw(st.lists(TEXTS.filter(bool), min_size=1, max_size=6, unique=True))
    names = [name for name in names if name not in OWN] or ["mine"]
    prompts = [
        a_prompt(
            name,
            draw(TEXTS),
            name=draw(TEXTS),
            role=draw(st.sampled_from(("system", "user", "assistant"))),
            injection_position=1,
            injection_depth=draw(st.integers(1, 5)),
            injection_order=draw(st.integers(0, 200)),
            kept=draw(VALUES),
        )
        for name in names
    ]
    listed = draw(st.permutations(["main", "scenario", *names, "dangling"]))
    unknown: dict[str, Any] = draw(
        st.dictionaries(st.sampled_from(("zebra", "x", "extra")), VALUES)
    )
    off = draw(st.lists(st.sampled_from(names)))
    return a_file(*prompts, before=listed, off=off, **unknown)


@given(file=files())
def test_any_preset_without_edits_is_exported_with_equal_values(file: dict[str, Any]) -> None:
    text = json.dumps(file)
    made = dump_preset(read_preset(text, name="Drawn"))
    assert json.dumps(json.loads(made)) == json.dumps(json.loads(text))


@given(file=files(), edit=st.sampled_from(EDITS), data=st.data())
def test_one_edit_of_any_preset_changes_one_value_of_the_export(
    file: dict[str, Any], edit: tuple[str, str, Any], data: st.DataObject
) -> None:
    field, member, value = edit
    preset = read_preset(file, name="Drawn")
    own = {one.key for one in preset.prompts if one.identifier not in OWN}
    components = preset_components(preset, grants=ALL_GRANTS)
    before = data.draw(st.sampled_from([one for one in components if one.key in own]))
    now = before.changed(**{field: not before.enabled if field == "enabled" else value})
    paths = differences(file, json.loads(dump_preset(preset, [now])))
    assert len(paths) == 1
    assert paths[0].endswith(f".{member}")


@given(data=VALUES)
def test_any_data_is_read_as_a_preset_or_refused(data: Any) -> None:
    for value in (data, {"prompts": data}, {"prompts": [], "prompt_order": data}):
        try:
            preset = read_preset(json.dumps(value), name="Any")
        except FormatError:
            continue
        assert json.loads(dump_preset(preset)) == json.loads(json.dumps(value))


@pytest.mark.parametrize("form", FORMS)
@given(
    file=spoilt(a_file(a_prompt("mine", "Be dry.", injection_depth=2), before=("main", "mine"))),
    identifier=ODD,
)
def test_preset_with_values_of_other_types_is_read_and_exported(
    form: Form, file: dict[str, Any], identifier: Any
) -> None:
    if isinstance(file["prompts"], list):
        file["prompts"].append({**a_prompt("odd"), "identifier": identifier})
    try:
        preset = read_preset(file, name="Spoilt")
    except FormatError:
        return
    assert preset_components(preset, grants=ALL_GRANTS)
    made = convert_preset(preset, form)
    assert read_preset(json.loads(json.dumps(made)), name="Again").order
