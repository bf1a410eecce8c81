"""Test that no command shows what a `view` lock hides from the person who types.

A knowledge base and a page are visible to Admins only. An NPC finds them, so its prompts, records,
searches and memories contain a marked word. Each switch of each command is in one of two tables, so
a new switch cannot stay untested.
"""

import json
from dataclasses import replace
from unittest.mock import patch

import pytest

from evennia_ai import models
from evennia_ai.commands.cmdset import AICmdSet
from evennia_ai.engine.actors import THE_GAME, trusted
from evennia_ai.engine.history.records import NewRecord, RecordKind
from evennia_ai.engine.knowledge.meta_prompt import TOOL
from evennia_ai.engine.knowledge.pages.page import BaseInfo, PageDraft, page_name
from evennia_ai.engine.knowledge.restricted.mediation import PagePassage
from evennia_ai.engine.memory.memories import Memory
from evennia_ai.engine.prompt.components import Scope
from evennia_ai.engine.prompt.messages import ToolCall
from evennia_ai.npc.npc_settings import change_settings
from evennia_ai.services.llm.chat import ChatReply
from evennia_ai.store import memories
from evennia_ai.store.history import conversations, turns
from evennia_ai.store.history.conversations import conversations_of
from evennia_ai.store.knowledge import knowledge_bases, knowledge_searches, page_drafts, pages
from evennia_ai.store.knowledge.knowledge_searches import NewSearch
from tests.npc.knowledge.cellars import a_page, written

CANARY = "Mandragora"
PASSAGE = f"The smugglers keep their {CANARY} under the fourth step of the cellar stairs by night."
ADMINS = "view:perm(Admin)"

# Switches that show texts of prompts, records, memories or pages. Each has the lines to type, and
# whether a viewer whom the lock admits must read the marked word.
SHOWS = {
    "ai/context": (
        [
            "ai/context oren",
            *(f"ai/context oren = {part}" for part in ("full", "history", "lore", "left out")),
            *(f"ai/context oren/{turn} = changes" for turn in (2, 3)),
        ],
        True,
    ),
    "ai/why": (
        [
            *(f"ai/why oren = {number}" for number in range(14)),
            *("ai/why oren/1", "ai/why oren/2", "ai/why oren/3", "ai/why oren = kb_meta_prompt"),
            *(f"ai/why oren/3 = {number}" for number in range(14)),
            *("ai/why oren = memory:1", "ai/why oren/4 = memory:1", "ai/why oren/4 = tool"),
        ],
        True,
    ),
    "ai/replay": (
        ["ai/replay oren = 1 full", "ai/replay oren = 2 full", "ai/replay oren = 3 full"],
        True,
    ),
    "ai/history": (["ai/history oren = full", "ai/history oren/2 = full"], True),
    "ai/memory": (
        ["ai/memory oren", "ai/memory oren/#{memory}", "ai/memory oren/#{memory} = importance 8"],
        True,
    ),
    "ai/debug": ([f"ai/debug oren/{turn}" for turn in (1, 2, 3)], True),
    "ai/branch": (["ai/branch oren/3", "ai/branch oren"], False),
    "ai/branch/prompt": (["ai/branch oren/3", "ai/branch/prompt oren = full"], False),
    "ai/export": (["ai/export oren/{conversation}"], False),
    "ai/request": (["ai/request oren/3"], False),
    "component/": (["component oren"], False),
    "component/preview": (["component/preview oren", "component/preview oren = And now?"], False),
    "component/preview/full": (
        ["component/preview/full oren", "component/preview/full oren = And now?"],
        True,
    ),
    "lore/why": (["lore/why oren = kb_meta_prompt"], True),
    "kb/": (
        ["kb", "kb secrets", "kb secrets/The Hoard", "kb cellar/The Hoard"],
        True,
    ),
    "kb/pages": (["kb/pages secrets", "kb/pages cellar"], False),
    "kb/search": (["kb/search secrets = smugglers", "kb/search cellar = smugglers"], True),
    "kb/links": (["kb/links secrets/The Hoard", "kb/links cellar/Stairs"], False),
    "kb/requires": (["kb/requires secrets/The Hoard"], False),
    "kb/hints": (["kb/hints secrets", "kb/hints cellar", "kb/hints cellar/The Hoard"], True),
    "kb/revisions": (["kb/revisions secrets/The Hoard", "kb/revisions cellar/The Hoard"], False),
    "kb/vault": (["kb/vault cellar", "kb/vault secrets"], True),
    "kb/drafts": (["kb/drafts", "kb/drafts cellar"], False),
    "kb/draft": (["kb/draft {draft}"], True),
    "lorekeeper/context": (["lorekeeper/context = {draft}"], True),
    "ai/log": (["ai/log oren"], False),
    "ai/mode": (["ai/mode oren"], False),
    "ai/cache": (["ai/cache oren"], False),
    "ai/verify": (["ai/verify oren"], False),
    "ai/": (["ai", "ai oren"], False),
    "lore/test": (["lore/test oren = the cellar"], False),
}

