"""Tests of messages about arrivals and departures: they activate only entries that ask for them."""

from typing import Any

import pytest

from evennia_ai.engine.lorebook.activation.activation import Activation
from evennia_ai.engine.lorebook.rules import ActivationRules
from evennia_ai.engine.lorebook.scan.window import Scan
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import Message, event_message, said
from tests.engine.lorebook.builders import a_book, a_world_entry, an_entry, awake, reasons, texts

ARRIVAL = "Anna comes in from the ferry."


def asking(movement: Any = True, **own: Any) -> dict[str, Any]:
    return {"evennia_ai": {"movement": movement, **own}}


def came(content: str = ARRIVAL) -> Message:
    return Message(role="user", content=content, is_movement=True)


def heard(
    *entries: dict[str, Any], history: list[Message], event: Message | None = None, **more: Any
) -> Activation:
    scan = Scan(history=History(history), event=event)
    return awake(a_book(*entries, **more.pop("book", {})), scan=scan, **more)


def test_arrival_or_departure_activates_no_entry_by_default() -> None:
    result = heard(an_entry(keys=["ferry"]), history=[came()])
    assert texts(result) == []
    assert reasons(result) == {
        "book#0": "- a key in message 1 at 23-28, but this message is about an arrival or"
        " departure and activates only entries that ask for movement"
    }


def test_answered_arrival_activates_no_entry_by_default() -> None:
    event = event_message(ARRIVAL, kind="arrive")
    assert texts(heard(an_entry(keys=["ferry"]), history=[], event=event)) == []


@pytest.mark.parametrize("kind", ["say", "whisper", "talk", "pose", "give", "show", "combat", ""])
def test_speech_poses_and_events_except_movement_activate_an_entry(kind: str) -> None:
    event = event_message("The ferry.", kind=kind)
    assert texts(heard(an_entry(keys=["ferry"]), history=[], event=event)) == ["Some lore."]


@pytest.mark.parametrize("kind", ["arrive", "leave", "moved"])
def test_entry_that_asks_for_movement_is_activated_by_an_arrival(kind: str) -> None:
    event = event_message("The ferry.", kind=kind)
    entry = an_entry(keys=["ferry"], extensions=asking())
    assert texts(heard(entry, history=[], event=event)) == ["Some lore."]
    assert texts(heard(entry, history=[came()])) == ["Some lore."]


def test_condition_on_movement_events_includes_movement_unless_switched_off() -> None:
    def hears(**own: Any) -> bool:
        [entry] = a_book(an_entry(extensions={"evennia_ai": own})).entries
        return entry.hears_movement

    assert hears(events=["say", "arrive"])
    assert not hears(events=["say", "!arrive"])
    assert not hears(events=["arrive"], movement=False)
    assert not hears()


def test_entry_activated_by_movement_reports_the_last_place_of_its_key() -> None:
    entry = an_entry(keys=["ferry"], extensions=asking())
    spoken = said("user", "A ferry!")
    last = heard(entry, history=[spoken, came()])
    first = heard(entry, history=[came(), spoken])
    assert [cause for result in (last, first) for cause in result.causes.values()] == [
        "key 'ferry' in message 2 at 23-28",
        "key 'ferry' in message 2 at 2-7",
    ]


def test_key_said_before_an_arrival_message_still_activates() -> None:
    entry = an_entry(keys=["ferry"])
    result = heard(entry, history=[said("user", "A ferry!"), came()])
    assert list(result.causes.values()) == ["key 'ferry' in message 1 at 2-7"]


def test_arrival_message_counts_for_the_scan_depth() -> None:
    history = [said("user", "A ferry!"), came("Ben leaves.")]
    entry = an_entry(keys=["ferry"])
    assert texts(heard(entry, history=history, rules=ActivationRules(scan_depth=1))) == []


def test_secondary_keys_are_not_found_in_movement_messages() -> None:
    entry = an_entry(
        "@@exclude_keys ferry\nLore.", keys=["coin"], secondary_keys=["ferry"], selective=False
    )
    both = an_entry("Both.", keys=["coin"], secondary_keys=["ferry"], selective=True)
    result = heard(entry, both, history=[came(), said("user", "A coin?")])
    assert texts(result) == ["Lore."]


def test_regex_over_all_messages_skips_movement_messages() -> None:
    entry = a_world_entry(key=["/fer+y/"])
    asks = a_world_entry("Asks.", key=["/fer+y/"], evennia_ai={"movement": True})
    rules = ActivationRules(rules="sillytavern", scan_depth=4)
    history = [came(), said("user", "Hello.")]
    assert texts(heard(entry, asks, history=history, rules=rules)) == ["Asks."]


def test_mention_entry_ignores_movement_messages_by_default() -> None:
    spoken = said("user", "A ferry!")
    for extensions, depth in (({"evennia_ai": {}}, 2), (asking(), 1)):
        extensions["evennia_ai"]["place"] = "at_mention"
        result = heard(an_entry(keys=["ferry"], extensions=extensions), history=[spoken, came()])
        assert result.entries[0].depth == depth
