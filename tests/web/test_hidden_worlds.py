"""What a person is shown does not depend on texts that are hidden from them.

Two games are played that differ only in whispers, in a locked lore entry and in private memories.
In both, a builder has sixty texts that repeat the words of others or search for them. Every screen
and page of a builder must be equal in both games, letter by letter. Those of an Admin must differ.
"""

import json
import re
from itertools import product
from unittest.mock import patch

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.memory.memories import Memory
from evennia_ai.engine.prompt.components import GAME
from evennia_ai.store import memories
from evennia_ai.store.authored import lorebooks
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.history import turns
from evennia_ai.web.site import turn
from tests.conftest import forget_objects
from tests.npc.scripted_games import furnish

# The words of each pair have the same length, so they need the same tokens.
WORLDS = {
    "boat": (
        "Oren, the gold is under the blue boat, code ZEBRA-4471.",
        "The ferry abbess is the smuggler Quill.",
        "Anna hides her rings beneath the stove.",
    ),
    "mill": (
        "Oren, the corn is above the grey mill, code QUAIL-9032.",
        "The ferry warden is the murderer Brand.",
        "Anna keeps five seals within the clock.",
    ),
}

REPEATING = (
    "S {{lastMessage}} S",
    "S {{lastUserMessage}} S",
    "S {{lastCharMessage}} S",
    "S {{ lastUserMessage|upper }} S",
    "S {{ lastUserMessage|capitalize }} S",
    "S {{ lastMessage|lower }} S",
    "{% if 'blue' in lastUserMessage %}blue it is{% endif %}",
    "{% if 'blue' in lastMessage %}blue it is{% else %}not blue{% endif %}",
    "{{ nobody|default(lastUserMessage|trim) }}",
    "{{setvar::q::{{lastUserMessage}}}}set",
    "Y {{getvar::q}} Y",
    "{{addvar::r::{{lastMessage}}}}Z {{getvar::r}} Z",
    "{{random::{{lastMessage}}::{{lastMessage}}}}",
    "{{pick::{{lastUserMessage}}::{{lastMessage}}}}",
    "Twice {{lastMessage}} {{lastMessage}}",
    "Heard: {{outlet::rumours}}",
    "{{trim}} {{lastUserMessage}} {{trim}}",
)
ROLES = ("user", "system")
KEYS = (
    "/ZEBRA-4/",
    "/QUAIL-9/",
    "/under the bl/",
    "/above the gr/",
    "/the smuggler Q/",
    "/murderer B/",
    "blue boat",
    "grey mill",
    "Quill",
    "Brand",
    "/code [A-Z]{5}-4/",
    "/hides her rings/",
    "/five seals/",
)
PROBED = (
    "= depth 2",
    "= sticky 3",
    "= cooldown 2",
    "= delay 1",
    "= group spies",
    "= recursion_excluded yes",
    "= chance 90",
    "= scan_depth 1",
)


def of_a_builder():
    """Yield the lines that a builder types before anybody speaks."""
    for number, (role, text) in enumerate(product(ROLES, REPEATING)):
        yield f"component/create spy{number} = {5050 + number}, {role}: {text}"
    yield from (
        "note oren/spy = S {{lastUserMessage}} S",
        "note/depth oren/spy = 0",
        "note oren/tail = T {{lastMessage}} T",
        "note/mode oren/tail = tail",
        "note/role oren/tail = user",
        "lore/create spybook/always = boat: C {{lastMessage}} C",
        "lore/set spybook/always = constant yes",
        "lore/create spybook/outlet = boat: O {{lastMessage}} O",
        "lore/set spybook/outlet = constant yes",
        "lore/position spybook/outlet = outlet:rumours",
        "lore/create spybook/mention = gold: it was said",
        "lore/position spybook/mention = at_mention",
    )
    for number, key in enumerate(KEYS):
        yield f"lore/create spybook/k{number} = {key}: It was said, {number}."
        yield f"lore/create frozen/k{number} = {key}: It stays said, {number}."
        yield f"lore/set spybook/k{number} {PROBED[number % len(PROBED)]}"
    yield from (
        "lore/secondary spybook/k6 = gold",
        "lore/mode frozen = frozen",
        "lore/assign spybook = npc:oren",
        "lore/assign frozen = npc:oren",
    )


def played(stage, whispered, locked, learnt):
    """Play the game with these hidden texts: three private turns and two in the room."""
    furnish(stage)
    told = types(stage, "superuser", *of_a_builder())
    assert [one for one in told if re.search("is no|expected|not allowed|already|Usage", one)] == []
    entry = {"uid": 0, "key": ["ferry"], "content": locked, "order": 1}
    book = json.dumps({"entries": {"0": entry}})
    lorebooks.save_book("vault", book, by=trusted("Ada"))
    lorebooks.set_book_locks("vault", "view:perm(Admin)", by=trusted("Ada"))
    lorebooks.LOREBOOKS.assign("vault", GAME, by=trusted("Ada"))
    new = Memory(
        id=memories.NEW, text=learnt, created_at=1.0, learnt="private", about=str(stage.anna.id)
    )
    memories.add_memory(stage.npc.ai.ref, new, by=trusted("npc"), most=50)
    stage.talks_with(lambda request: "Aye, as you say.")
    stage.whispers(stage.anna, whispered)
    stage.says(stage.anna, "Oren, when does the ferry sail?")
    stage.whispers(stage.anna, whispered)
    stage.whispers(stage.anna, "Oren, and the rings?")
    stage.says(stage.anna, "Oren, is the boat here?")
    forget_everything()


