"""Which person a name means: an exact name, or the start of a name that fits nobody else.

A guess is reported to the model. Issue 14, Medium 12: `whisper to Anna` reached Annabel after Anna
had left.
"""

from typing import Any

import pytest

from evennia_ai.services.settings.conf import conf
from tests.npc.tools.acting import a_call, a_thing, a_toolbox, an_event, does

GONE = "There is no 'Anna' here; Annabel is somebody else."


@pytest.fixture
def annabel(stage: Any) -> Any:
    """Return a person whose name begins like Anna's. Anna leaves."""
    stage.anna.location = None
    return stage.player("Annabel")


def _is_recorded(stage: Any, event: Any) -> None:
    from evennia_ai.npc.recording import heard
    from evennia_ai.store.history import conversations

    where = heard.open_conversation(stage.npc.ai.ref, heard.key_of(event))
    conversations.append_records(where, [heard.event_record(event)])


def heard_from_anna(stage: Any) -> None:
    """Let Anna say something in the room before she leaves."""
    _is_recorded(stage, an_event(stage))


def remembers_anna(stage: Any) -> None:
    from evennia_ai.npc.recording import heard
    from evennia_ai.npc.upkeep import remembering

    room = heard.open_conversation(stage.npc.ai.ref, heard.key_of(an_event(stage)))
    about = str(stage.anna.id)
    rules = conf().memory
    assert remembering.remember(
        stage.npc.ai.ref, "Anna fears the tide.", about=about, where=room, rules=rules
    ).memory


def was_whispered_to(stage: Any) -> None:
    _is_recorded(stage, an_event(stage, private=True))


@pytest.mark.parametrize("meets", [heard_from_anna, remembers_anna, was_whispered_to])
def test_whisper_reaches_nobody_when_the_known_person_left(
    stage: Any, annabel: Any, meets: Any
) -> None:
    meets(stage)
    event = an_event(stage, speaker=stage.ben)
    told = does(stage, "whisper", event=event, to="Anna", text="Annabel is a thief.")
    assert (told.ok, told.text) == (False, GONE)
    assert stage.screen_of(annabel) == []


def test_whisper_call_is_recorded_without_words_when_the_known_person_left(
    stage: Any, annabel: Any
) -> None:
    remembers_anna(stage)
    event = an_event(stage, speaker=annabel, private=True)
    call = a_call("whisper", to="Anna", text="Annabel is a thief.")
    found = a_toolbox(stage, "whisper", event=event).find(call)
    assert "thief" not in found.recorded.arguments


def test_gift_is_not_given_when_the_known_person_left(stage: Any, annabel: Any) -> None:
    remembers_anna(stage)
    lantern = a_thing(stage, place=stage.npc)
    told = does(stage, "give", item="lantern", to="anna")
    assert (told.ok, lantern.location) == (False, stage.npc)


def test_start_of_a_name_is_enough_when_only_one_fits_and_the_model_is_told(
    stage: Any, annabel: Any
) -> None:
    told = does(stage, "whisper", to="Anna", text="Come at night.").text
    assert told == (
        "'Anna' was understood as Annabel.\nYou whisper to Annabel, and nobody else hears it."
    )
    assert stage.screen_of(annabel) == ['Oren whispers to you, "Come at night."']


def test_start_of_a_strangers_name_is_enough(stage: Any, annabel: Any) -> None:
    remembers_anna(stage)
    assert does(stage, "whisper", to="Annab", text="Come at night.").ok


def test_npcs_own_name_does_not_mean_another_person(stage: Any) -> None:
    orenda = stage.player("Orenda")
    assert not does(stage, "whisper", to="Oren", text="Hm.").ok
    assert stage.screen_of(orenda) == []


def test_exact_name_is_not_reported_as_a_guess(stage: Any) -> None:
    stage.player("Annabel")
    told = does(stage, "whisper", to="the ANNA", text="Come at night.").text
    assert told == "You whisper to Anna, and nobody else hears it."


def test_exact_alias_wins_over_the_start_of_a_name(stage: Any) -> None:
    stage.player("Benedict")
    stage.player("Cara").aliases.add("bene")
    assert does(stage, "look", at="bene").text.startswith("Cara")


@pytest.mark.parametrize(
    ("tool", "arguments", "note"),
    [
        ("look", {"at": "lant"}, "'lant' was understood as lantern."),
        ("take", {"item": "lant"}, "'lant' was understood as lantern."),
        ("use", {"item": "lant"}, "'lant' was understood as lantern."),
        ("remember", {"text": "He sings.", "about": "Benj"}, "'Benj' was understood as Benjamin."),
        ("recall", {"about": "Benj"}, "'Benj' was understood as Benjamin."),
    ],
)
def test_every_tool_reports_its_guess_of_a_name(
    stage: Any, tool: str, arguments: dict[str, str], note: str
) -> None:
    a_thing(stage, locks="get:all()")
    stage.player("Benjamin")
    assert does(stage, tool, **arguments).text.split("\n")[0] == note


def test_game_tool_that_takes_long_reports_its_guess_of_a_name(stage: Any) -> None:
    from twisted.internet.defer import Deferred

    from evennia_ai.engine.prompt.messages import ToolSpec
    from evennia_ai.npc.tools.targets import person
    from evennia_ai.npc.tools.tool import Name, Tool, ToolArguments
    from evennia_ai.npc.tools.toolbox import Registered, Toolbox

    done: Deferred[str] = Deferred()

    class Ask(Tool):
        name = "ask"
        description = "Ask somebody."
        waits = True

        class Arguments(ToolArguments):
            who: Name

        def run(self, use: Any, arguments: Any) -> Any:
            person(use.npc, arguments.who)
            return done

    stage.player("Benjamin")
    spec = ToolSpec(name=Ask.name, description=Ask.description, parameters={})
    box = Toolbox([Registered(tool=Ask(), spec=spec)], npc=stage.npc, event=an_event(stage))
    ran = does(stage, "ask", box=box, who="Benj")
    told: list[str] = []
    ran.later.addCallback(lambda end: told.append(end.text))
    done.callback("He nods.")
    assert told == ["'Benj' was understood as Benjamin.\nHe nods."]
