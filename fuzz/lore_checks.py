"""Check properties of lorebooks in conversations, and make both from bytes.

The bytes are a book as JSON text, or they choose parts of a book from awkward values. The same
bytes always give the same case, so a failure can be repeated. The fuzz target and the property
tests use this module.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.engine.foreign.documents import parse_json
from evennia_ai.engine.lorebook.activation.activation import Activation
from evennia_ai.engine.lorebook.activation.lore_budget import budget_of
from evennia_ai.engine.lorebook.activation.passes import activate_lore
from evennia_ai.engine.lorebook.activation.timers import NO_STATE, Clock, LoreState, state_from
from evennia_ai.engine.lorebook.book import Lorebook
from evennia_ai.engine.lorebook.rules import ActivationRules, read_rules
from evennia_ai.engine.lorebook.scan.window import Scan
from evennia_ai.engine.prompt.components import ALL_GRANTS, NO_GRANTS, Grants
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import Message, event_message, said
from evennia_ai.engine.prompt.tokens import TokenCounter
from evennia_ai.formats.lorebooks.books import read_book
from evennia_ai.formats.lorebooks.editing.lints import lint_book

WORDS: Final = TokenCounter("words", "1", lambda text: len(text.split()))
LIMIT_TOKENS: Final = 120
VALUES: Final = {"char": "Oren", "user": "Anna"}
FACTS: Final = {"npc.key": "Oren", "room.zones": ("harbour",), "tide": 3}
TURNS: Final = 3

KEYS: Final = (
    *("coin", "red coin", "Coin", "gate", "oin", "the", "tower", "a", "x" * 1001, "Anna"),
    *(
        "",
        " ",
        "\t\n",
        "\x00",
        "\u0130",
        "\ufb01sh",
        "\u212a",
        "e\u0301",
        "龙",
        "红龙",
        "ฉัน",
        "+1",
        "c++",
    ),
    *("/coi?n/", "/(a+)+$/", "/(?:a|aa)+$/i", "/[/", "//", "/^.*$/s", "/Anna: .*coin/m", "(co)in"),
    *("{{char}}", "{{roll:d6}}", "{{user}} coin", "{{", "@@activate", "coin,gate"),
)
TEXTS: Final = (
    *("", " ", "The gate.", "A coin for the tower.", "The red coin fits the gate of the tower."),
    *(
        "Coin coin coin coin coin coin coin coin coin coin.",
        "{{char}} and {{user}} roll {{roll:d6}}",
    ),
    *(
        "龙 guards the 红龙 tower",
        "\x00\u2028\ufeff",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaa!",
        "word " * 130,
    ),
)
HEADS: Final = (
    *("", "", "", "@@depth 2\n", "@@depth -1\n@@role user\n", "@@activate\n", "@@dont_activate\n"),
    *("@@scan_depth 1\n", "@@additional_keys gate, coin\n", "@@exclude_keys tower\n@@activate\n"),
    *(
        "@@activate_only_every 2\n",
        "@@activate_only_after 1\n",
        "@@is_greeting 1\n",
        "@@@role system\n",
    ),
    *(
        "@@keep_activate_after_match\n",
        "@@dont_activate_after_match\n",
        "@@ignore_on_max_context\n",
    ),
    *("@@unknown x\n@@@position personality\n", "@@reverse_depth 9\n", "@@is_user_icon x\n"),
)
LINES: Final = (
    *("", "hello", "a coin", "the red coin at the gate", "TOWER!", "龙", "@@activate {{char}}"),
    *(
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!",
        "\u0130 \ufb01sh e\u0301 \u212a",
        "\x01coin\x00gate",
        "c++ +1",
    ),
)
NAMES: Final = (None, "Anna", "Oren", "coin", "", "system", "A: b")
_COUNTS: Final = (None, 0, 1, 2, 3, 7, 10**9)
_ODD: Final = (None, True, False, -1, 2.5, "2", "", [], {}, [None], 10**18)

# The normal values of each field. `Choices.fields` sometimes takes one from `_ODD` instead.
_BOTH: Final = {
    "constant": (True, False),
    "selective": (True, False),
    "probability": (0, 50, 100),
    "useProbability": (True, False),
    "sticky": _COUNTS,
    "cooldown": _COUNTS,
    "delay": _COUNTS,
    "depth": _COUNTS,
    "role": (0, 1, 2),
    "position": (0, 1, 2, 3, 4, 5, 6, 7, 8),
    "group": ("", "weather", "weather, guards", "0,1"),
    "groupWeight": (0, 1, 100),
    "groupOverride": (True, False),
    "useGroupScoring": (True, False),
    "selectiveLogic": (0, 1, 2, 3, 4),
    "scanDepth": _COUNTS,
    "excludeRecursion": (True, False),
    "preventRecursion": (True, False),
    "delayUntilRecursion": (True, False, 1, 2, 3),
    "matchWholeWords": (True, False),
    "caseSensitive": (True, False),
    "ignoreBudget": (True, False),
    "outletName": ("", "tides"),
    "matchPersonaDescription": (True, False),
    "characterFilter": ({"isExclude": True, "names": ["Oren"], "tags": []},),
    "triggers": (["normal"], []),
}
_WORLD: Final = {"order": (-1, 0, 100, 0.5), "disable": (True, False), "uid": (0, 1, "x"), **_BOTH}
_V3: Final = {
    "insertion_order": (-1, 0, 100, 0.5),
    "enabled": (True, False),
    "id": (0, 1, "x"),
    "use_regex": (True, False),
    "constant": (True, False),
    "selective": (True, False),
    "priority": (0, 1, 100),
    "position": ("before_char", "after_char", "elsewhere"),
    "case_sensitive": (True, False),
}
_OWN: Final = {
    "clock": ("turns", "messages", "seconds", "years"),
    "npcs": (["Oren"], ["!Oren"]),
    "zones": (["harbour"], ["!harbour", "sea"]),
    "when": ([{"fact": "tide", "test": "at_least", "values": [2]}], [{"fact": "moon"}]),
    "group_cooldown": _COUNTS,
    "anchor": ({"component": "goals", "side": "before"}, {}),
    "outlet": ("tides",),
}
_RULES: Final = {
    "scan_depth": (0, 1, 2, 4, 1000),
    "recursive": (True, False),
    "max_recursion_steps": (0, 1, 2, 3),
    "budget_percent": (0, 1, 25, 100),
    "budget_tokens": (None, 0, 5, 40),
    "overflow": ("skip", "stop"),
    "min_activations": (0, 1, 9),
    "min_activations_depth_max": (0, 1, 3),
    "match_whole_words": (True, False),
    "case_sensitive": (True, False),
    "include_names": (True, False),
    "group_scoring": (True, False),
    "dice": (None, 0, 0.5, 0.999),
    "dry_run": (True, False),
    "clock": ("turns", "messages", "seconds"),
    "most_woken": (0, 1, 3),
    "speaker_matches": (0, 1),
    "speaker_share_percent": (10, 100),
    "strategy": ("evenly", "character_first", "global_first"),
}


class Choices:
    """Choices made by bytes. Each takes the next byte; without bytes, the first option is taken."""

    def __init__(self, data: bytes) -> None:
        self._left = iter(data)

    def below(self, count: int) -> int:
        return next(self._left, 0) % count

    def of(self, options: Sequence[Any]) -> Any:
        return options[self.below(len(options))]

    def some(self, options: Sequence[Any], *, most: int) -> list[Any]:
        return [self.of(options) for _ in range(self.below(most + 1))]

    def fields(self, table: dict[str, Sequence[Any]], *, most: int) -> dict[str, Any]:
        """Choose values for some fields of the table, one in sixteen from `_ODD`."""
        chosen = {}
        for name in self.some(tuple(table), most=most):
            chosen[name] = self.of(_ODD) if self.below(16) == 15 else self.of(table[name])
        return chosen


_GRANTS: Final[tuple[Grants, ...]] = (ALL_GRANTS, NO_GRANTS, frozenset({"roles"}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A book's file, the conversation that activates it, and the settings for `read_rules`."""

    book: Any
    grants: Grants
    messages: tuple[Message, ...]
    events: tuple[Message | None, ...]
    settings: dict[str, Any]


