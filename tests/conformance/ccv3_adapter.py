"""Convert cases of the card standard into scenarios, and check their expectations.

Each kind of expectation has a function that returns what is wrong, or "". An expectation of an
unknown kind is a KeyError, so none is skipped unseen.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evennia_ai.cli.cards import described
from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.formats.cards.exporting import FORMS, dump_card
from evennia_ai.formats.cards.loading import CardImport, load_card
from evennia_ai.formats.scenario import run_scenario
from tests.formats.cards.carriers import card_in_chunk

# The settings of cards: their names in a case and in a scenario.
SETTINGS = {
    "user_name": "user",
    "system_prompt": "card_system_prompt",
    "post_history_instructions": "post_history_instructions",
    "greeting_index": "greeting_index",
    "group": "group",
    "language": "language",
    "user_icon": "user_icon",
}
EXPORTED_AT = 1_800_000_000
NOWHERE = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a case: an error, or the card as the program shows it and a result per turn.

    `exports` are the V3 files of every format, read again. `v2` is the V2 copy inside the V3 file.
    """

    error: str = ""
    card: Mapping[str, Any]
    turns: Sequence[Mapping[str, Any]]
    exports: Sequence[Mapping[str, Any]] = ()
    v2: Mapping[str, Any] | None = None

    @property
    def result(self) -> Mapping[str, Any]:
        return self.turns[0]

    @property
    def prompt(self) -> str:
        return "\n".join(message["content"] for message in self.result["messages"])

    @property
    def active(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the active entries of a turn by name."""
        return {entry["entry"]: entry for entry in self.result["activated"]}


def outcome_of(case: Mapping[str, Any], *, folder: Path) -> Outcome:
    """Run a case and return its result. The text of a card is first written to `folder`."""
    scenario = scenario_of(case, folder=folder)
    try:
        turns = run_scenario(scenario)["turns"]
        found = _loaded(scenario.get("card"))
        if found is None:
            return Outcome(card={}, turns=turns)
        return Outcome(card=_shown(found, case), turns=turns, **_exported(found))
    except EvenniaAIError as error:
        return Outcome(error=str(error), card={}, turns=())


def _loaded(given: Any) -> CardImport | None:
    """Import the card's file of a scenario, and return the card."""
    if given is None:
        return None
    return load_card(Path(given) if isinstance(given, str) else json.dumps(given).encode())


def _shown(found: CardImport, case: Mapping[str, Any]) -> Mapping[str, Any]:
    settings = case.get("settings") or {}
    language, group = settings.get("language", "en"), settings.get("group", False)
    return described(found, language=language, group=group)


def _exported(found: CardImport) -> dict[str, Any]:
    made = [dump_card(found, form, modified_at=EXPORTED_AT) for form in FORMS]
    picture = dump_card(found, "png", with_v2=True, modified_at=EXPORTED_AT)
    return {
        "exports": [load_card(content).raw for content in made],
        "v2": card_in_chunk(picture, "chara"),
    }


def scenario_of(case: Mapping[str, Any], *, folder: Path) -> dict[str, Any]:
    """Return the scenario of a case, with as many turns as the case has."""
    lorebook, expect = case.get("lorebook"), case["expect"]
    history = case.get("history", [])
    several = case.get("turns") or [{"history": history}] * expect.get("repeat", 1)
    return {
        **({"card": _card(case, folder)} if "card" in case or "card_text" in case else {}),
        "lorebooks": [{"book": lorebook, "attach": "character"}] if lorebook else [],
        "components": case.get("components", []),
        "turns": [{"history": turn["history"]} for turn in several],
        "settings": {
            **{SETTINGS[name]: value for name, value in (case.get("settings") or {}).items()},
            "layout": "classic",
            "context_tokens": 1_000_000,
            "reply_tokens": 0,
            "lore": {"match_whole_words": False, "budget_percent": 100},
        },
    }


def problems(outcome: Outcome, case: Mapping[str, Any]) -> list[str]:
    """Return which expectations are not met, turn by turn. Empty if all are met."""
    found = [*unmet(outcome, case["expect"])]
    for index, turn in enumerate(case.get("turns", ())):
        if index < len(outcome.turns):
            here = Outcome(card=outcome.card, turns=outcome.turns[index:])
            found += [f"turn {index}: {wrong}" for wrong in unmet(here, turn["expect"])]
    return found


def unmet(outcome: Outcome, expect: Mapping[str, Any]) -> Iterator[str]:
    """Return which expectations of one turn are not met."""
    if outcome.error and not ({"error", "any_of"} & expect.keys()):
        yield f"refused: {outcome.error}"
        return
    for name, wanted in expect.items():
        wrong = QUESTIONS[name](outcome, wanted, expect)
        if wrong:
            yield f"{name}: {wrong}"


def _card(case: Mapping[str, Any], folder: Path) -> Any:
    """Return the card of a case. A text to expand becomes its description."""
    if "card_text" in case:
        path = folder / "card.json"
        path.write_text(case["card_text"], encoding="utf-8")
        return str(path)
    if "text" not in case:
        return case["card"]
    return {**case["card"], "data": {**case["card"]["data"], "description": case["text"]}}


def _described(outcome: Outcome) -> list[str]:
    """Return the expanded description of each turn, or ""."""
    return [
        "".join(
            message["content"][part["start"] : part["end"]]
            for message in turn["messages"]
            for part in message["parts"]
            if part["origin"] == "component:char_description"
        )
        for turn in outcome.turns
    ]


def _activated(outcome: Outcome, wanted: list[str], expect: Mapping[str, Any]) -> str:
    active = set(outcome.active)
    exact = expect.get("activated_exact", True)
    well = active == set(wanted) if exact else active >= set(wanted)
    return "" if well else f"{sorted(active)} instead of {sorted(wanted)}"


def _content(outcome: Outcome, wanted: Mapping[str, str], _: object) -> str:
    found = {name: entry["content"] for name, entry in outcome.active.items()}
    wrong = {name: found.get(name) for name in wanted if found.get(name) != wanted[name]}
    return f"{wrong}" if wrong else ""


def _history(outcome: Outcome, wanted: list[Mapping[str, Any]], _: object) -> str:
    """Compare the messages of the history one by one. A role of null matches any role."""
    found = [m for m in outcome.result["messages"] if m["block"] == "history"]
    told = [(m["role"], m["content"], m["injected"]) for m in found]
    roles = [message["role"] for message in wanted]
    if len(told) == len(wanted):
        roles = [role or is_there[0] for role, is_there in zip(roles, told, strict=True)]
    right = [
        (role, message["content"], message.get("injected", False))
        for role, message in zip(roles, wanted, strict=True)
    ]
    return "" if told == right else f"{told} instead of {right}"


def _decorators(outcome: Outcome, wanted: Mapping[str, Mapping[str, Any]], _: object) -> str:
    for name, rule in wanted.items():
        entry = outcome.active[name]
        found = outcome.result["decorators"][f"{entry['book']}#{entry['uid']}"]
        if found != rule.get("effective", found):
            return f"{name}: {found} instead of {rule['effective']}"
        if {one for one, _values in found} & set(rule.get("not_effective", ())):
            return f"{name}: {found} with one that must not count"
    return ""


def _prompt_order(outcome: Outcome, wanted: list[str], _: object) -> str:
    places = [outcome.prompt.find(text) for text in wanted]
    well = -1 not in places and places == sorted(places)
    return "" if well else f"they stand at {places}"


def _prompt_count(outcome: Outcome, wanted: Mapping[str, int], _: object) -> str:
    found = {text: outcome.prompt.count(text) for text in wanted}
    return "" if found == wanted else f"{found}"


def _encodable(outcome: Outcome, _: object, _expect: object) -> str:
    try:
        outcome.prompt.encode()
    except UnicodeEncodeError as error:
        return str(error)
    return ""


def _any_of(outcome: Outcome, wanted: list[Mapping[str, Any]], _: object) -> str:
    failed = [list(unmet(outcome, some)) for some in wanted]
    return "" if [] in failed else f"none of them: {failed}"


def _same(told: object, wanted: object) -> str:
    return "" if told == wanted else f"{told!r} instead of {wanted!r}"


def _left(wrong: Sequence[object]) -> str:
    return f"{wrong}" if wrong else ""


def _assets(outcome: Outcome) -> list[dict[str, str]]:
    """Return the assets in the terms of the standard."""
    fields = ("type", "uri", "name", "ext")
    return [{name: asset[name] for name in fields} for asset in outcome.card["assets"]]


def _notices(outcome: Outcome) -> Sequence[str]:
    return outcome.card["notices"]


def at(value: Any, pointer: str) -> Any:
    """Return the value that a JSON pointer names, or `NOWHERE`."""
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        elif isinstance(value, Mapping) and name in value:
            value = value[name]
        else:
            return NOWHERE
    return value


def _in_exports(holds: Callable[[Any, Any], bool]) -> Callable[[Outcome, Any, object], str]:
    """Return a check of JSON pointers in the V3 export of every format."""

    def question(outcome: Outcome, wanted: Mapping[str, Any], _: object) -> str:
        wrong = [
            f"{pointer} is {at(export, pointer)!r}"
            for export in outcome.exports
            for pointer, value in wanted.items()
            if not holds(at(export, pointer), value)
        ]
        return _left(wrong) if outcome.exports else "there is no export"

    return question


def _in_v2(holds: Callable[[Any, Any], bool]) -> Callable[[Outcome, Any, object], str]:
    """Return a check of JSON pointers in the V2 copy."""

    def question(outcome: Outcome, wanted: Mapping[str, Any], _: object) -> str:
        return _left([p for p, value in wanted.items() if not holds(at(outcome.v2, p), value)])

    return question


def _nothing(_outcome: Outcome, _wanted: object, _expect: object) -> str:
    """Check nothing, because another expectation checks it."""
    return ""


# For each kind of expectation, a function (outcome, wanted, all expectations) that returns what is
# wrong.
QUESTIONS: Mapping[str, Callable[[Outcome, Any, Mapping[str, Any]], str]] = {
    "error": lambda o, _w, _: "" if o.error else "it was accepted",
    "no_error": lambda o, _w, _: o.error,
    "any_of": _any_of,
    "activated": _activated,
    "activated_exact": _nothing,
    "not_activated": lambda o, wanted, _: _left(sorted(set(wanted) & set(o.active))),
    "entry_count": lambda o, wanted, _: _same(o.card["lorebook_entries"], wanted),
    "content": _content,
    "decorators": _decorators,
    "history": _history,
    "prompt_contains": lambda o, wanted, _: _left(
        [text for text in wanted if text not in o.prompt]
    ),
    "prompt_absent": lambda o, wanted, _: _left([text for text in wanted if text in o.prompt]),
    "prompt_count": _prompt_count,
    "prompt_order": _prompt_order,
    "prompt_encodable": _encodable,
    "text": lambda o, wanted, _: _same(set(_described(o)), {wanted}),
    "text_one_of": lambda o, wanted, _: _left(sorted(set(_described(o)) - set(wanted))),
    "text_endswith": lambda o, wanted, _: _left(
        [one for one in _described(o) if not one.endswith(wanted)]
    ),
    "repeat": lambda o, wanted, _: _same(len(o.turns), wanted),
    "distinct_min": lambda o, wanted, _: "" if len(set(_described(o))) >= wanted else "too few",
    "distinct_max": lambda o, wanted, _: "" if len(set(_described(o))) <= wanted else "too many",
    "name": lambda o, wanted, _: _same(o.card["name"], wanted),
    "assets": lambda o, wanted, _: _same(_assets(o), wanted),
    "greetings": lambda o, wanted, _: _same(o.card["greetings"], wanted),
    "greetings_include": lambda o, wanted, _: _left(
        [one for one in wanted if one not in o.card["greetings"]]
    ),
    "greetings_exclude": lambda o, wanted, _: _left(
        [one for one in wanted if one in o.card["greetings"]]
    ),
    "creator_notes": lambda o, wanted, _: _same(o.card["creator_notes"], wanted),
    "export": _in_exports(lambda found, wanted: found == wanted),
    "export_startswith": _in_exports(lambda found, wanted: found[: len(wanted)] == wanted),
    "export_number_range": _in_exports(lambda found, wanted: wanted[0] <= found <= wanted[1]),
    "export_v2": _in_v2(lambda found, wanted: found == wanted),
    "export_v2_contains": _in_v2(lambda found, wanted: wanted in found),
    "warnings_min": lambda o, wanted, _: "" if len(_notices(o)) >= wanted else "too few",
    "warnings_max": lambda o, wanted, _: "" if len(_notices(o)) <= wanted else f"{_notices(o)}",
}
