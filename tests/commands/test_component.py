"""The command `component`, from the typed line to the stored components."""

import pytest

from evennia_ai import models
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.prompt.components import Scope
from evennia_ai.store.authored import components as store
from evennia_ai.store.core.snapshots import forget_everything
from tests.commands.stage import Stage, component, everything, hearing, on_screen, one_line

# Each typed line must change no component and say one line that contains the text next to it.
BAD_INPUT = {
    "component/depth mood = -1": "whole number, 0 or more",
    "component/depth mood = 2.5": "whole number, 0 or more",
    "component/depth mood = two": "normal or bottom",
    "component/depth mood =": "whole number, 0 or more",
    "component/depth mood = ２": "whole number, 0 or more",
    "component/depth mood = 1e3": "whole number, 0 or more",
    "component/depth mood = 4000000000": "whole number, 0 or more",
    "component/depth mood = " + "9" * 5000: "whole number, 0 or more",
    "component/depth nobody = 2": "no component 'nobody'",
    "component/depth": "Usage",
    "component/depth = 2": "Usage",
    "component/depth tool_result = 2": "static",
    "component/depth mood@npc:nobody = 2": "no NPC called 'nobody'",
    "component/depth mood@npc:Pim = 2": "has no mind",
    "component/depth mood@moon = 2": "Places for a component are game",
    "component/depth mood@zone = 2": "zone:<tag>",
    "component/depth mood@npc:Oren = 2": "no component 'mood'",
    "component/depth @room = 2": "Name a component",
    "component/order mood = 1.5": "whole number",
    "component/order mood = high": "whole number",
    "component/order mood =": "whole number",
    "component/order nobody = 2": "no component 'nobody'",
    "component/order pending_event = 2": "static",
    "component/role mood = wizard": "one of system, user, assistant, tool",
    "component/role goals = user": "static",
    "component/move mood": "Usage",
    "component/move mood = 4000": "already taken",
    "component/move mood = 10000": "0 to 9999",
    "component/move mood = -4": "whole number, 0 or more",
    "component/move mood = here": "whole number, 0 or more",
    "component/move goals = 4001": "static",
    "component/remove goals": "static",
    "component/remove nobody": "no component 'nobody'",
    "component/remove": "Usage",
    "component/on mood = yes": "no '='",
    "component/off": "Usage",
    "component/off nobody": "no component 'nobody'",
    "component/create mood = 1300: Again.": "already taken",
    "component/create moss = 1200: Here too.": "already taken",
    "component/create moss = 4000: Here too.": "already taken",
    "component/create Moss = 1300: Big letter.": "slug",
    "component/create moss moss = 1300: Blank.": "slug",
    "component/create moss = 1300, wizard: Hm.": "one of system",
    "component/create moss = 13OO: Hm.": "whole number, 0 or more",
    "component/create moss = 1300 system: Hm.": "Usage",
    "component/create": "Usage",
    "component/create moss = 1300: {% for x in y %}": "line 1",
    "component/create moss = 1300: {% for x in char %}{% endfor %}": "write each case out",
    "component/create moss = 1300: {{ char['format'] }}": "line 1: [...] after a value is not",
    "component/create moss = 1300: {{ " + "9" * 4900 + " }}": "a number has more than 18 digits",
    "component/create moss = 1300: {% if 1 %}" + "{% elif 1 %}" * 400: "split it into several",
    "component/create moss = 1300: {{ " + "[" * 400 + " }}": "brackets are nested deeper than 20",
    "component/create moss = 1300: {{ " + "not " * 400 + "1 }}": "is nested deeper than 50 levels",
    "component/revert mood = 99": "no revision",
    "component/revert mood = x": "whole number",
    "component/revert mood": "Usage",
    "component/revert nobody = 1": "no component 'nobody'",
    "component/revisions nobody": "no component 'nobody'",
    "component/preview": "Usage",
    "component/preview nobody": "no NPC called 'nobody'",
    "component/preview Pim": "has no mind",
    "component/edit nobody": "no component 'nobody'",
    "component nobody": "no component 'nobody'",
    "component mood = 2": "Nothing was changed",
}
MISSPELT = (
    "component/detph mood = 2",
    "component/dept/order mood = 2",
    "component/re mood",
    "component/rev mood = 1",
    "component/o mood",
    "component/ mood = 2",
    "component//depth mood = 2",
    "component /depth mood = 2",
    "component/depthh mood = 2",
    "component/create/edit mood2 = 1400: Hm.",
    "component/delete mood",
)