def case_of(data: bytes) -> Case:
    """Make the case of these bytes."""
    if data[:1] == b"{":
        return _case(_read_text(data.decode("utf-8", "replace")), Choices(data[-24:]))
    choices = Choices(data)
    return _case(_book(choices), choices)


def check(data: bytes) -> None:
    """Run the case of these bytes with both rule presets. AssertionError if a property fails."""
    case = case_of(data)
    try:
        book = read_book(case.book, label="book", grants=case.grants)
    except EvenniaAIError as error:
        _is_one_line(str(error))
        return
    for preset in ("evennia_ai", "sillytavern"):
        try:
            rules = read_rules({"rules": preset, **case.settings})
        except EvenniaAIError as error:
            _is_one_line(str(error))
            return
        _check_turns(book, case, rules)


def _check_turns(book: Lorebook, case: Case, rules: ActivationRules) -> None:
    never = {lint.uid for lint in lint_book(book, rules=rules) if lint.kind == "unreachable"}
    history, state = History(case.messages), NO_STATE
    for turn, event in enumerate(case.events, 1):
        result = _turn(book, history, event, rules=rules, turn=turn, state=state)
        check_result(result, book, rules=rules, before=state)
        woken = {entry.uid for entry in result.entries}
        assert not woken & never, f"a lint says these are unreachable: {woken & never}"
        if turn == TURNS:
            fresh = read_book(case.book, label="book", grants=case.grants)
            again = _turn(fresh, history, event, rules=rules, turn=turn, state=state)
            if not _ran_out_of_time(result) and not _ran_out_of_time(again):
                assert again.entries == result.entries, "a book that was used answers otherwise"
                assert again.verdicts == result.verdicts
                assert again.after == result.after
        state = state_from(json.loads(json.dumps(result.after.to_plain())))
        assert state == result.after, "the state is another one after it was stored"
        history = history.appended(*([event] if event else []), said("assistant", "A coin."))