def types(stage, rank, *lines):
    """Return for each line what somebody of this rank reads after typing it in Oren's room."""
    from tests.commands.stage import _at_once, hearing

    typist = stage.make("Mara", "evennia.objects.objects.DefaultCharacter")
    typist.permissions.clear()
    if rank != "superuser":
        typist.permissions.add(rank)
    told = []
    with patch.object(type(typist), "is_superuser", rank == "superuser"), hearing(typist) as heard:
        typist.locks.cache_lock_bypass(typist)
        with patch("evennia.commands.cmdhandler.deferLater", _at_once):
            for line in lines:
                typist.execute_cmd(line)
                told.append("\n".join(heard))
                heard.clear()
    typist.delete()
    return told


LINES = (
    *("component oren", "component/preview oren", "component/preview/full oren"),
    *("component/preview/full oren = Oren, the boat?", "component/preview/full oren = ferry"),
    *("ai/context oren", "ai/context oren = full", "ai/context oren = lore"),
    *("ai/context oren = history", "ai/context oren = left out", "ai/history oren = full"),
    *("ai/history oren/2 = full", "ai/memory oren", "ai/cache oren", "ai/log oren", "ai oren"),
    *("lore/test oren = Oren, the ferry?", "lore/test oren = Quill or Brand", "ai/request oren/1"),
    *(f"lore/why oren = spybook/k{number}" for number in range(len(KEYS))),
)
OF_TURNS = (
    *("ai/replay oren = {n} full", "ai/replay oren = {n}", "ai/why oren/{n}", "ai/debug oren/{n}"),
    *("ai/context oren/{n} = changes", "ai/context oren/{n} = full", "ai/why oren/{n} = spy0"),
    "ai/why oren/{n} = spybook#k0",
)
PAGES = (
    *("/ai/", "/ai/npc/{ref}/", "/ai/npc/{ref}/memory/", "/ai/live/", "/ai/lore/"),
    *("/ai/npc/{ref}/next/?say=Oren, the ferry?", "/ai/npc/{ref}/next/?say=the blue boat"),
    *("/ai/lore/spybook/", "/ai/lore/spybook/?show=awake", "/ai/lore/spybook/turns/?npc=oren"),
    *("/ai/lore/frozen/turns/?npc=oren", "/ai/npc/{ref}/against/?with=lore:spybook%23k0.off=yes"),
    *("/ai/npc/{ref}/against/?with=component:spy0.off=yes", "/ai/cards/oren/1/preview/?npc={ref}"),
    *(f"/ai/lore/spybook/entry/k{n}/?say=Oren, the ferry?&npc=oren" for n in (0, 4, 5, 8, 9)),
)
PAGES_OF_TURNS = (
    *("/ai/npc/{ref}/turn/{n}/", "/ai/npc/{ref}/turn/{n}/?with=lore:frozen%23k0.depth=3"),
    *("/ai/npc/{ref}/turn/{n}/?with=lore:vault%230.off=yes", "/ai/npc/{ref}/diff/1/{n}/"),
    "/ai/npc/{ref}/diff/{n}/{n}/?with=note:spy.depth=2",
)
_PASSING = r"[0-9]+|<script.*?</script>|csrfmiddlewaretoken\" value=\"[^\"]*\"|nonce=\"[^\"]*\""
"""What differs each time and is removed before the comparison: numbers, scripts and tokens."""


def faces(stage, browser, rank):
    """Return what somebody of this rank is shown, by page or command, with `_PASSING` removed."""
    newest = turns.last_turn(stage.npc.ai.ref).number
    # The first two turns are a whisper and a line for the room. The last has what all left behind.
    # An Admin is only asked for proof that the games differ.
    numbers = (newest,) if rank == "Admin" else (1, 2, newest)
    forms = ("html",) if rank == "Admin" else ("html", "json")
    lines = [*LINES, *(line.format(n=number) for line in OF_TURNS for number in numbers)]
    found = dict(zip(lines, types(stage, rank, *lines), strict=True))
    client, ref = browser(rank), stage.npc.ai.ref
    pages = [page.format(ref=ref) for page in PAGES]
    pages += [page.format(ref=ref, n=number) for page in PAGES_OF_TURNS for number in numbers]
    for page in pages:
        for form in forms:
            address = f"{page}{'&' if '?' in page else '?'}format={form}&all=1"
            found[address] = client.get(address).content.decode()
    return {asked: " ".join(re.sub(_PASSING, "*", told).split()) for asked, told in found.items()}


@pytest.fixture
def two_games(stage, db, world, browser, monkeypatch):
    """Return what people of each rank are shown in both games."""
    monkeypatch.setattr(turn, "SLICE_SECONDS", 60.0)
    shown = {rank: [] for rank in ("Player", "Builder", "Admin")}
    for texts in WORLDS.values():
        with world():
            forget_everything()
            played(stage, *texts)
            for rank, found in shown.items():
                found.append(faces(stage, browser, rank))
        forget_objects()
        forget_everything()
    return shown


@pytest.mark.long
def test_hidden_texts_do_not_change_what_a_builder_is_shown(two_games):
    differ = {
        rank: [asked for asked in first if first[asked] != second[asked]]
        for rank, (first, second) in two_games.items()
    }
    assert differ["Player"] == []
    assert differ["Builder"] == [], [one[differ["Builder"][0]] for one in two_games["Builder"]]
    told = [" ".join(game.values()) for game in two_games["Admin"]]
    for texts, here, there in zip(WORLDS.values(), told, told[::-1], strict=True):
        assert all(text[:20] in here and text[:20] not in there for text in texts)
    assert len(differ["Admin"]) > 20