# Switches that show no such text. Those that change a page are refused like `kb/show`.
SHOWS_NOTHING = {
    *(
        "ai/branch/close",
        "ai/check",
        "ai/compact",
        "ai/forecast",
        "ai/forget",
        "ai/import",
        "ai/limits",
        "ai/list",
        "ai/reports",
        "ai/start",
        "ai/tell",
        "ai/watch",
        "ai/off",
        "ai/on",
    ),
    *("ai/correct", "ai/reset", "ai/retry", "ai/undo"),
    # ai/kept refuses a case with texts that are hidden from the caller (commands/ai/kept.py).
    *("ai/keep", "ai/kept", "ai/kept/accept"),
    *("ai/pause", "ai/profile", "ai/resume", "ai/set", "ai/startall", "ai/stopall", "ai/tools"),
    *(f"card/{verb}" for verb in ("", "approve", "assign", "export", "grant", "greeting")),
    *(f"card/{verb}" for verb in ("import", "reject", "remove", "report", "revert", "revisions")),
    *("card/revoke", "card/unassign", "card/create", "card/edit", "card/spawn"),
    "card/despawn",
    *(f"component/{verb}" for verb in ("context", "create", "depth", "edit", "on")),
    *(f"component/{verb}" for verb in ("move", "off", "order", "remove", "revert", "revisions")),
    *(f"component/{verb}" for verb in ("description", "name", "priority", "required", "role")),
    *("component/volatile", "component/when"),
    *(f"kb/{verb}" for verb in ("approve", "assign", "edit", "hints/remove", "import", "lock")),
    *(
        f"kb/{verb}"
        for verb in ("import/run", "create", "reject", "remove", "rename", "restricted")
    ),
    *("kb/release", "kb/revert", "kb/set", "kb/unassign"),
    *(f"lore/{verb}" for verb in ("", "assign", "create", "depth", "unassign", "edit", "on")),
    *(f"lore/{verb}" for verb in ("export", "import", "keys", "lint", "lock", "mode", "off")),
    *(f"lore/{verb}" for verb in ("order", "position", "remove", "revert", "revisions")),
    *("lore/secondary", "lore/set"),
    *(f"lorekeeper/{verb}" for verb in ("", "in", "pages", "revise", "type")),
    *(f"note/{verb}" for verb in ("", "remove", "depth", "edit", "every", "mode")),
    *(f"note/{verb}" for verb in ("off", "on", "order", "place", "revert", "revisions", "role")),
    "note/when",
    *(f"persona/{verb}" for verb in ("", "remove", "place")),
    *(f"preset/{verb}" for verb in ("", "approve", "assign", "export", "grant", "import")),
    *(f"preset/{verb}" for verb in ("reject", "remove", "report", "revert", "revisions")),
    *(f"preset/{verb}" for verb in ("revoke", "switch", "unassign")),
    *(f"regex/{verb}" for verb in ("", "create", "edit", "export", "import", "off", "on")),
    *(f"regex/{verb}" for verb in ("remove", "revert", "revisions", "test")),
    # A player reads only what is about themselves (npc/mind/own_data.py).
    *("ai me/", "ai me/export", "ai me/forget"),
    *("ai language/", "ai off/", "ai report/", "ask /", "ignore/", "read/", "show/", "talk/"),
}

VIEWERS = {"Player": False, "Builder": False, "Admin": True, "superuser": True}


def test_every_switch_is_in_exactly_one_table():
    ours = {f"{command.key}/{verb}" for command in AICmdSet() for verb in command.verbs}
    assert ours == SHOWS.keys() | SHOWS_NOTHING
    assert not SHOWS.keys() & SHOWS_NOTHING


@pytest.fixture(scope="module")
def searched(beforehand):
    """The IDs from `search`, which runs once, because no test changes its rows."""
    return beforehand(search)


