"""The demo village, with its builder who types what a page says.

Lines take the same way as those of a player: the real parser, command sets, locks and line editor.
The test moves the clock of the NPCs' turns. Evennia must be started before this module is imported.
"""

import shutil
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import pytest
from django.conf import settings
from django.test import override_settings
from evennia.accounts.models import AccountDB
from evennia.commands.default.help import CmdHelp
from evennia.comms.models import ChannelDB
from evennia.objects.models import ObjectDB
from evennia.utils.create import create_channel, create_object
from twisted.internet.defer import maybeDeferred
from twisted.internet.task import Clock

from evennia_ai.commands import background_work, kept_cases
from evennia_ai.commands.base import StrictCommand
from evennia_ai.npc import runtime as running
from evennia_ai.services.endpoints import Access
from evennia_ai.services.llm.clients.scripted import ScriptedModel
from evennia_ai.services.settings.conf import conf
from tests.commands.stage import hearing, on_screen, played
from tests.docs.fences import REFUSED, ROOT, typed_lines
from world import build_demo

DEMO: Final = ROOT / "world" / "demo"


ANSWERS: Final = ("yes", "y", "no", "n")


class RefusedError(AssertionError):
    """The game has refused a line of a page."""


class Place:
    """A game with a builder who types. The game's settings and its model can be changed."""

    def __init__(self, builder: Any, *, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.builder = played(builder)
        self.folder = folder
        self.clock = Clock()
        self._errors: list[str] = []
        self._settings: list[Any] = []
        self._before = running.install(None)
        monkeypatch.setattr(background_work, "in_thread", maybeDeferred)
        monkeypatch.setattr(StrictCommand, "say_error", self._say_error)
        monkeypatch.setattr(CmdHelp, "help_more", False)  # The test has no client to turn pages.
        monkeypatch.chdir(folder)
        monkeypatch.setattr(kept_cases, "in_thread", maybeDeferred)
        monkeypatch.setattr(kept_cases, "in_steps", lambda steps: maybeDeferred(list, steps))
        kept_cases._differing.clear()
        for kind in ("cards", "presets", "kept"):
            shutil.copytree(DEMO / kind, folder / kind)
        self.install(
            EVENNIA_AI_CARD_FOLDER=str(folder / "cards"),
            EVENNIA_AI_PRESET_FOLDER=str(folder / "presets"),
            EVENNIA_AI_KEPT_FOLDER=str(folder / "kept"),
            EVENNIA_AI_KNOWLEDGE_FOLDER=str(DEMO / "knowledge"),
            GAME_DIR=str(folder),
        )

    def install(self, *, model: Any = None, **changed: Any) -> None:
        """Change settings from now on, or let `model` answer for all NPCs."""
        overriding = override_settings(**changed)
        overriding.enable()
        self._settings.append(overriding)
        scripted = ScriptedModel(model) if model else None
        access = Access(model=scripted, model_id="scripted") if scripted else None
        old = running.install(running.runtime_of(conf(), clock=self.clock, access=access))
        if old:
            old.close()

    def close(self) -> None:
        """Restore the settings and the model."""
        running.runtime().close()
        running.install(self._before)
        for overriding in reversed(self._settings):
            overriding.disable()

    def types(self, text: str) -> str:
        """Type the lines of an example, and return what the builder reads on a plain screen.

        Raises:
            RefusedError: the game refused lines; the error names them and its words.
        """
        told: list[str] = []
        refused: list[str] = []
        question = ""
        for line in typed_lines(text, editing=lambda: bool(self.builder.ndb._eveditor)):
            if question and line not in ANSWERS:
                refused.append(f"nobody answers {question!r}")
            try:
                told.append(self._typed(line))
                question = told[-1] if told[-1].rstrip().endswith("[no]") else ""
            except RefusedError as error:
                refused.append(str(error))
        if self.builder.ndb._eveditor:
            refused.append("the line editor is still open at the end")
            self._typed(":q!")
        if question:
            refused.append(f"nobody answers {question!r}")
        if refused:
            raise RefusedError("\n".join(refused))
        return "\n".join(told)

    def _typed(self, line: str) -> str:
        self._errors.clear()
        with (
            hearing(self.builder) as heard,
            patch("evennia.commands.cmdhandler.deferLater", _at_once),
        ):
            self.builder.execute_cmd(line)
            running.runtime().recorder.flush()
            self.clock.pump([0.5] * 8)
            running.runtime().recorder.flush()
        told = on_screen("\n".join(heard))
        if self._errors or REFUSED.search(told):
            raise RefusedError(f"{line!r} was refused: {' '.join(self._errors) or told}")
        if not told.strip() and not self.builder.ndb._eveditor:
            raise RefusedError(f"{line!r} came to nothing")
        return f"> {line}\n{told}"

    def _say_error(self, error: Any) -> None:
        self._errors.append(str(error))


class Village(Place):
    """The harbour of the demo village, with only the demo builder and Oren in it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.landing = tagged("room:landing")
        self.npc = tagged("npc:oren")
        builder, self.player = _character("builder"), _character("anna")
        builder.location = self.landing
        super().__init__(builder, folder=folder, monkeypatch=monkeypatch)


class OwnGame(Place):
    """A new game: a room with a builder."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        room = create_object(settings.BASE_ROOM_TYPECLASS, key="Limbo", nohome=True)
        monkeypatch.setattr(settings, "DEFAULT_HOME", room.dbref)
        builder = create_object(
            settings.BASE_CHARACTER_TYPECLASS, key="Tamsin", location=room, home=room
        )
        builder.permissions.add("Builder")
        super().__init__(builder, folder=folder, monkeypatch=monkeypatch)


def build_village() -> None:
    """Build what the first start of `make play` builds."""
    for channel in settings.DEFAULT_CHANNELS:
        if not ChannelDB.objects.get_channel(channel["key"]):
            create_channel(**channel)
    build_demo.build()


def _character(login: str) -> Any:
    return AccountDB.objects.get_account_from_name(login).characters.all()[0]


def tagged(name: str) -> Any:
    return ObjectDB.objects.get_by_tag(name, category=build_demo.TAG).first()


def _at_once(reactor: Any, seconds: float, call: Any, *args: Any, **kwargs: Any) -> None:
    call(*args, **kwargs)
