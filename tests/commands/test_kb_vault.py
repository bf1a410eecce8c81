"""`kb/vault`: staff read what restricted searches found, and each look is recorded."""

import pytest

from evennia_ai.engine.knowledge.restricted.mediation import PagePassage
from evennia_ai.store.history.conversations import get_or_open_conversation
from evennia_ai.store.knowledge import knowledge_searches as searches
from tests.commands.knowledge_bases import make_base
from tests.commands.stage import one_line


@pytest.fixture
def secret(stage):
    """Store a restricted base in which a search found one passage."""
    make_base("secret", {}, restricted=True)
    talk = get_or_open_conversation(stage.npc.ai.ref, kind="room", place_ref=str(stage.room.id))
    found = PagePassage(
        base="secret",
        base_name="Secret",
        title="The Cellar",
        revision="3",
        score=1.0,
        content="Salt.",
    )
    searches.begin_search(
        searches.NewSearch(
            conversation=talk,
            turn=1,
            speaker_ref="7",
            bases=("secret",),
            query="cellar",
            restricted=True,
            mode="rag_retrieval",
            total=1,
            sent=1,
        ),
        [found],
        vaulted=[found],
    )


def test_vault_is_shown_and_the_look_is_recorded(stage, secret):
    told = stage.builds("kb/vault secret")
    assert "The Cellar, revision 3" in told
    assert "Salt." in told
    assert [(one.by, one.chunks) for one in searches.vault_readings("secret")] == [("Mara", 1)]
    assert "Mara, passages: 1" in stage.builds("kb/vault secret = readings")


def test_vault_of_a_hidden_knowledge_base_is_hidden(stage, secret):
    stage.builds("kb/set secret/locks = view:perm(Admin)", "yes")
    assert "no knowledge base 'secret'" in one_line(stage.builds("kb/vault secret"))
    assert searches.vault_readings("secret") == ()


def test_a_vault_is_emptied(stage, secret):
    assert "passages: 1" in one_line(stage.builds("kb/vault secret = empty"))
    assert "is empty" in one_line(stage.builds("kb/vault secret"))


def test_unknown_value_opens_no_vault(stage, secret):
    for typed in ("kb/vault", "kb/vault secret = all", "kb/vault secret =", "kb/vault nobody"):
        assert "Salt." not in one_line(stage.builds(typed)), typed
    assert searches.vault_readings("secret") == ()


def test_a_knowledge_base_is_removed_with_its_vault(stage, secret):
    stage.builds("kb/remove secret", "yes", "kb/create secret")
    assert "is empty" in one_line(stage.builds("kb/vault secret"))
