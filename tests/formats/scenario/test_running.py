"""The effect of a scenario's settings and components on its result."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from evennia_ai.engine.errors import EvenniaAIError, FormatError
from evennia_ai.formats.scenario import read_scenario, run_scenario
from tests.formats.scenario.builders import a_book, a_card, a_rich_scenario, an_entry, said


def contents(result: dict[str, Any]) -> list[str]:
    return [message["content"] for message in result["messages"]]


def test_empty_scenario_gives_an_empty_prompt() -> None:
    result = run_scenario({})
    assert result["messages"] == []
    assert result["tokens"] == {"total": 3, "limit": 7680, "by_origin": {"framing": 3}}
    assert result["notices"] == []


def test_scenario_result_has_the_documented_keys_and_is_json() -> None:
    result = run_scenario(a_rich_scenario())
    assert list(result) == [
        *("messages", "activated", "placed", "notes", "timed", "decorators", "verdicts"),
        *("tokens", "cache", "notices", "sha256"),
    ]
    assert list(result["messages"][0]) == [
        *("role", "name", "content", "block", "injected", "parts")
    ]
    assert list(result["activated"][0]) == [
        *("book", "uid", "entry", "content", "position", "depth", "role", "order", "cause")
    ]
    assert json.loads(json.dumps(result)) == result


def test_scenario_with_every_part_gives_the_expected_prompt() -> None:
    result = run_scenario(a_rich_scenario())
    assert contents(result) == [
        "Play fair.",
        "Anna is new here.",
        "Tilda lights the lamps.",
        "A town.\nLamps are lit.",
        "Tired, Anna.",
        "Finish before dark.",
        "The third lamp is out.",
        "Oil is dear.",
        "What burns in them?",
        "By depth.",
        "A note.",
        "Oil.",
        "Stay in character.",
        "It rains.",
        "Whose oil?",
    ]
    assert [entry["book"] for entry in result["activated"]] == ["town", "lamps", "lamps"]
    assert result["placed"]["after"] == ["town#0", "lamps#1"]
    assert result["placed"]["depth"] == [{"depth": 2, "role": "system", "entries": ["lamps#0"]}]
    assert result["decorators"]["lamps#0"] == [["depth", ["2"]]]
    assert result["decorators"]["lamps#1"] == []
    assert result["notes"] == [{"due": True, "content": "A note."}]
    assert sum(result["tokens"]["by_origin"].values()) == result["tokens"]["total"]


@pytest.mark.req("S3-17")
def test_prompt_does_not_depend_on_the_order_of_components() -> None:
    rows = [
        {"content": "same place", "injection_depth": 1},
        {"content": "same place, other text", "injection_depth": 1},
        {"key": "named", "content": "named", "injection_depth": 1},
        {"id": 1205, "content": "numbered"},
    ]
    results = [
        run_scenario({"components": list(order), "history": said(2)})
        for order in itertools.permutations(rows)
    ]
    assert len({result["sha256"] for result in results}) == 1
    assert all(result["messages"] == results[0]["messages"] for result in results)


def test_component_gets_a_free_id_that_is_no_multiple_of_ten() -> None:
    taken = [{"id": n, "key": f"k{n}", "content": "x"} for n in range(1201, 1209)]
    free = [{"content": f"text {n}"} for n in range(3)]
    components = read_scenario({"components": [*taken, *free]}).components
    assert [(c.id, c.key) for c in components[-3:]] == [
        (1209, "component_1209"),
        (1211, "component_1211"),
        (1212, "component_1212"),
    ]


def test_static_component_is_filled_by_its_key_or_its_id() -> None:
    rows = [{"key": "goals", "content": "Goals."}, {"id": 1000, "content": "Character."}]
    assert contents(run_scenario({"components": rows})) == ["Character.", "Goals."]


def test_listed_component_replaces_the_cards_with_the_same_key() -> None:
    rows = [{"key": "char_description", "content": "Tilda, as the game knows her."}]
    result = run_scenario({"card": a_card(), "components": rows})
    assert contents(result) == ["Tilda, as the game knows her."]


@pytest.mark.parametrize(
    ("scenario", "user"),
    [
        ({}, "User"),
        ({"history": [{"role": "user", "name": "Ben", "content": ""}]}, "Ben"),
        (
            {
                "history": [{"role": "user", "name": "Ben", "content": ""}],
                "event": {"name": "Cass", "content": "hi"},
            },
            "Cass",
        ),
        ({"event": {"name": "Cass", "content": "hi"}, "persona": {"name": "Anna"}}, "Anna"),
        ({"persona": {"name": "Anna"}, "settings": {"user": "Dora"}}, "Dora"),
    ],
)
def test_user_name_is_from_settings_then_persona_then_newest_speaker(
    scenario: dict[str, Any], user: str
) -> None:
    result = run_scenario({**scenario, "components": [{"content": "{{user}}"}]})
    assert result["messages"][0]["content"] == user


def test_macro_char_is_the_nickname_and_speaker_the_current_speaker() -> None:
    scenario = {
        "card": a_card(nickname="Tilly", description=""),
        "components": [{"content": "{{char}} answers {{speaker}}, not {{user}}.", "id": 5200}],
        "event": {"name": "Ben", "content": "hi"},
        "settings": {"user": "Anna"},
    }
    assert contents(run_scenario(scenario))[0] == "Tilly answers Ben, not Anna."


def test_unknown_template_name_stays_as_written_with_a_notice() -> None:
    result = run_scenario({"components": [{"key": "mood", "content": "{{weather}}, {{user}}"}]})
    assert contents(result) == ["{{weather}}, User"]
    assert result["notices"] == [
        "component:mood: the name 'weather' is unknown and was left as written"
    ]


@pytest.mark.parametrize(
    ("settings", "opening"),
    [
        ({"greeting": True}, ["Mind the ladder, Anna."]),
        ({"greeting": True, "greeting_index": 1}, ["The third lamp is out."]),
        ({"greeting": True, "greeting_index": 2, "group": True}, ["Good evening, all."]),
        ({"greeting": False, "greeting_index": 1}, []),
    ],
)
def test_greeting_is_the_first_history_message(
    settings: dict[str, Any], opening: list[str]
) -> None:
    settings = {"user": "Anna", **settings}
    result = run_scenario({"card": a_card(), "settings": settings, "history": said(1)})
    history = [m for m in result["messages"] if m["block"] == "history"]
    assert [m["content"] for m in history] == [*opening, "m1"]
    assert all((m["role"], m["name"]) == ("assistant", "Tilda") for m in history[:-1])


def test_greeting_without_a_card_gives_a_notice() -> None:
    result = run_scenario({"settings": {"greeting": True}, "history": said(1)})
    assert contents(result) == ["m1"]
    assert result["notices"] == [
        "settings.greeting: there is no card with a greeting; add one, or remove the setting"
    ]


def test_missing_greeting_is_refused() -> None:
    settings = {"greeting": True, "greeting_index": 2}
    with pytest.raises(EvenniaAIError, match="has no greeting 2; it has 0 to 1"):
        run_scenario({"card": a_card(), "settings": settings})


def test_games_system_prompt_precedes_the_cards() -> None:
    card = a_card(description="", system_prompt="{{original}} I am {{char}}.")
    settings = {"system_prompt": "The game rules.", "card_system_prompt": "Be kind."}
    result = run_scenario({"card": card, "settings": settings})
    assert contents(result) == ["The game rules.", "Be kind. I am Tilda."]


def test_random_macros_depend_only_on_the_seed() -> None:
    many = ",".join(map(str, range(1000)))
    rows = [{"content": f"{{{{random:{many}}}}} {{{{pick:{many}}}}}"}]

    def rolled(seed: int) -> str:
        return contents(run_scenario({"components": rows, "settings": {"seed": seed}}))[0]

    assert rolled(1) == rolled(1)
    assert len({rolled(seed) for seed in range(9)}) == 9


def test_macro_random_differs_between_turns_and_pick_does_not() -> None:
    many = ",".join(map(str, range(1000)))
    rows = [{"content": f"{{{{random:{many}}}}}/{{{{pick:{many}}}}}"}]
    turns = [{"history": said(1)}, {"history": said(3)}]
    result = run_scenario({"components": rows, "turns": turns})
    randoms, picks = zip(*(contents(t)[0].split("/") for t in result["turns"]), strict=True)
    assert len(set(randoms)) == 2
    assert len(set(picks)) == 1


def test_later_turn_of_a_scenario_may_have_a_shorter_history() -> None:
    settings = {"tokenizer": "bytes/1", "context_tokens": 40, "reply_tokens": 0}
    turns = [{"history": said(9)}, {"history": said(2)}]
    result = run_scenario({"settings": settings, "turns": turns})
    assert len(result["turns"][0]["messages"]) < 9
    assert contents(result["turns"][1]) == ["m1", "m2"]


@pytest.mark.parametrize("layout", ["cache", "classic"])
def test_result_lists_lore_by_position_in_both_layouts(layout: str) -> None:
    entries = [
        an_entry("A before.", "oil", position="before_char", insertion_order=2),
        an_entry("B before.", position="before_char", insertion_order=1),
        an_entry("C after.", "oil"),
    ]
    result = run_scenario(
        {
            "lorebooks": [{"name": "b", "book": a_book(*entries)}],
            "event": {"content": "oil"},
            "settings": {"layout": layout},
        }
    )
    assert sorted(result["placed"]["before"]) == ["b#0", "b#1"]
    assert result["placed"]["after"] == ["b#2"]
    classic = layout == "classic"
    assert contents(result)[0] == ("B before.\nA before." if classic else "B before.")
    assert ("A before.\n\nC after." in contents(result)) is not classic


def test_result_counts_a_reverse_depth_from_the_newest_message() -> None:
    entries = [an_entry("@@reverse_depth 1\nDeep.")]
    result = run_scenario({"card": a_card(*entries), "history": said(4)})
    assert result["activated"][0]["depth"] == 3
    assert result["placed"]["depth"] == [{"depth": 3, "role": "system", "entries": ["lamps#0"]}]


def test_cards_book_with_the_name_of_a_listed_book_gets_its_own_label() -> None:
    card = a_card(an_entry("A."))
    card["data"]["character_book"]["name"] = "lamps"
    result = run_scenario({"card": card, "lorebooks": [{"book": a_book(an_entry("B."))}]})
    assert {entry["book"] for entry in result["activated"]} == {"lamps (card)", "lamps"}
    [notice] = result["notices"]
    assert notice == "two lorebooks are called 'lamps': the card's is shown as 'lamps (card)'"


def test_books_with_the_same_name_get_different_labels() -> None:
    books = [{"book": a_book(an_entry("A."))}, {"book": a_book(an_entry("B."))}]
    result = run_scenario({"lorebooks": books})
    assert [entry["book"] for entry in result["activated"]] == ["lamps", "lamps (2)"]
    assert result["notices"] == ["two lorebooks are called 'lamps': one is shown as 'lamps (2)'"]


def test_label_in_a_scenario_replaces_the_books_name() -> None:
    result = run_scenario({"lorebooks": [{"name": "town", "book": a_book(an_entry("A."))}]})
    assert [v["item"] for v in result["verdicts"] if v["stage"] == "activate"] == ["lore:town#0"]


def test_note_that_is_not_due_has_a_verdict() -> None:
    notes = [{"content": "{{user}}!", "every": 2}, {"content": "", "every": 1}]
    result = run_scenario({"notes": notes, "event": {"content": "first"}})
    assert result["notes"] == [{"due": False, "content": ""}, {"due": True, "content": ""}]


def test_scanned_note_activates_lore_at_any_depth() -> None:
    book = [{"book": a_book(an_entry("Oil is dear.", "oil"))}]
    for scanned in (True, False):
        notes = [{"content": "She thinks of oil.", "depth": 99, "scanned": scanned}]
        assert bool(run_scenario({"lorebooks": book, "notes": notes})["activated"]) is scanned


def test_absolute_paths_in_a_scenario_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "tilda.json"
    path.write_text(json.dumps(a_card()), encoding="utf-8")
    result = run_scenario({"card": str(path)}, folder=Path("elsewhere"))
    assert contents(result) == ["Tilda lights the lamps."]


def test_components_are_refused_when_no_id_is_free() -> None:
    components = [{"content": str(number)} for number in range(4000)]
    with pytest.raises(FormatError, match=r"no ID below 5000 is free; give it one"):
        run_scenario({"components": components})


def test_user_name_and_greeting_are_the_same_in_all_turns() -> None:
    card = a_card(
        description="Knows {{user}}.", first_mes="{{random:a,b,c,d,e,f}}{{roll:1000}}, {{user}}"
    )
    spoken = [{"role": "user", "name": name, "content": "Hm."} for name in ("Anna", "Ben", "Cai")]
    for settings in ({"seed": 3}, {"seed": 4}):
        turns = [{"history": spoken[:count]} for count in range(4)]
        made = run_scenario(
            {"card": card, "settings": {**settings, "greeting": True}, "turns": turns}
        )["turns"]
        assert {contents(turn)[0] for turn in made} == {"Knows Anna."}
        assert len({contents(turn)[1] for turn in made}) == 1


def test_unknown_template_name_in_a_note_gives_a_notice() -> None:
    result = run_scenario({"notes": [{"content": "{{usr}} frowns."}]})
    assert result["notices"] == ["note:0: the name 'usr' is unknown and was left as written"]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"content": "The tide is {{random:in,out}}."}, True),
        ({"content": "You answer {{speaker}}.", "volatile": True}, False),
        ({"content": "You answer {{speaker}}.", "injection_depth": 2}, False),
        ({"content": "You know {{user}} as {{pick:a,b}}."}, False),
    ],
)
def test_text_before_the_history_that_changes_gives_a_notice(
    fields: dict[str, Any], told: bool
) -> None:
    given = {"components": [{"key": "mood", **fields}], "event": {"content": "Hm."}}
    notices = run_scenario(given)["notices"]
    assert [notice.startswith("component:mood: is before the history") for notice in notices] == [
        True
    ] * told
    assert run_scenario({**given, "settings": {"layout": "classic"}})["notices"] == []


@pytest.mark.req("S0-03", "S0-28")
@pytest.mark.parametrize(
    ("scenario", "key"),
    [
        ({"components": [{"key": "mood", "content": "You answer {{speaker}}."}]}, "mood"),
        (
            {"components": [{"key": "mood", "content": "{% if speaker == 'A' %}A{% endif %}."}]},
            "mood",
        ),
        ({"components": [{"key": "mood", "content": "It is {{time}}."}]}, "mood"),
        ({"settings": {"system_prompt": "You answer {{speaker}}."}}, "system_prompt"),
        ({"settings": {"card_system_prompt": "You answer {{Speaker}}."}}, "card_system_prompt"),
    ],
)
def test_static_text_that_names_the_last_message_is_refused(
    scenario: dict[str, Any], key: str
) -> None:
    for layout in ("cache", "classic"):
        settings = {**scenario.get("settings", {}), "layout": layout}
        with pytest.raises(FormatError, match=f"component '{key}': .*before the history"):
            run_scenario({**scenario, "settings": settings, "event": {"content": "Hm."}})


def test_entries_with_the_same_id_have_separate_places_and_decorators() -> None:
    entries = [an_entry("@@depth 1\nA.", id=7), an_entry("B.", id=7)]
    result = run_scenario({"lorebooks": [{"book": a_book(*entries)}]})
    assert result["placed"]["depth"] == [{"depth": 1, "role": "system", "entries": ["lamps#7"]}]
    assert result["placed"]["after"] == ["lamps#7 (2)"]
    assert result["decorators"] == {"lamps#7": [["depth", ["1"]]], "lamps#7 (2)": []}


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"now": "2026-11-28T15:04:05"}, "3:04 PM 2026-11-28"),
        ({"now": "2026-11-28 15:04:05Z", "zone": "+05:30"}, "8:34 PM 2026-11-28"),
        ({"now": "2026-11-28T15:04", "zone": "-03:00"}, "3:04 PM 2026-11-28"),
        ({"now": "2026-11-28T15:04Z", "zone": "Pacific/Auckland"}, "4:04 AM 2026-11-29"),
        ({"now": "2026-11-28"}, "12:00 AM 2026-11-28"),
        ({}, "{{time}} {{isodate}}"),
        ({"now": "", "zone": "UTC"}, "{{time}} {{isodate}}"),
    ],
)
def test_scenario_time_is_from_the_settings_never_from_the_machine(settings, told):
    note = {"content": "{{time}} {{isodate}}", "depth": 0}
    card = a_card(first_mes="It is {{time}} {{isodate}}.")
    given = {"settings": {**settings, "greeting": True}, "notes": [note], "card": card}
    contents = [message["content"] for message in run_scenario(given)["messages"]]
    assert told in contents
    assert f"It is {told}." in contents


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"now": "noon"}, "settings.now"),
        ({"now": "0001-01-01T00:00"}, "settings.now"),
        ({"now": "2026-11-28T15:04", "zone": "Mars"}, "settings.zone"),
        ({"zone": ""}, "settings.zone"),
        ({"zone": "../../etc/passwd"}, "settings.zone"),
        ({"zone": "+99:00"}, "settings.zone"),
    ],
)
def test_invalid_scenario_time_or_zone_is_refused_with_valid_forms(settings, wanted):
    with pytest.raises(
        FormatError, match=f"{wanted}.* must be a (date and time|time zone) such as"
    ):
        run_scenario({"settings": settings})


@pytest.mark.parametrize("with_card", [True, False])
@pytest.mark.parametrize(
    "name", ["description", "persona", "mesExamples", "charJailbreak", "scenario"]
)
def test_macro_of_an_empty_card_field_expands_to_an_empty_text(name, with_card):
    given = {"components": [{"key": "mood", "content": f"[{{{{{name}}}}}]"}]}
    made = run_scenario({**given, **({"card": a_card(description="")} if with_card else {})})
    assert "[]" in [message["content"] for message in made["messages"]]
    assert not any("as written" in notice for notice in made["notices"])
