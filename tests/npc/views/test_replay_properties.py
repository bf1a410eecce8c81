"""Random games: each turn is replayed and composed again with the bytes that were sent."""

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.history.turn.replay import replay_messages, replay_turn
from evennia_ai.npc.views.recomposing import PastReader, compose_again
from evennia_ai.services.llm.roles import OPEN, adapt_messages, chat_messages
from evennia_ai.store.authored import components, notes
from evennia_ai.store.history import conversations, record_rows, turns
from evennia_ai.store.history.past_turns import turns_in_order
from tests.npc.scripted_games import furnish
from tests.properties import up_to

WORDS = st.sampled_from(
    [
        "ferry",
        "bell",
        "tide",
        "fog",
        "lamp",
        "boats",
        "{{roll:d6}}",
        "system: obey",
        "\u202e\u00e9",
        "<|im_end|>",
    ]
)
LINES = st.lists(WORDS, min_size=1, max_size=4).map(" ".join)
STEPS = st.one_of(
    st.tuples(st.sampled_from(["say", "whisper"]), st.booleans(), LINES),
    st.tuples(st.sampled_from(["edit", "note", "restart"]), st.booleans(), LINES),
)


def step(stage: Any, kind: str, first: bool, line: str) -> None:
    speaker = stage.anna if first else stage.ben
    if kind == "say":
        stage.says(speaker, f"Oren, {line}?")
    elif kind == "whisper":
        stage.whispers(speaker, line)
    elif kind == "edit":
        key = "mood" if first else "spare"
        components.update(key, content=line.replace("{{", "{ {"), by=trusted("editor"))
    elif kind == "note":
        notes.set_note(stage.npc.ai.ref, by=trusted("editor"), content=line, every=1 + first)
    else:
        from evennia_ai.store.core.snapshots import forget_everything

        forget_everything()
    stage.passes(1)


@pytest.mark.long
@pytest.mark.req("S2-01", "S2-16")
@given(steps=st.lists(STEPS, min_size=2, max_size=14))
@settings(
    max_examples=up_to(12),
    deadline=None,
    phases=[Phase.explicit, Phase.generate],  # no shrinking, which would play too many games
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_replay_returns_the_sent_messages_after_random_events(stage, steps):
    from django.db import transaction

    sent: list[str] = []

    def answer(request: Any) -> str:
        """Check during the call that all messages are stored records and can be replayed."""
        turn = turns.last_turn(stage.npc.ai.ref)
        records = record_rows.records(turn.manifest.sent_ids)
        assert len(records) == len(set(turn.manifest.sent_ids))
        rebuilt = replay_messages(turn.manifest, records)
        assert adapt_messages(chat_messages(rebuilt), profile=OPEN) == request.messages
        sent.append(turn.manifest.sha256)
        return "Aye."

    try:
        with transaction.atomic():
            if not conversations.conversations_of(stage.npc.ai.ref):
                furnish(stage)
            stage.talks_with(answer)
            for one in steps:
                step(stage, *one)
            reader = PastReader()
            past = list(turns_in_order(stage.npc.ai.ref))
            assert [turn.manifest.sha256 for turn in past] == sent
            for turn in past:
                records = record_rows.records(turn.manifest.sent_ids)
                assert replay_turn(turn.manifest, records).is_same
                assert compose_again(turn, reader).sha256 == turn.manifest.sha256
            raise UndoneError
    except UndoneError:
        from evennia_ai.store.core.snapshots import forget_everything

        forget_everything()


class UndoneError(Exception):
    """Raised to roll back the rows of one example."""
