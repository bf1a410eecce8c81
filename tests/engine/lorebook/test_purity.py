"""Tests that equal inputs give equal results, whatever was cached in earlier turns.

One run keeps its books and its history over all turns, with changing rules. The other run reads
them anew in each turn. Both must give the same results.
"""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from evennia_ai.engine.lorebook.activation.activation import Activation
from evennia_ai.engine.lorebook.activation.passes import activate_lore
from evennia_ai.engine.lorebook.activation.timers import NO_STATE, Clock, LoreState
from evennia_ai.engine.lorebook.book import Lorebook
from evennia_ai.engine.lorebook.rules import ActivationRules, read_rules
from evennia_ai.engine.lorebook.scan.window import Scan
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import event_message, said
from evennia_ai.engine.prompt.tokens import TokenCounter
from tests.engine.lorebook.builders import WORDS, a_book, an_entry

LETTERS = TokenCounter(name="letters", version="1", count=len)
WORDS_SAID = ["coin", "gate", "tower", "ann", "龙"]
PEOPLE = ["Ann", "Bob"]

texts = st.lists(st.sampled_from(WORDS_SAID), max_size=4).map(" ".join)
keys = st.lists(
    st.sampled_from([*WORDS_SAID, "{{user}}", "{{pick::coin,gate}}", "/co.n/i", "/ga+te\\b.*tow/"]),
    min_size=1,
    max_size=2,
)
contents = st.tuples(
    st.sampled_from(["", "@@keep_activate_after_match\n", "@@dont_activate_after_match\n"]),
    texts,
    st.sampled_from(["", " {{user}}", " {{random::coin,gate}}"]),
).map("".join)
v3_entries = st.builds(
    lambda content, keys, more, extensions: an_entry(
        content, keys=keys, extensions=extensions, **more
    ),
    contents,
    keys,
    st.fixed_dictionaries(
        {},
        optional={
            "constant": st.booleans(),
            "secondary_keys": keys,
            "selective": st.booleans(),
            "insertion_order": st.integers(0, 2),
            "use_regex": st.just(False),
        },
    ),
    st.fixed_dictionaries(
        {},
        optional={
            "sticky": st.integers(0, 2),
            "cooldown": st.integers(0, 2),
            "group": st.sampled_from(["", "g", "g,h"]),
            "probability": st.sampled_from([50, 100]),
            "exclude_recursion": st.booleans(),
            "delay_until_recursion": st.integers(0, 2),
            "scan_depth": st.integers(0, 3),
        },
    ),
)
rules = st.fixed_dictionaries(
    {"rules": st.sampled_from(["evennia_ai", "sillytavern"]), "recursive": st.booleans()},
    optional={
        "case_sensitive": st.booleans(),
        "match_whole_words": st.booleans(),
        "include_names": st.booleans(),
        "scan_depth": st.integers(0, 3),
        "budget_tokens": st.integers(0, 20),
        "speaker_share_percent": st.sampled_from([30, 100]),
        "speaker_matches": st.integers(0, 1),
        "min_activations": st.integers(0, 2),
        "group_scoring": st.booleans(),
        "strategy": st.sampled_from(["evenly", "character_first", "global_first"]),
        "dry_run": st.booleans(),
        "most_woken": st.integers(0, 2),
        "clock": st.sampled_from(["turns", "messages"]),
    },
).map(read_rules)
turns = st.lists(
    st.tuples(st.sampled_from(PEOPLE), texts, rules, st.booleans(), st.sampled_from(PEOPLE)),
    min_size=2,
    max_size=4,
)


@settings(deadline=None)
@given(st.lists(v3_entries, min_size=1, max_size=4), st.lists(v3_entries, max_size=2), turns)
def test_activation_does_not_depend_on_caches_of_other_turns(first, second, turns):
    def books() -> list[Lorebook]:
        return [a_book(*first, attach="npc"), a_book(*second, label="other")]

    used, history, state, lines = books(), History(), NO_STATE, []
    for number, (who, text, rules, counts_words, user) in enumerate(turns, start=1):
        how: dict[str, Any] = {
            "event": event_message(text, name=who),
            "rules": rules,
            "counter": WORDS if counts_words else LETTERS,
            "user": user,
            "number": number,
            "state": state,
        }
        warm = a_turn(used, history, **how)
        cold = a_turn(books(), History(said(*line[:2], name=line[2]) for line in lines), **how)
        assert told(warm) == told(cold)
        state = warm.after
        more = [("user", text, who), ("assistant", "coin", None)]
        lines += more
        history = history.appended(*(said(*line[:2], name=line[2]) for line in more))


def a_turn(
    books: list[Lorebook],
    history: History,
    *,
    event: Any,
    rules: ActivationRules,
    counter: TokenCounter,
    user: str,
    number: int,
    state: LoreState,
) -> Activation:
    return activate_lore(
        books,
        Scan(history=history, event=event),
        rules=rules,
        limit_tokens=100,
        counter=counter,
        values={"user": user, "char": "Oren"},
        dice=Dice(turn=str(number), conversation="1"),
        state=state,
        clock=Clock(turns=number, messages=2 * number - 1),
    )


def told(result: Activation) -> Any:
    """Return everything that an activation returns, for comparison."""
    shown = ("label", "text", "tokens", "sort_key", "position", "revision")
    return (
        [[getattr(entry, name) for name in shown] for entry in result.entries],
        result.causes,
        result.verdicts,
        result.touched,
        result.silent,
        result.after,
    )


def test_speaker_of_an_entry_is_the_speaker_of_this_turn():
    def books() -> list[Lorebook]:
        return [a_book(an_entry("gate", keys=["coin"]), an_entry("A gate.", keys=["gate"]))]

    how: dict[str, Any] = {
        "rules": ActivationRules(speaker_matches=1),
        "counter": WORDS,
        "user": "",
        "number": 1,
        "state": NO_STATE,
    }
    used, history = books(), History([said("user", "Hm.", name=name) for name in PEOPLE])
    a_turn(used, history, event=event_message("coin", name="Ann"), **how)
    later = history.appended(said("user", "coin", name="Ann"))
    warm = a_turn(used, later, event=event_message("coin", name="Bob"), **how)
    assert told(warm) == told(
        a_turn(books(), History(later), event=event_message("coin", name="Bob"), **how)
    )
    assert "over the share of Bob" in warm.verdicts[1].reason
