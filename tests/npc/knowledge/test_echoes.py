"""An NPC that repeats the hint of a restricted base to a player: the log reports that."""

from dataclasses import replace

import pytest
from twisted.internet.defer import succeed

from evennia_ai.engine.actors import trusted
from evennia_ai.npc.knowledge.search import HintEchoes
from evennia_ai.npc.model_calls.limits import CallKey
from evennia_ai.npc.model_calls.watching import WatchedCall
from evennia_ai.services.llm.chat import ChatReply
from evennia_ai.store.knowledge import knowledge_bases
from tests.npc.knowledge.cellars import VAULT

NOTICED = "repeats the hint of the restricted knowledge base 'vault'"


def noticed(lines: list[str]) -> list[str]:
    return [line for line in lines if NOTICED in line]


@pytest.mark.req("S0-25")
@pytest.mark.parametrize("said", [VAULT.hint, f"Well: {VAULT.hint.upper()} That is all."])
def test_reply_that_repeats_the_hint_is_logged(cellar, logged, said):
    cellar.talks_with(said)
    cellar.says(cellar.anna, "Oren, what of the smugglers?")
    assert len(noticed(logged)) == 1


def test_only_the_start_of_a_reply_is_compared_in_a_thread(cellar, logged):
    compared = []

    def in_thread(work, reply, infos):
        compared.append((reply, [info.key for info in infos]))
        return succeed(work(reply, infos))

    echoes = HintEchoes(in_thread)
    call = WatchedCall(
        key=CallKey(npc_ref=str(cellar.npc.id), role="speaker"), endpoint="x", provider="x"
    )
    filler = "There is a lot of water in the harbour. " * 5_000
    for text in (f"{VAULT.hint} {filler}", f"{filler} {VAULT.hint}"):
        echoes.answered(call, ChatReply(text=text, model="x"), None)
    assert [keys for _, keys in compared] == [["vault"], ["vault"]]
    assert len(noticed(logged)) == 1


def test_reply_in_other_words_is_not_logged(cellar, logged):
    cellar.talks_with("Ask them yourself, and be friendly.")
    cellar.says(cellar.anna, "Oren, what of the smugglers?")
    assert noticed(logged) == []


def test_reply_that_repeats_the_hint_of_an_open_knowledge_base_is_not_logged(cellar, logged):
    knowledge_bases.save_base(replace(VAULT, restricted=False), by=trusted("builder"))
    cellar.talks_with(VAULT.hint)
    cellar.says(cellar.anna, "Oren, what of the smugglers?")
    assert noticed(logged) == []