def test_bad_input_gets_one_clear_line_and_changes_nothing(stage, mood):
    before = everything()
    for typed, words in BAD_INPUT.items():
        assert words.lower() in one_line(stage.builds(typed)).lower(), typed
        assert everything() == before, typed


def test_a_misspelt_switch_changes_nothing_and_names_the_switches(stage, mood):
    before = everything()
    for typed in MISSPELT:
        assert "/" in one_line(stage.builds(typed)), typed
        assert everything() == before, typed


def test_a_switch_may_be_shortened_where_only_one_begins_so(stage, mood):
    stage.builds("comp/dep mood = 3")
    assert component("mood").injection_depth == 3


@pytest.mark.req("S3-21")
@pytest.mark.parametrize("switch", ["depth mood = 2", "order mood = 5", "off mood"])
def test_change_is_refused_if_another_process_changed_the_component(stage, mood, switch):
    assert component("mood").revision == 1
    # Change only the row, not the counter that tells this process to read it again.
    models.Component.objects.filter(key="mood").update(content="Tam's words.", revision=2)
    assert "was changed" in one_line(stage.builds(f"component/{switch}"))
    forget_everything()
    now = component("mood")
    assert (now.content, now.revision) == ("Tam's words.", 2)
    assert (now.injection_depth, now.injection_order, now.enabled) == (0, 100, True)


@pytest.mark.req("S3-21")
def test_create_stores_what_was_typed(stage):
    told = stage.builds("component/create tide = 1201, user: It is = 3: low tide, {{user}}.")
    made = component("tide")
    assert (made.id, made.role, made.content) == (
        1201,
        "user",
        "It is = 3: low tide, {{user}}.",
    )
    assert (made.injection_depth, made.injection_order, made.placement) == (0, 100, "ordered")
    assert "tide (1201)" in told


@pytest.mark.parametrize(
    "text",
    [
        "{{random:a,b}}",
        "{{weather}}",
        "{{roll:1d6}}, {{char}}: hush",
        "Foggy.",
        "fog",
        "Fog: thick, user: none",
        "user: It rains.",
        "12 ravens sit on the mast: watch them.",
        "3 o'clock",
        "{% if 1 %}x{% endif %}",
        "http://harbour:80/, x: y",
        "ж: x",
    ],
)
def test_create_without_leading_id_takes_all_as_text(stage, text):
    told = one_line(stage.builds(f"component/create fog = {text}"))
    assert component("fog").content == text, told


@pytest.mark.parametrize(
    ("typed", "made"),
    [
        ("1201", (1201, "system", "")),
        ("1201: 7: bells", (1201, "system", "7: bells")),
        (": 7: bells", (None, "system", "7: bells")),
        (", user: {{random:a,b}}", (None, "user", "{{random:a,b}}")),
        ("1201, user", (1201, "user", "")),
    ],
)
def test_create_reads_id_and_role_before_the_first_colon(stage, typed, made):
    stage.builds(f"component/create fog = {typed}")
    fog = component("fog")
    assert (made[0] or fog.id, made[1], made[2]) == (fog.id, fog.role, fog.content)


@pytest.mark.parametrize("typed", ["12a: x", "1.5: x", "-5: x", "1e3: x", "7th"])
def test_create_explains_how_a_text_can_begin_like_an_id(stage, typed):
    before = everything()
    told = one_line(stage.builds(f"component/create fog = {typed}"))
    assert (
        "The ID must be a whole number" in told
        and "If this is the text, put a colon before it" in told
    )
    assert everything() == before


def test_create_warns_of_an_unknown_name_in_the_text(stage):
    told = stage.builds("component/create tide = 1301: The tide is {{tide}}, {{char}}.")
    assert "No value is called {{tide}}, so the name itself is sent" in told
    assert "Nothing is called" not in stage.builds("component/create sea = 1303: Hail, {{user}}.")
    assert "Nothing is called" not in stage.builds("component/create isle = 1304: {{outlet::news}}")


