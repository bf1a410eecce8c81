"""Successive prompts of any chat: each begins with the previous one, or a reason is declared."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from evennia_ai.engine.prompt.budget import BudgetRules
from evennia_ai.engine.prompt.expansion import ComponentSet
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import Message, said
from evennia_ai.engine.prompt.notes import NOTE_MODES, AuthorsNote
from evennia_ai.engine.prompt.persistent_texts import BLOCKS_MODES
from evennia_ai.engine.prompt.prompt import Prompt
from evennia_ai.engine.prompt.registry import with_statics
from tests.engine.lorebook.builders import a_book, an_entry
from tests.engine.prompt.builders import a_component, injected
from tests.engine.prompt.chats import Chat, shared
from tests.properties import up_to

WORDS = st.lists(st.sampled_from(["coin", "moon", "rope", "tide"]), min_size=1, max_size=8)
FACTS = st.sampled_from(["", "It rains.", "The sun is out.", "Night falls on the quay."])
NOTES = st.builds(
    AuthorsNote,
    content=st.sampled_from(["Be brief.", "{{mood}} and brief."]),
    depth=st.integers(0, 6),
    every=st.sampled_from([1, 1, 3]),
    mode=st.sampled_from(NOTE_MODES),
)
# Reasons that may end the prefix in any turn. The others need a cut, an edit or a changed setting.
EVERY_TURN = {"append", "dynamic", "moving"}


class Talk(RuleBasedStateMachine):
    """A chat with random texts and modes, and with edits, limits and compactions at times."""

    def __init__(self) -> None:
        super().__init__()
        self.edits = 0
        self.expected: set[str] = set()

    @initialize(
        layout=st.sampled_from(["cache", "cache", "classic"]),
        blocks=st.sampled_from(BLOCKS_MODES),
        notes=st.lists(NOTES, max_size=2),
        depth=st.sampled_from([0, 0, 2]),
        last=st.booleans(),
        mode=st.sampled_from(["floating", "frozen"]),
        limit=st.sampled_from([160, 400, 100_000]),
    )
    def begin(self, layout: str, limit: int, mode: Any, depth: int, last: bool, **how: Any) -> None:
        entries = [
            an_entry("Coins are shells.", keys=["coin"]),
            an_entry("The moon is far.", keys=["moon"], insertion_order=5),
            an_entry("@@depth 3\nRopes rot.", keys=["rope"]),
            an_entry("Always.", keys=[], constant=True),
            an_entry("Tides.", keys=["tide"], extensions={"evennia_ai": {"place": "at_mention"}}),
        ]
        self.components = [a_component("Rules.", id=1, key="rules", revision=1)]
        self.components += [injected("Deep.", depth, id=1301, key="deep")] if depth else []
        self.components += [a_component("Be kind.", id=5011, key="kind")] if last else []
        book = a_book(*entries, mode=mode)
        self.chat = Chat(self.components, books=(book,), layout=layout, limit=limit, **how)

    @rule(words=WORDS, facts=FACTS, mood=st.sampled_from(["Calm", "Cross"]))
    def answer(self, words: list[str], facts: str, mood: str) -> None:
        self.chat.turn(" ".join(words), facts=facts, values={"mood": mood})

    @rule(words=WORDS, facts=FACTS)
    def act_alone(self, words: list[str], facts: str) -> None:
        self.chat.turn(None, facts=facts, reply=" ".join(words))

    @rule(words=WORDS)
    def overhear(self, words: list[str]) -> None:
        self.chat.history = self.chat.history.appended(said("user", " ".join(words), name="Ben"))

    @rule()
    def edit(self) -> None:
        self.edits += 1
        text = f"Rules {self.edits}."
        self.components[0] = replace(self.components[0], content=text, revision=1 + self.edits)
        components = ComponentSet(with_statics(self.components))
        self.chat.inputs = replace(self.chat.inputs, components=components)

    @rule(limit=st.sampled_from([160, 400]))
    def set_another_limit(self, limit: int) -> None:
        rules = replace(self.chat.inputs.rules, budget=BudgetRules(limit_tokens=limit))
        self.chat.inputs = replace(self.chat.inputs, rules=rules)

    @rule()
    def compact(self) -> None:
        history = self.chat.history
        tail = list(history)[-3:]
        summary = said("user", "They spoke.")
        self.chat.history = History([summary, *tail], segment=history.segment + 1)
        self.chat.forget()

    def pair(self) -> tuple[Prompt, Prompt] | None:
        prompts = getattr(self, "chat", None) and self.chat.prompts
        return (prompts[-2], prompts[-1]) if prompts and len(prompts) > 1 else None

    @invariant()
    def every_break_is_declared(self) -> None:
        if pair := self.pair():
            older, newer = pair
            account = newer.account(older.sent)
            assert account.reason not in (None, "undeclared")
            assert account.shared_messages == shared(older, newer)
            assert (account.reason == "append") == (account.shared_messages == len(older.messages))

    @invariant()
    def a_breakpoint_outlives_a_turn_without_a_step(self) -> None:
        if pair := self.pair():
            older, newer = pair
            assert len(older.breakpoints) <= 4
            account = newer.account(older.sent)
            was_there = any(account.broken_by in _origins(m) for m in older.messages)
            foreseen = account.reason == "append" or (account.reason in EVERY_TURN and was_there)
            if foreseen and older.layout == "cache":
                assert all(spot < account.shared_messages for spot in older.breakpoints)

    @invariant()
    def the_limit_holds_and_nothing_stands_twice(self) -> None:
        prompts = getattr(self, "chat", None) and self.chat.prompts
        if prompts:
            newest = prompts[-1]
            assert newest.tokens <= newest.limit_tokens
            lore = [m.of for m in newest.messages if m.stays and m.of.startswith("lore:")]
            assert len(lore) == len(set(lore))


def _origins(message: Message) -> set[str]:
    return {part.origin for part in message.parts}


TestTalk = pytest.mark.req("S2-15", "S2-18")(Talk.TestCase)
TestTalk.settings = settings(max_examples=up_to(40), stateful_step_count=25, deadline=None)


def test_breakpoint_is_before_an_anchored_note_that_an_entry_at_a_mention_may_precede() -> None:
    talk = Talk()
    note = AuthorsNote(content="Be brief.", depth=0, every=1, mode="anchored")
    talk.begin(
        layout="cache",
        blocks="latest",
        notes=[note],
        depth=0,
        last=False,
        mode="floating",
        limit=160,
    )
    talk.answer(facts="", mood="Calm", words=["tide"])
    talk.act_alone(facts="", words=["coin"])
    talk.a_breakpoint_outlives_a_turn_without_a_step()


def test_prefix_break_is_declared_when_a_tail_note_is_sent_with_the_same_words_again() -> None:
    text = "{{mood}} and brief."
    talk = Talk()
    talk.begin(
        layout="cache",
        limit=160,
        mode="floating",
        depth=0,
        last=True,
        notes=[AuthorsNote(content=text, mode="tail"), AuthorsNote(content=text, depth=1)],
        blocks="appended",
    )
    talk.answer(["tide"], facts="The sun is out.", mood="Calm")
    talk.overhear(["coin"])
    talk.answer(["rope"], facts="The sun is out.", mood="Cross")
    talk.every_break_is_declared()
