"""Cases of regex scripts that SillyTavern answered, and what the engine answers."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.memo import Memo
from evennia_ai.engine.regex_scripts import ScriptRun
from evennia_ai.formats.regex_scripts import running_scripts

_FILE: Final = Path(__file__).parent / "sillytavern-scripts" / "scripts.json"


class ScriptCase(NamedTuple):
    """A text, the scripts that change it, and the result in SillyTavern."""

    case: Mapping[str, Any]
    defaults: Mapping[str, Any]
    """The members of a script that a case leaves out."""

    def wrong(self) -> list[str]:
        """Return our text if it differs from SillyTavern's. Empty if they agree."""
        case = self.case
        scripts = [
            script
            for place in ("game", "preset", "card")
            for script in running_scripts(
                [{**self.defaults, **one} for one in case.get(place, ())], place
            )
        ]
        values = {"user": "Bob", "char": "Mira", **case.get("values", {})}
        dice = Dice(turn="1", conversation="1")
        run = ScriptRun(scripts, case.get("surface", "prompt"), values=values, dice=dice)
        placement = case.get("placement", "ai_output")
        text = run.text(case["text"], placement, depth=case.get("depth"), where="", memo=Memo())
        return [] if text == case["expected"] else [text]


def _read() -> dict[str, ScriptCase]:
    file = json.loads(_FILE.read_text("utf-8"))
    return {
        f"scripts/{case['id']}": ScriptCase(case, file["script_defaults"]) for case in file["cases"]
    }


SCRIPTS: Final = _read()