def test_component_create_without_an_id_takes_a_free_id_and_shows_it(stage, mood):
    told = stage.builds("component/create smell = {{char}} smells the sea.")
    assert "Created smell (1210), role system; component/move gives it another ID." in told
    assert component("smell").content == "{{char}} smells the sea."
    stage.builds("component/create sound = , user: Gulls cry: often.")
    assert (component("sound").id, component("sound").role) == (1220, "user")
    assert component("sound").content == "Gulls cry: often."


def test_create_with_only_a_key_opens_the_editor(stage):
    stage.builds("component/create tide", "Low tide.", ":wq")
    assert (component("tide").id, component("tide").content.strip()) == (1200, "Low tide.")


@pytest.mark.parametrize(
    ("switch", "value", "told", "field"),
    [
        ("name", "The mood", "Name before: none; now: The mood.", "name"),
        ("description", "How it feels.", "now: How it feels.", "description"),
        ("priority", "-5", "Priority before: 100; now: -5.", "priority"),
        ("required", "yes", "Required before: no; now: yes.", "required"),
    ],
)
def test_each_field_is_changed_and_shown(stage, mood, switch, value, told, field):
    assert told in stage.builds(f"component/{switch} mood = {value}")
    assert str(getattr(component("mood"), field)) in (value, "True")
    shown = one_line(stage.builds(f"component/{switch} mood"))
    assert value in shown or shown == "mood is required."


def test_static_component_can_be_given_a_depth(stage):
    stage.builds("component/edit goals", "Win.", ":wq")
    assert "is placed in the history, depth 2" in stage.builds("component/depth goals = 2")
    assert "is placed at ID 4000" in stage.builds("component/depth goals = normal")


def test_the_history_and_the_event_take_no_depth(stage):
    for key in ("conversation_history", "pending_event"):
        told = one_line(stage.builds(f"component/depth {key} = 2"))
        assert f"'{key}' is static and cannot be injected by depth" in told


def test_a_revision_tells_what_it_changed(stage, mood):
    stage.builds("component/edit mood", ":DD", "It is hot. The air is heavy.", ":wq")
    told = stage.builds("component/revisions mood = 2").splitlines()
    assert told[0].startswith("mood, revision 2  ")
    assert told[1:] == ["content:", "+ It is hot.", "  The air is heavy."]


def test_revert_shows_what_it_changes(stage, mood):
    stage.builds("component/depth mood = 2")
    told = stage.builds("component/revert mood = 1").splitlines()
    assert told[1:4] == ["depth:", "- 2", "+ normal"]


def test_create_without_a_role_makes_a_system_message(stage):
    stage.builds("component/create tide = 1201: Low.")
    assert component("tide").role == "system"


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        *(("oren", "npc"), ("npc:oren", "npc"), ("NPC: Oren", "npc")),
        *(("here", "room"), ("room:harbour", "room")),
    ],
)
def test_scope_is_typed_after_the_key(stage, written, kind):
    stage.builds(f"component/create temper@{written} = 1202: He is cross.")
    ref = str(stage.npc.id if kind == "npc" else stage.room.id)
    assert component("temper", scope=Scope(kind=kind, ref=ref)).content == "He is cross."


def test_a_zone_is_named_by_its_tag_in_small_letters(stage):
    stage.builds("component/create fog@zone:Coast = 1203: There is fog.")
    assert component("fog", scope=Scope(kind="zone", ref="coast")).content == "There is fog."


def test_same_key_in_another_scope_is_changed_separately(stage, mood):
    stage.builds(
        "component/create mood@npc:oren = 1200: Cross.", "component/order mood@npc:oren = 5"
    )
    oren = Scope(kind="npc", ref=str(stage.npc.id))
    assert component("mood", scope=oren).injection_order == 5
    assert component("mood").injection_order == 100


def test_component_of_a_deleted_npc_can_be_removed(stage):
    stage.builds("component/create temper@npc:oren = 1202: Cross.")
    ref = stage.npc.id
    stage.npc.delete()
    stage.builds(f"component/remove temper@npc:#{ref}", "y")
    assert not [c for c in everything() if c.key == "temper"]