def _ran_out_of_time(result: Activation) -> bool:
    """True if a regular expression was stopped. The result then depends on the clock."""
    return any(" took " in verdict.reason for verdict in result.verdicts)


def _turn(
    book: Lorebook,
    history: History,
    event: Message | None,
    *,
    rules: ActivationRules,
    turn: int,
    state: LoreState,
) -> Activation:
    return activate_lore(
        (book,),
        Scan(history=history, event=event, texts=("the tower",), sources={"persona": "a gate"}),
        rules=rules,
        limit_tokens=LIMIT_TOKENS,
        counter=WORDS,
        values=VALUES,
        dice=Dice(turn=str(turn), conversation="1"),
        state=state,
        clock=Clock(turns=turn, messages=len(history) + (event is not None), seconds=60 * turn),
        facts=FACTS,
    )


def check_result(
    result: Activation, book: Lorebook, *, rules: ActivationRules, before: LoreState
) -> None:
    """Check the properties of one activation of one book."""
    items = [f"lore:{book.label}#{entry.uid}" for entry in book.entries]
    assert [verdict.item for verdict in result.verdicts] == items, "not one verdict an entry"
    kept = {verdict.item for verdict in result.verdicts if verdict.kept}
    labels = [entry.label for entry in result.entries]
    assert len(set(labels)) == len(labels), "an entry is active twice"
    assert {f"lore:{label}" for label in labels} == kept, "verdicts disagree with the entries"
    assert all(verdict.reason for verdict in result.verdicts), "a verdict gives no reason"
    touched = [verdict.item for verdict in result.touched]
    assert len(set(touched)) == len(touched)
    assert kept <= set(touched)
    told = {f"lore:{label}" for silence in result.silent for label in silence.labels()}
    assert told | set(touched) == set(items), "an entry is neither touched nor silent"
    if rules.dry_run:
        assert result.after == before, "a dry run changed the state"
    if "positions" not in book.grants:
        positions = {entry.position for entry in result.entries}
        assert positions <= {"depth"}, "a book without the grant stands outside the history"
    if "roles" not in book.grants:
        roles = {entry.role for entry in result.entries}
        assert roles <= {"user"}, "a book without the grant has a role"
    if rules.rules == "evennia_ai":
        _check_budget(result, book, rules)