def search(stage):
    """Let Oren search what only Admins may see, repeat it and remember it. Return the IDs."""
    for key, locks, page_locks in (("secrets", ADMINS, ""), ("cellar", "", ADMINS)):
        summary = f"Where the {CANARY} is." if locks else ""
        info = BaseInfo(key=key, name=key.title(), summary=summary, locks=locks)
        knowledge_bases.save_base(info, by=trusted("Ada"))
        page = a_page("The Hoard", PASSAGE, fields={"hints": [f"Ask for {CANARY}."]})
        pages.save_page(key, PageDraft(page=_locked(page, page_locks), was="", by=trusted("Ada")))
        knowledge_bases.assign_base(key, Scope(kind="npc", ref=stage.npc.ai.ref), by=trusted("Ada"))
    written("cellar", a_page("Stairs", "Four steps. See [[The Hoard]]."))
    change_settings(stage.npc, tools=(TOOL, "remember"), by=THE_GAME)
    stage.talks_with(
        *(_calls(TOOL, query=f"smugglers {CANARY}", bases=["secrets"]), f"Hm. {PASSAGE}"),
        *(_calls(TOOL, query="smugglers cellar", bases=["cellar"]), "I will not say."),
        "As I said.",
    )
    stage.says(stage.anna, "Oren, what of the smugglers?")
    stage.says(stage.anna, "Oren, and of the cellar?")
    known = Memory(
        id=memories.NEW,
        text=f"The {CANARY} of the smugglers lies low.",
        created_at=1.0,
        recalled_at=1.0,
        turn=2,
    )
    memory = memories.add_memory(stage.npc.ai.ref, known, by=trusted("npc"), most=100).memory
    stage.says(stage.anna, "Oren, are the smugglers about?")
    (room,) = conversations_of(stage.npc.ai.ref)
    return {
        "memory": memory.id,
        "conversation": room.id,
        "draft": _a_draft(),
        "vault": _vaulted(room),
    }


def _locked(page, locks):
    return replace(page, locks=locks)


def _calls(tool, **arguments):
    call = ToolCall(id="x", name=tool, arguments=json.dumps(arguments))
    return ChatReply(text="", model="npc", tool_calls=(call,))


def _a_draft():
    """Store a draft of the lorekeeper that was made from the hidden page."""
    one = {"section": "encyclopedia", "page": "The Hoard", "base": "cellar", "revision": "1"}
    told = {**one, "why": f"named: {CANARY}", "sha256": "0" * 64, "depth": 0, "score": 1.0}
    meta = {
        "task_type": "article",
        "type_from": "planner",
        "entities": [CANARY],
        "base": "cellar",
        "bypassed": False,
        "reason": "",
        "model": "m",
        "tokens": {"total": 1, "limit": 2},
        "pages": [told],
        "dropped": [],
        "warnings": [],
        "steps": [],
    }
    draft = PageDraft(
        page=a_page("New", f"On {CANARY}."), was="", by=trusted("Ada"), note="article"
    )
    return page_drafts.add_draft("cellar", draft, task="Write.", context_meta=meta).number


def _vaulted(room):
    """Store a passage of the hidden page in the vault of a base that builders may see."""
    chunk = PagePassage(
        base="cellar",
        base_name="Cellar",
        title="The Hoard",
        revision="1",
        score=1.0,
        content=PASSAGE,
    )
    new = NewSearch(
        conversation=room,
        turn=99,
        speaker_ref="",
        bases=("cellar",),
        query="q",
        restricted=True,
        mode="rag_retrieval",
        total=1,
        sent=1,
    )
    return knowledge_searches.begin_search(new, [chunk], vaulted=[chunk])


@pytest.fixture
def looks(stage, tmp_path):
    """A function that returns what a person with a given permission reads after typing lines."""
    from django.test import override_settings

    from tests.commands.stage import _at_once, hearing

    def read(rank, *lines):
        viewer = stage.make("Mara", "evennia.objects.objects.DefaultCharacter")
        viewer.permissions.clear()
        if rank != "superuser":
            viewer.permissions.add(rank)
        is_super = patch.object(type(viewer), "is_superuser", rank == "superuser")
        with is_super, hearing(viewer) as heard:
            viewer.locks.cache_lock_bypass(viewer)
            with patch("evennia.commands.cmdhandler.deferLater", _at_once):
                for line in lines:
                    viewer.execute_cmd(line)
        return "\n".join(heard)

    with override_settings(EVENNIA_AI_CARD_FOLDER=str(tmp_path)):
        yield read


@pytest.mark.long
@pytest.mark.req("S4-55")
@pytest.mark.parametrize("rank", VIEWERS)
def test_commands_hide_pages_that_a_view_lock_hides(searched, looks, rank):
    may = VIEWERS[rank]
    shown = {}
    for face, (lines, tells) in SHOWS.items():
        told = looks(rank, *(line.format(**searched) for line in lines))
        shown[face] = CANARY in told
        assert told.strip(), face
        if may and tells:
            assert CANARY in told, face
    if not may:
        assert [face for face, has in shown.items() if has] == []


def test_withheld_text_shows_the_lock_and_not_the_length(searched, looks):
    told = looks("Builder", "ai/replay oren = 2 full", "ai/debug oren/2", "ai/history oren = full")
    assert "[withheld: knowledge base 'secrets'; its view lock hides it from you]" in _flat(told)
    assert "[withheld: a page of knowledge base 'cellar'; its view lock" in _flat(told)
    assert "The Hoard" not in told
    assert str(len(PASSAGE)) not in told