def test_move_gives_another_id(stage, mood):
    stage.builds("component/move mood = 1300")
    assert component("mood").id == 1300


def test_role_changes_the_role(stage, mood):
    stage.builds("component/role mood = User")
    assert component("mood").role == "user"


def test_a_component_can_be_named_by_its_id(stage, mood):
    stage.builds("component/role 1200 = assistant")
    assert component("mood").role == "assistant"


def test_off_and_on_switch_a_component(stage, mood):
    stage.builds("component/off mood")
    assert component("mood").enabled is False
    stage.builds("component/on mood")
    assert component("mood").enabled is True


def test_a_static_component_can_be_switched_off(stage):
    stage.builds("component/off goals")
    assert component("goals").enabled is False


def test_a_change_that_changes_nothing_makes_no_revision(stage, mood):
    before = component("mood").revision
    assert "has this value already" in stage.builds("component/on mood")
    assert component("mood").revision == before


def test_remove_asks_and_yes_removes(stage, mood):
    told = stage.builds("component/remove mood", "yes")
    assert "Remove mood (1200)?" in told
    assert "Removed mood." in told
    assert not [c for c in everything() if c.key == "mood"]


@pytest.mark.parametrize("answer", ["no", "", "yesterday", "look", "n"])
def test_any_other_answer_than_yes_removes_nothing(stage, mood, answer):
    assert "mood stays" in stage.builds("component/remove mood", answer)
    assert component("mood")


def test_remove_is_refused_if_the_component_changed_during_the_question(stage, mood):
    stage.builds("component/remove mood")
    store.update("mood", by=trusted("Tam"), content="New words.")
    assert "look at it again" in stage.builds("yes")
    assert component("mood").content == "New words."


def test_revisions_say_who_changed_what(stage, mood):
    stage.builds("component/depth mood = 2", "component/order mood = 50")
    told = stage.builds("component/revisions mood")
    assert "created by Mara" in told
    assert "depth: normal -> 2" in told
    assert "order: 100 -> 50" in told


@pytest.mark.req("S3-21")
def test_revert_brings_back_an_earlier_revision_as_a_new_one(stage, mood):
    stage.builds("component/depth mood = 2", "component/order mood = 50")
    stage.builds("component/revert mood = 1", "yes")
    back = component("mood")
    assert (back.injection_depth, back.injection_order, back.placement) == (0, 100, "ordered")
    assert back.revision == 4


def test_a_removed_component_comes_back_by_revert(stage, mood):
    stage.builds("component/remove mood", "yes", "component/revert mood = 1", "yes")
    assert component("mood").content == "The air is heavy."


def test_revisions_of_a_removed_component_can_be_read(stage, mood):
    stage.builds("component/remove mood", "yes")
    assert "removed by Mara" in stage.builds("component/revisions mood")


def test_the_list_reads_as_the_prompt_does(stage, mood):
    for key, number, depth in (("deep", 11, "4"), ("near", 12, "1"), ("last", 13, "bottom")):
        stage.builds(
            f"component/create {key} = {number}: Words.", f"component/depth {key} = {depth}"
        )
    rows = stage.builds("component").splitlines()[2:]
    assert [row[7:37].strip() for row in rows] == [
        "system_prompt",
        "character_context",
        "mood",
        "entity_context",
        "semantic_memories",
        "context_buffer",
        "goals",
        "conversation_history",
        ".. oldest message",
        "| deep",
        "| near",
        ".. newest message",
        "| last",
        "dynamic_context",
        "pending_event",
        "tool_result",
    ]


def test_the_list_shows_role_depth_order_state_and_tokens(stage, mood):
    stage.builds("component/depth mood = 2", "component/order mood = 50", "component/off mood")
    row = next(line for line in stage.builds("component").splitlines() if "mood" in line)
    assert row.split() == ["1200", "|", "mood", "system", "2", "50", "off", "5"]


def test_the_list_fits_78_columns(stage, mood):
    stage.builds(
        f"component/create {'k' * 64}@zone:{'z' * 60} = 1301: Words.",
        f"component/depth {'k' * 64}@zone:{'z' * 60} = 1000000000",
        f"component/order {'k' * 64}@zone:{'z' * 60} = -1000000000",
    )
    assert max(len(line) for line in stage.builds("component").splitlines()) <= 78


