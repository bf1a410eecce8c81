"""Pages behind an Admin's lock must not be visible to a Builder, on any screen.

An NPC that guards nothing finds a page of a base with `view:perm(Admin)`. A Builder then uses every
command that shows prompts, records or pages, and tries to remove the lock.
"""

import json
from typing import Any

import pytest

from tests.hostile.audit import audit
from tests.hostile.harbour import Harbour
from tests.services.llm.clients.stub_server import answers, calls

pytestmark = pytest.mark.server

CANARY = "Mandragora"
PASSAGE = f"The smugglers keep their {CANARY} under the fourth step of the cellar stairs by night."
HEAD = "stand between protected texts"
"""Words in the request to the model that writes safe summaries. Only this model reads the pages."""

LOOKS = (
    *(
        "ai grim",
        "ai/context grim = full",
        "ai/context grim = history",
        "ai/context grim = lore",
        "ai/context grim = left out",
        "ai/context grim = changes",
        "ai/history grim = full",
        "ai/history grim/1 = full",
        "ai/history grim/2 = full",
    ),
    *(
        "ai/replay grim = 1 full",
        "ai/replay grim = 2 full",
        "ai/why grim",
        "ai/why grim/1",
        "ai/why grim/2",
    ),
    *(f"ai/why grim = {number}" for number in range(10)),
    *(f"ai/why grim/1 = {number}" for number in range(10)),
    *("ai/why grim = tool", "ai/why grim = kb_meta_prompt", "ai/debug grim", "ai/debug grim/1"),
    *("ai/memory grim", "ai/log grim", "ai/cache grim", "ai/verify grim", "ai/mode grim"),
    *(
        "ai/export grim",
        "ai/compact grim",
        "component/preview/full grim",
        "component/preview/full grim = A",
    ),
    *("kb", "kb hoards", "kb/pages hoards", "kb/search hoards = smugglers", "kb/vault hoards"),
    *("kb hoards/The Hoard", "kb hoards/The Hoard/1", "kb/links hoards/The Hoard"),
    *("kb/requires hoards/The Hoard", "kb/revisions hoards/The Hoard", "kb/hints hoards"),
    *("kb/edit hoards/The Hoard", "kb/drafts hoards", "kb/vault hoards = readings"),
    *("lore/why grim = kb_meta_prompt", "lorekeeper hoards = smugglers"),
    *("examine grim", "examine grim/evennia_ai", "examine/object grim", "kb/import hoards"),
)
UNDOES = (
    *("kb/set hoards/locks = off", "kb/set hoards/locks = view:all()", "kb/remove hoards"),
    *("kb/lock hoards/The Hoard = off", "kb/lock hoards/The Hoard = view:all()"),
    *("kb/rename hoards/The Hoard = Old Hoard", "kb/remove hoards/The Hoard"),
    *("kb/revert hoards/The Hoard = 1", "kb/set hoards/mediation = hints"),
    *("kb/restricted hoards = off", "kb/unassign hoards = npc:grim", "kb/create hoards = Mine"),
    *("kb/assign hoards = game", "kb/set hoards/vault = on", "kb/set hoards/direct = 99999"),
)
UNTAGS = (
    *("@tag/del gard = outsider", "@tag/del gard", "@tag gard = outsider2", "@lock gard = x:all()"),
    *("@typeclass/reset gard = evennia_ai.typeclasses.AINPC", "@name gard = Gardd", "@wipe gard"),
    *("kb/release guarded = gardd", "kb/release guarded", "kb/restricted guarded = off"),
    *("kb/set guarded/locks = off", "kb/set guarded/mediation = hints", "kb/remove guarded"),
    *(
        "kb/unassign guarded = npc:gardd",
        "kb/assign guarded = game",
        "kb/set guarded/direct = 9999",
    ),
)


def test_attacks_do_not_get_past_locks(harbour: Harbour) -> None:
    scene = harbour.scene("locks", npc="Grim")
    anna, builder = scene.enters(harbour.anna), harbour.builder
    make_base(harbour, "hoards", "view:perm(Admin)", npc="grim")
    builder.types("ai/tools grim = knowledge_base_search")
    search(harbour, "hoards")
    scene.asks(anna, "talk grim = What of the smugglers?")
    scene.asks(anna, "talk grim = And by night?")
    with audit("locks", harbour) as subject:
        with subject.attack("the page was read at all"):
            assert CANARY in json.dumps(harbour.model.requests[-1].body)
            assert CANARY in harbour.admin.types(
                "ai/replay grim = 1 full", "ai/replay grim = 2 full"
            )
        for line in (*LOOKS, *UNDOES):
            with subject.attack(line):
                shown = builder.types(line, "no", ":q!", ":q")
                assert CANARY not in shown, shown
        with subject.attack("the lock is still there"):
            assert "view:perm(Admin)" in harbour.admin.types("kb hoards")
            for line in (
                "ai/replay grim = 1 full",
                "ai/history grim = full",
                "kb hoards/The Hoard",
            ):
                assert CANARY not in builder.types(line), line


def test_attacks_do_not_get_past_guards(harbour: Harbour) -> None:
    scene = harbour.scene("guards", npc="Gard")
    anna, builder = scene.enters(harbour.anna), harbour.builder
    make_base(harbour, "guarded", "restricted:tag(outsider);edit:perm(Admin)", npc="gard")
    harbour.admin.types("kb/restricted guarded = on", "@tag gard = outsider")
    search(harbour, "guarded")
    with audit("guards", harbour) as subject:
        with subject.attack("a guarded base is not read to who is asked"):
            is_guarded(harbour, anna)
        for line in UNTAGS:
            with subject.attack(line):
                builder.types(line, "no")
                is_guarded(harbour, anna)


def is_guarded(harbour: Harbour, anna: Any) -> None:
    """Check that the NPC searches, and that its model gets nothing of the page."""
    for name in ("gard", "gardd"):
        harbour.builder.types(f"ai/tools {name} = knowledge_base_search")
    before = len(harbour.model.requests)
    anna.client.send("say Gardd or Gard, what of the smugglers?")
    anna.client.wait_for("^Gardd? (says|shrugs)")
    sent = [json.dumps(one.body) for one in harbour.model.requests[before:]]
    assert len(sent) > 1, anna.client.text
    assert [one for one in sent if CANARY in one and HEAD not in one] == []


def make_base(harbour: Harbour, key: str, locks: str, *, npc: str) -> None:
    """Make a base with one page, which the superuser binds to the current NPC."""
    shown = harbour.admin.types(
        f"kb/create {key} = {key.title()}",
        f"kb/edit {key}/The Hoard",
        PASSAGE,
        ":wq",
        f"kb/set {key}/locks = {locks}",
        f"kb/assign {key} = npc:{npc}",
        f"kb {key}/The Hoard",
    )
    assert CANARY in shown, shown


def search(harbour: Harbour, key: str) -> None:
    """Let the model search the base until it has got a result."""
    query = json.dumps({"query": f"smugglers {CANARY[:4]}", "bases": [key]})

    def behave(handler: Any) -> None:
        messages = handler.seen.body["messages"]
        found = messages[-1]["role"] == "tool" or "tools" not in handler.seen.body
        (answers("I know nothing.") if found else calls("knowledge_base_search", query))(handler)

    harbour.model.behaves(behave)