def test_branch_is_refused_for_a_viewer_who_may_not_see_the_turn(searched, looks):
    assert "hidden from you by a lock" in _flat(looks("Builder", "ai/branch oren/3"))
    assert "Branch of Oren from turn" in looks("Admin", "ai/branch oren/3")


def test_prompt_hash_is_hidden_from_a_viewer_who_may_not_see_the_whole_prompt(
    stage, searched, looks
):
    sent = turns.get_turn(stage.npc.ai.ref, 2).manifest.sha256
    told = looks("Builder", "ai/replay oren = 2 full")
    assert "the same bytes as were sent" in told and sent not in told
    assert "Hidden from you: 2 messages, 1 fact." in _flat(told)
    assert f"sha256 {sent}" in looks("Admin", "ai/replay oren = 2 full")


@pytest.mark.parametrize("typed", ["ai/export oren/{conversation}", "ai/request oren/3"])
def test_export_writes_no_file_for_a_viewer_who_may_not_see_the_content(
    searched, looks, tmp_path, typed
):
    line = typed.format(**searched)
    assert "othing was written" in looks("Builder", line)
    assert list(tmp_path.iterdir()) == []
    looks("Admin", line)
    (made,) = tmp_path.iterdir()
    assert CANARY in made.read_text()


def test_summary_of_hidden_text_is_hidden(stage, searched, looks):
    (room,) = conversations_of(stage.npc.ai.ref)
    new = NewRecord(kind=RecordKind.SUMMARY, role="system", body=f"{CANARY} lies low.")
    conversations.append_records(room, [new])
    assert CANARY not in looks("Builder", "ai/history oren = full")
    assert CANARY in looks("Admin", "ai/history oren = full")


def test_change_of_a_hidden_memory_is_refused_without_showing_the_text(searched, looks):
    for value in ("importance 8", "remove", "Something else."):
        told = looks("Builder", f"ai/memory oren/#{searched['memory']} = {value}")
        assert "Nothing was changed" in told
        assert CANARY not in told


# Acts after which an old prompt must still hide the text, although the lock may be gone.
UNDOINGS = {
    "the page is renamed": lambda: pages.rename_page(
        "cellar", page_name("The Hoard"), page_name("Old Hoard"), by=trusted("Ada")
    ),
    "the page is removed": lambda: pages.remove_page(
        "cellar", page_name("The Hoard"), was="1", by=trusted("Ada")
    ),
    "both bases are removed": lambda: _removed("secrets", "cellar"),
    "both bases are made again": lambda: _made_again("secrets", "cellar"),
}


def _removed(*keys):
    for key in keys:
        knowledge_bases.remove_base(key, by=trusted("Ada"))


def _made_again(*keys):
    locks = BaseInfo(key="other", name="Other", locks=ADMINS)
    knowledge_bases.save_base(locks, by=trusted("Ada"))
    _removed(*keys)
    for key in keys:
        knowledge_bases.save_base(BaseInfo(key=key, name=key), by=trusted("Mara"))


@pytest.mark.parametrize("undoing", UNDOINGS)
def test_text_of_a_hidden_page_stays_hidden_after_rename_or_removal(searched, looks, undoing):
    UNDOINGS[undoing]()
    told = looks("Builder", *(f"ai/replay oren = {turn} full" for turn in (1, 2, 3, 4)))
    assert "Turn 4 of Oren" in told
    assert PASSAGE not in _flat(told)
    assert "[secrets] The Hoard" not in told and "[cellar] The Hoard" not in told


def test_search_result_from_an_unknown_page_is_hidden(searched, looks):
    models.VaultedChunk.objects.all().delete()
    models.KnowledgeSearch.objects.all().delete()
    told = looks("Builder", "ai/replay oren = 2 full", "ai/history oren = full")
    assert "from an unknown page; its view lock" in _flat(told)
    assert "] The Hoard" not in told


def test_viewer_sees_everything_after_the_locks_are_removed(searched, looks):
    for key in ("secrets", "cellar"):
        info = knowledge_bases.get_base(key)
        knowledge_bases.save_base(BaseInfo(key=key, name=info.name), by=trusted("Ada"))
    page = pages.page_or_none("cellar", page_name("The Hoard"))
    pages.save_page(
        "cellar", PageDraft(page=_locked(page, ""), was=page.revision, by=trusted("Ada"))
    )
    told = looks("Builder", "ai/replay oren = 2 full", "ai/history oren = full", "ai/memory oren")
    assert "withheld" not in told
    assert CANARY in told


def _flat(told):
    return " ".join(told.split())