def test_list_can_be_limited_to_one_scope(stage, mood):
    stage.builds("component/create temper@npc:oren = 1202: Cross.")
    told = stage.builds("component @npc:oren")
    assert f"temper@npc:#{stage.npc.id}" in told
    assert "system_prompt" not in told


def test_component_list_says_that_a_scope_has_no_components(stage, mood):
    assert "No component has the scope @npc:oren" in one_line(stage.builds("component @npc:oren"))


def test_a_key_that_only_another_scope_has_is_refused_naming_the_scope(stage, mood):
    told = one_line(stage.builds("component/off mood@npc:oren"))
    assert told == f"There is no component 'mood' of the scope npc:{stage.npc.id}."


def test_a_slash_without_a_switch_names_the_switches(stage):
    told = one_line(stage.builds("component/"))
    assert "There is no component/. Nothing was changed. 'help component'" in told


def test_one_component_is_shown_in_full_with_who_changed_it_last(stage, mood):
    stage.builds("component/depth mood = 2")
    told = stage.builds("component mood")
    assert "The air is heavy." in told
    assert "depth 2: 2 messages follow it" in told
    assert "revision 2, updated by Mara" in told
    assert "scope game" in told


def test_reading_changes_nothing(stage, mood):
    before = everything()
    stage.builds("component", "component mood", "component/revisions mood", "component/depth mood")
    assert everything() == before


def test_preview_shows_the_prompt_and_changes_nothing(stage, mood):
    stage.builds("component/depth mood = 2")
    before = everything()
    told = stage.builds("component/preview/full oren")
    assert "component:mood" in told
    assert "The air is heavy." in told
    assert everything() == before
    assert not models.Record.objects.exists()
    assert not models.Turn.objects.exists()


HOSTILE = "|rred|n |lclook|ltclick|le $eval(1+1) {x} {you.__class__} \x1b[31m |[500m || {{user}} |"


def test_hostile_content_is_shown_literally(stage, mood):
    store.update("mood", by=trusted("Mara"), content=HOSTILE)
    sent = stage.sent(stage.builder, "component mood", "component", "component/revisions mood")
    shown = on_screen(sent)
    assert "\x1b" not in sent
    assert "|lc" not in shown
    assert "|rred|n" in shown
    assert "$eval(1+1) {x} {you.__class__} \\x1b[31m |[500m || {{user}} |" in " ".join(
        shown.split()
    )


def test_a_builder_with_a_hostile_name_is_shown_harmlessly(stage):
    stage.builder.key = "|rMara|n {x} |lclook|ltgo|le"
    stage.builds("component/create mood = 1200: Words.")
    sent = stage.sent(stage.builder, "component mood", "component/revisions mood")
    assert "|rMara|n {x}" in on_screen(sent)
    assert "|lc" not in on_screen(sent)


def test_an_npc_with_a_hostile_name_is_previewed_harmlessly(stage, mood):
    stage.npc.key = "|rOren|n {x} |lclook|ltgo|le"
    sent = stage.sent(stage.builder, f"component/preview/full #{stage.npc.id}")
    assert "|rOren|n {x}" in on_screen(sent)
    assert "|lc" not in on_screen(sent)


def test_what_a_builder_mistyped_is_repeated_harmlessly(stage):
    sent = stage.sent(stage.builder, "component |rx|n {y} |lclook|ltgo|le")
    assert "'|rx|n {y}" in on_screen(sent)
    assert "|lc" not in on_screen(sent)


def test_component_is_unknown_to_players(stage, mood):
    before = everything()
    for typed in ("component", "component/depth mood = 2", "comp/order mood = 1", "comp/off mood"):
        with hearing(stage.player) as heard:
            stage.player.execute_cmd(typed)
        assert "mood" not in "".join(heard).replace(typed, "")
    assert everything() == before


def test_two_npcs_of_one_name_are_distinguished_by_number(stage, mood):
    other = Stage()
    other.npc.move_to(stage.room, quiet=True)
    told = stage.builds("component/preview/full oren")
    assert f"#{stage.npc.id}" in told
    assert f"#{other.npc.id}" in told
