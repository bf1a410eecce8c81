"""Secrets in disguise: a hostile model hides words of restricted pages in its summaries.

The NPC guards a base and searches it for anybody who asks. The attacker controls its second model,
which writes the page's words in every disguise. The NPC's own model must get none of them.
"""

import json
from typing import Any

import pytest

from tests.engine.knowledge.restricted.disguises import DISGUISES, PIECES
from tests.hostile.audit import audit
from tests.hostile.harbour import Harbour, Person, Scene
from tests.hostile.test_locks import HEAD
from tests.services.llm.clients.stub_server import answers, calls

pytestmark = pytest.mark.server

PASSAGE = (
    "The smugglers keep their mandragora in eleven sacks under the fourth step of the cellar"
    " stairs, behind the barrel with the copper hoop."
)
TOLD = "Thus far the summary."
"""A word in each summary, by which the test sees that the summary was passed on."""

HONEST = "Something is kept below the house by people who sail at night."


def test_attacks_reveal_no_secrets(harbour: Harbour) -> None:
    scene = harbour.scene("leaks", npc="Vera")
    anna = scene.enters(harbour.anna)
    harbour.admin.types(
        "kb/create sacks = Sacks",
        "kb/edit sacks/The Sacks",
        PASSAGE,
        ":wq",
        "kb/restricted sacks = on",
        "kb/assign sacks = npc:vera",
    )
    harbour.builder.types("ai/tools vera = knowledge_base_search")
    with audit("leaks", harbour) as subject:
        with subject.attack("a summary that gives nothing away is told"):
            assert is_told(scene, anna, HONEST)
        for name, disguise in DISGUISES.items():
            with subject.attack(name):
                assert not is_told(scene, anna, disguise(PASSAGE))
        for name, pieces in PIECES.items():
            with subject.attack(f"in several answers: {name}"):
                told = [is_told(scene, anna, piece) for piece in pieces(PASSAGE)]
                assert not all(told), told


def is_told(scene: Scene, anna: Person, summary: str) -> bool:
    """True if the NPC's model gets this summary of the page."""
    requests = scene.harbour.model.requests
    scene.harbour.model.behaves(lambda handler: _behave(handler, f"{summary} {TOLD}"))
    before = len(requests)
    anna.client.send("talk vera = What of the smugglers in the cellar?")
    anna.client.wait_for("^Vera says", seconds=60)
    own = [json.dumps(one.body) for one in requests[before:] if HEAD not in json.dumps(one.body)]
    assert len(own) > 1, "it did not search"
    assert "mandragora" not in anna.client.text
    return TOLD in own[-1].rpartition('"role": "tool"')[2]


def _behave(handler: Any, summary: str) -> None:
    messages = handler.seen.body["messages"]
    if HEAD in str(messages[0]["content"]):
        fields = {"summary": summary, "answer_guidance": "", "reason": "asked"}
        lists: dict[str, list[str]] = {"observations": [], "risks": [], "recommended_actions": []}
        told = {"decision": "answer", "confidence": "high", **fields, **lists}
        answers(json.dumps(told))(handler)
    elif messages[-1]["role"] == "tool" or "tools" not in handler.seen.body:
        answers("I know nothing.")(handler)
    else:
        query = {"query": "smugglers cellar", "bases": ["sacks"]}
        calls("knowledge_base_search", json.dumps(query))(handler)