def _check_budget(result: Activation, book: Lorebook, rules: ActivationRules) -> None:
    own = {entry.uid: entry for entry in book.entries}
    trusted = "lore_budget" in book.grants
    spent = sum(
        entry.tokens for entry in result.entries if not (trusted and own[entry.uid].ignore_budget)
    )
    budget = budget_of(rules, LIMIT_TOKENS) if book.token_budget is None else book.token_budget
    assert spent <= budget, f"{spent} tokens of lore, {budget} allowed"
    assert all(entry.text.strip() for entry in result.entries), "an active entry says nothing"


def _is_one_line(text: str) -> None:
    assert "\n" not in text, "an error has more than one line"
    assert len(text) <= 2000, "an error is longer than anybody reads"


def _read_text(text: str) -> Any:
    try:
        return parse_json(text, kind="book", where="book")[0]
    except EvenniaAIError:
        return text


def _case(book: Any, choices: Choices) -> Case:
    messages = tuple(_message(choices) for _ in range(choices.below(7)))
    events = tuple(
        event_message(choices.of(LINES), name=choices.of(NAMES)) if choices.below(4) else None
        for _ in range(TURNS)
    )
    grants = choices.of(_GRANTS)
    settings = choices.fields(_RULES, most=6)
    return Case(book=book, grants=grants, messages=messages, events=events, settings=settings)


def _message(choices: Choices) -> Message:
    message = said(choices.of(("user", "assistant")), choices.of(LINES), name=choices.of(NAMES))
    return replace(message, counted=False) if choices.below(8) == 7 else message


def _book(choices: Choices) -> dict[str, Any]:
    make = choices.of((_world_entry, _v3_entry))
    entries = [make(choices) for _ in range(choices.below(12))]
    more = choices.fields(
        {
            "scan_depth": (None, 0, 1, 4),
            "token_budget": (None, 0, 9, 60),
            "recursive_scanning": (True, False),
        },
        most=3,
    )
    if make is _world_entry:
        return {"entries": {str(n): entry for n, entry in enumerate(entries)}, **more}
    return {"entries": entries, **more}


def _content(choices: Choices) -> str:
    return choices.of(HEADS) + choices.of(TEXTS)


def _world_entry(choices: Choices) -> dict[str, Any]:
    own = choices.fields(_OWN, most=2)
    return {
        "key": choices.some(KEYS, most=4),
        "keysecondary": choices.some(KEYS, most=2),
        "content": _content(choices),
        **choices.fields(_WORLD, most=6),
        **({"evennia_ai": own} if own else {}),
    }


def _v3_entry(choices: Choices) -> dict[str, Any]:
    own = choices.fields(_OWN, most=2)
    extensions = choices.fields(_BOTH, most=4) | ({"evennia_ai": own} if own else {})
    return {
        "keys": choices.some(KEYS, most=4),
        "secondary_keys": choices.some(KEYS, most=2),
        "content": _content(choices),
        "extensions": extensions,
        "enabled": True,
        "insertion_order": 100,
        "use_regex": False,
        **choices.fields(_V3, most=4),
    }
