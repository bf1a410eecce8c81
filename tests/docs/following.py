"""Follow a page as a user does: apply its settings, write its files, run its code, type its lines.

`SET_UP` and `NAMES` contain what examples need and their page does not show. Evennia must be
started before this module is imported.
"""

import ast
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any, Final

import pytest
from django.conf import settings
from evennia.objects.objects import DefaultCharacter, DefaultObject, DefaultRoom
from evennia.utils.create import create_object

from commands.default_cmdsets import CharacterCmdSet
from evennia_ai.checks import check_context_providers, check_settings, check_tools
from evennia_ai.cli.game.folder.importing import take_in
from evennia_ai.engine.execution_request import execution_request
from evennia_ai.npc.writings import Writing
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.history.conversations import get_or_open_conversation
from tests.cli.folder.made_folders import made_folder
from tests.docs.fences import Block
from tests.docs.village import Place
from tests.engine.prompt.builders import the_inputs
from tests.npc.lorekeeper.wikis import Writer

_FILE: Final = re.compile(r"^# ([\w/]+\.py)\b.*$", re.MULTILINE)
_SETTINGS_FILE: Final = "server/conf/settings.py"


def _a_model(place: Place) -> None:
    place.install(model=Writer("=== PAGE: The Leek Show ===\nOnce a year, on the quay."))


def _an_npc_that_is_tried(place: Place) -> None:
    answers = ("It runs till dark.", "It does not.", "No.")
    place.install(model=[*answers])


def _a_conversation(place: Place) -> None:
    get_or_open_conversation("12", kind="room", place_ref="2")


def _a_turn(place: Place) -> None:
    place.types("say Oren, when does the ferry leave?")


def _a_letter(place: Place) -> None:
    create_object(Writing, key='letter "Low water at dawn"', location=place.builder)


def _a_folder_of_sillytavern(place: Place) -> None:
    """Import files as the command line does, so that nobody in the game has read them yet."""
    folder = made_folder(place.folder / "data", cards=1)
    take_in(folder, folder, conf(), is_meant=True, as_json=True)


SET_UP: Final[Mapping[str, Callable[[Place], None]]] = {
    "lorekeeper.md": _a_model,
    "history.md": _a_conversation,
    "conversations.md": _an_npc_that_is_tried,
    "moving-in.md": _a_folder_of_sillytavern,
    "tools.md": _a_letter,
    "watching.md": _a_turn,
}
"""What the examples of a page need in addition to the demo village."""


def _a_request(place: Place) -> dict[str, Any]:
    request = execution_request(the_inputs([]), npc_ref="7", conversation=3, event="41")
    return {"line": request.to_json()}


NAMES: Final[Mapping[str, Callable[[Place], dict[str, Any]]]] = {
    "dynamic-context.md": _a_request,
}
"""Names in the code of a page that have another meaning than on other pages."""


def names(place: Place) -> dict[str, Any]:
    """Return the names that examples of code take from their surroundings."""
    character = getattr(place, "player", place.builder)
    return {
        "INSTALLED_APPS": settings.INSTALLED_APPS,
        "MIDDLEWARE": settings.MIDDLEWARE,
        "PORTAL_SERVICES_PLUGIN_MODULES": settings.PORTAL_SERVICES_PLUGIN_MODULES,
        "REST_FRAMEWORK": settings.REST_FRAMEWORK,
        "DefaultCharacter": DefaultCharacter,
        "DefaultRoom": DefaultRoom,
        "Object": DefaultObject,
        "attacker": place.builder,
        "builder": place.builder,
        "line": 'Anna says, "Mae govannen"',
        "listener": getattr(place, "npc", place.builder),
        "npc": getattr(place, "npc", place.builder),
        "self": character,
        "sword": character,
        "target": character,
    }


class Follower:
    """A reader who follows the examples of a page in a game, one after the other."""

    def __init__(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        self.place = place
        self._patch = monkeypatch
        self._names = names(place)
        self._network = False
        typeclasses = ModuleType("typeclasses.characters")
        typeclasses.Character = DefaultCharacter  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "typeclasses", ModuleType("typeclasses"))
        monkeypatch.setitem(sys.modules, "typeclasses.characters", typeclasses)

    def follows(self, blocks: Iterable[Block]) -> list[str]:
        """Follow an example. Return where and why it failed, or ""."""
        listed = list(blocks)
        for block in listed:
            if block.kind == "file" and block.name:
                path = self.place.folder / block.name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.text, encoding="utf-8")
        for page in {block.page for block in listed}:
            if page in SET_UP:
                SET_UP[page](self.place)
            if page in NAMES:
                self._names |= NAMES[page](self.place)
        wrong = []
        for block in listed:
            try:
                self._does(block)
            except Exception as error:
                wrong.append(f"{block.place}: {type(error).__name__}: {error}")
        return wrong

    def _does(self, block: Block) -> None:
        if block.kind == "typed":
            unprinted = unprinted_lines(block.text, printed=self.place.types(block.text))
            if unprinted:
                raise AssertionError(f"nothing prints {unprinted}")
        elif block.kind == "python":
            for file, code in _files(block):
                self._runs(file, code, where=block.place)

    def _runs(self, file: str, code: str, *, where: str) -> None:
        """Run code as the file that it belongs to, or as a line of the game's Python shell."""
        given = dict(self._names)
        module = ModuleType(file.removesuffix(".py").replace("/", ".") or "docs_example")
        module.__dict__.update(given)
        if file and file != _SETTINGS_FILE:
            self._patch.setitem(sys.modules, module.__name__, module)
        if "self.add(" in code:
            module.__dict__["self"] = CharacterCmdSet()
        exec(compile(code, where, "exec"), module.__dict__)
        made = {
            name: value
            for name, value in module.__dict__.items()
            if name.isupper() and name in {*_assigned(code)}
        }
        if made:
            self._sets(made)

    def _sets(self, made: Mapping[str, Any]) -> None:
        """Apply settings, and run the package's own checks on them."""
        profiles = made.get("EVENNIA_AI_PROFILES", {})
        self._network |= bool(made.get("EVENNIA_AI_BASE_URL")) or any(
            profile.get("client") != "scripted" for profile in profiles.values()
        )
        self.place.install(
            **{name: value for name, value in made.items() if name != "INSTALLED_APPS"},
            model=(lambda request: "Good evening.") if self._network else None,
        )
        found = [*check_settings(), *check_tools(), *check_context_providers()]
        wrong = [str(one) for one in found if one.is_serious() or one.id == "evennia_ai.W001"]
        if wrong:
            raise AssertionError(" ".join(wrong))


def unprinted_lines(text: str, *, printed: str) -> list[str]:
    """Return the indented lines of an example that no command printed.

    Any number stands for any other number. "..." at the end of a line, or as a whole line, stands
    for whatever follows.
    """
    found = _normalised(printed)
    return [
        line.strip()
        for line in text.splitlines()
        if line.startswith(" ") and _normalised(line.rstrip().removesuffix("...")) not in found
    ]


def _normalised(text: str) -> str:
    return re.sub(r"\d+", "0", " ".join(text.split()))


def _files(block: Block) -> list[tuple[str, str]]:
    """Return the files that an example shows, each with its code.

    "" is the key for code without a file.
    """
    parts = _FILE.split(block.text)
    start = [(block.name, parts[0])] if parts[0].strip() else []
    return start + list(zip(parts[1::2], parts[2::2], strict=True))


def _assigned(code: str) -> list[str]:
    """Return the names to which code assigns values at its top level."""
    return [
        target.id
        for node in ast.parse(code).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]
