"""Builders' commands with every switch, typed by a Player and by a Helper, must do nothing.

The switches are read from the commands, so that new ones are tried from their first day.
"""

import ast
from collections.abc import Iterator
from hashlib import sha256

import pytest

from tests.acceptance.games import ROOT, rows_of
from tests.hostile.audit import audit
from tests.hostile.harbour import PATIENCE_SECONDS, Harbour, Person
from tests.services.llm.clients.stub_server import answers, calls

pytestmark = pytest.mark.server

COMMANDS = ROOT / "evennia_ai" / "commands"
BUILDERS = "BUILDER_LOCK"
"""The text in the lock of a command that is for builders."""

ARGUMENTS = "mara = 1"
"""The arguments for every switch: the name of an existing NPC, and a value."""

EVENNIAS = (
    "@py 1",
    "@set mara/mode = always",
    "@lock mara = edit:all()",
    "@tag mara = outsider",
    "@tag/del mara = outsider",
    "@typeclass mara = evennia.objects.objects.DefaultObject",
    "@name mara = Ben",
    "@desc mara = Ben",
    "@destroy mara",
    "@create/drop Oren2:evennia_ai.typeclasses.AINPC",
    "@dig Nowhere",
    "@teleport mara = #2",
    "@cmdsets mara",
    "@examine mara",
    "@find mara",
    "@spawn",
    "@perm mara = Admin",
    "@perm/account ben = Developer",
    "@reload",
    "@shutdown",
    "@batchcode x",
    "@batchcommand x",
    "@force mara = say yes",
    "@emit Tamsin says something",
    "@scripts",
    "@objects",
    "@server",
    "@accounts",
    "@boot tamsin",
    "@ban tamsin",
    "@wall hello",
    "@userpassword tamsin = harbour-player-9",
    "@copy mara",
    "@mvattr mara/x = y",
    "@wipe mara",
    "@alias mara = tamsin",
    "@link mara = #2",
    "@sethome mara = #2",
    "@open out = #2",
)
"""Commands of Evennia that could change an NPC."""


PLAYED = {
    "and left by another character": ("ic Mara",),
    "and went out of character": ("ic Mara", "ooc"),
    "and quelled, and left": ("ic Mara", "quell", "unquell", "ooc"),
    "twice": ("ic Mara", "ooc", "ic Mara", "ooc"),
}
"""Lines that the superuser types while playing an NPC. Then he plays his own character again."""


def verbs() -> Iterator[str]:
    """Return the switches for which a builder's command has a method."""
    for path in sorted(COMMANDS.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for one in ast.walk(tree):
            if not isinstance(one, ast.ClassDef):
                continue
            fields = {
                each.targets[0].id: each.value
                for each in one.body
                if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name)
            }
            if {"key", "verbs", "locks"} <= fields.keys() and BUILDERS in ast.unparse(
                fields["locks"]
            ):
                key = ast.literal_eval(fields["key"])
                for verb in switches(fields["verbs"]):
                    yield f"{key}/{verb}" if verb else key


def switches(verbs: ast.expr) -> Iterator[str]:
    """Return the switches in a command's table. Several may be in one text: `**alike("a b")`."""
    assert isinstance(verbs, ast.Dict)
    for name, value in zip(verbs.keys, verbs.values, strict=True):
        if name is not None:
            yield ast.literal_eval(name)
            continue
        assert isinstance(value, ast.Call), ast.unparse(value)
        assert ast.unparse(value.func) == "alike", ast.unparse(value)
        yield from ast.literal_eval(value.args[0]).split()


def lines() -> Iterator[str]:
    """Return the lines to type: our own commands with every switch, and Evennia's commands."""
    for verb in verbs():
        yield f"{verb} {ARGUMENTS}"
    yield "comp/create evil = 1200: Obey me."
    yield "ai"
    yield "ai/STOPALL"
    yield "ai/stopall/ = x"
    yield "ai /stopall"
    yield from EVENNIAS


def test_attackers_gain_no_rights(harbour: Harbour) -> None:
    scene = harbour.scene("rights", npc="Mara")
    player = scene.enters(harbour.newcomer("Ben", links=True))
    helper = scene.enters(harbour.newcomer("Hilda"))
    harbour.admin.types("@perm/account Hilda = Helper", "@perm Hilda = Helper")
    with audit("rights", harbour) as subject:
        for who in (player, helper):
            before = everything(harbour)
            for line in lines():
                with subject.attack(f"{who.name} types {line}"):
                    shown = who.types(line)
                    word = line.split()[0].split("/")[0]
                    assert f"Command '{word}" in shown, shown
            with subject.attack(f"what {who.name} typed changed nothing"):
                assert changed(before, everything(harbour)) == []
        scene.enters(harbour.admin)
        for way, lines_of_it in PLAYED.items():
            with subject.attack(f"an NPC that a superuser played has his rights: {way}"):
                is_no_superuser(harbour, player, *lines_of_it)
        with subject.attack("every builder's command is among them"):
            assert len(list(verbs())) > 100


def is_no_superuser(harbour: Harbour, player: Person, *lines: str) -> None:
    """Check that an NPC played by the superuser cannot pick up locked things."""
    shown = harbour.admin.types(*lines, "ic admin")
    assert "You become Mara" in shown, shown
    harbour.builder.types(
        "ai/tools mara = take", "create/drop crown", "@lock crown = get:perm(Admin)"
    )
    harbour.model.behaves(calls("take", '{"item": "crown"}'), answers("It stays there."))
    player.client.send("say Mara, take the crown.")
    player.client.wait_for('^Mara says, "It stays', seconds=PATIENCE_SECONDS)
    assert "crown" in (seen := harbour.builder.types("look")), seen
    assert "Mara" in seen, seen
    harbour.builder.types("@destroy/force crown", "yes", "ai/tools mara = none")


def everything(harbour: Harbour) -> dict[str, str]:
    """Return a hash of each table of the game, except those that record who is logged in."""
    tables = rows_of(harbour.game, "SELECT name FROM sqlite_master WHERE type = 'table'")
    named = sorted(name for (name,) in tables if name not in PASSING)
    return {
        name: sha256(repr(rows_of(harbour.game, f'SELECT * FROM "{name}"')).encode()).hexdigest()
        for name in named
    }


def changed(before: dict[str, str], after: dict[str, str]) -> list[str]:
    return [name for name in before if before[name] != after[name]]


PASSING = frozenset(
    {
        *("django_session", "server_serverconfig", "sqlite_sequence"),
        *("evennia_ai_modelcall", "evennia_ai_record", "evennia_ai_turn"),
    }
)
"""Tables that change by themselves: logins, and what NPCs in other rooms do in idle time."""
