"""A whisper must not appear on a builder's screens, whatever the builder types.

The commands are read from the code, so that new ones are tried from their first day. First the
builder writes texts that repeat the last words said, and keys that search for them.
"""

import json
import re

import pytest

from tests.hostile.audit import audit
from tests.hostile.harbour import Harbour
from tests.hostile.test_rights import verbs
from tests.services.llm.clients.stub_server import answers, calls, fails

pytestmark = pytest.mark.server

SECRET = "the quokka sleeps under the green cart"
WORDS = re.compile("quokka|akkouq|green cart|CANARY", re.IGNORECASE)

SPIES = (
    "component/create spya = 5050, user: A {{lastMessage}} A",
    "component/create spyb = 5051, system: {{lastUserMessage|upper}}",
    "component/create spyc = 5052, user: {% if 'quokka' in lastMessage %}CANA{{noop}}RY{% endif %}",
    "component/create spyd = 5053, user: {{setvar::k::{{lastMessage}}}}",
    "component/create spye = 5054, user: {{getvar::k}} {{reverse:{{lastMessage}}}}",
    "note wren = N {{lastMessage}} N",
    "note/depth wren = 0",
    "lore/create spies/key = /the quok+a/: CANA{{noop}}RY",
    "lore/create spies/all = the: {{lastMessage}}",
    "lore/set spies/all = constant yes",
    "lore/assign spies = npc:wren",
)
LEFT_OUT = re.compile(
    "edit|create|import|export|spawn|approve|reject|move|start|remove|clear|delete|forget|reset"
    "|stop|/off|/undo|/retry|new|^ai/pause|^lorekeeper"
)
"""Commands that would end the test or that ask for confirmation."""
ARGUMENTS = ("wren", "wren = full", "wren = lore:spies#0", "wren = component:spya", "wren = hello")


def lines() -> list[str]:
    """Return the lines to type about the NPC."""
    shown = [verb for verb in verbs() if not LEFT_OUT.search(verb)]
    return [f"{verb} {arguments}" for verb in shown for arguments in ARGUMENTS]


def test_whispers_stay_private_under_attack(harbour: Harbour) -> None:
    scene = harbour.scene("whispers", npc="Wren")
    anna = scene.enters(harbour.anna)
    builder = harbour.builder
    builder.types(
        "ai/tell on", "kb/assign harbour = npc:wren", "ai/tools wren = knowledge_base_search"
    )
    made = builder.types(*SPIES)
    with audit("whispers", harbour) as subject:
        harbour.model.behaves(answers("Aye."))
        anna.client.send(f"whisper wren = {SECRET}")
        anna.client.wait_for("Wren whispers", seconds=60)
        with subject.attack("the spies are in place"):
            assert "spye" in made and "in the new lorebook spies" in made, made
            sent = str(harbour.model.requests[-1].body)
            assert sent.count("quokka") > 3, sent
        harbour.model.behaves(fails(400, f"bad content: {SECRET}"))
        anna.client.send(f"whisper wren = {SECRET}!")
        anna.client.wait_for("Wren whispers", seconds=60)
        query = {"query": SECRET, "bases": ["harbour"]}
        harbour.model.behaves(calls("knowledge_base_search", json.dumps(query)), answers("Aye."))
        anna.client.send(f"whisper wren = Look for it: {SECRET}.")
        anna.client.wait_for("Wren whispers", seconds=60)
        harbour.model.behaves(answers("Aye."))
        for line in lines():
            with subject.attack(f"{builder.name} types {line}"):
                shown = builder.types(line)
                assert not WORDS.search(shown.replace("quok+a", "")), shown
        builder.types("ai/tell off", *(f"component/off spy{letter}" for letter in "abcde"))
