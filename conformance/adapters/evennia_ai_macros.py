# SPDX-License-Identifier: MIT
"""Answer the kit's task `macro` with evennia_ai: expand a text of an imported component."""

import json
import re
from datetime import datetime
from importlib.metadata import version
from zoneinfo import ZoneInfo

from evennia_ai.engine.prompt.components import ALL_GRANTS, PLUGGABLE_IDS, PromptComponent
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.expansion import ComponentSet
from evennia_ai.engine.prompt.filling import Filling, last_message_values
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import said
from evennia_ai.engine.prompt.templates.clock import clock_values
from evennia_ai.engine.prompt.templates.template import compile_template
from evennia_ai.engine.prompt.templates.value_names import OUTLET
from evennia_ai.engine.prompt.templates.variables import Variable, Variables
from evennia_ai.engine.prompt.templates.work import Meter
from evennia_ai.engine.prompt.tokens import ESTIMATE
from evennia_ai.formats.cards.card import macro_values, read_card
from evennia_ai.formats.cards.components import card_components

# Marks that SillyTavern leaves in variables, and takes out of every text that it shows.
MARKS = re.compile(r"\n*\{\{trim\}\}\n*|\x00\x1fELSE\x1f\x00|\\([{}])")


class FixedDice(Dice):
    """Dice that always give the number of the case, which is their seed."""

    def roll(self, *what):
        return float(self.turn)

    def rolls(self, count, *what):
        return [float(self.turn)] * count

    pick = roll


def macro(given):
    if given["engine"] != "2.0" or "group" in given or "input" in given:
        return "it has one macro engine, no groups of characters, and nobody types an input"
    dice = FixedDice(turn=str(given["random"]), conversation="")
    values = dict(values_of(given, dice))
    for name, text in given.get("outlets", {}).items():
        values[OUTLET + name] = compile_template(text, trust="imported").render(values, dice)
    values |= {"original": given["original"]} if "original" in given else {}
    before = {
        Variable(name, scope == "global"): text_of(value)
        for scope, found in given["variables"].items()
        for name, value in found.items()
    }
    variables = Variables(before, meter=Meter())
    template = compile_template(given["text"], trust="imported")
    output = template.render(values, dice, meter=Meter(), variables=variables)
    after = {"local": {}, "global": {}}
    for one, text in {**before, **variables.changed}.items():
        if text is not None:
            after["global" if one.is_global else "local"][one.name] = MARKS.sub(r"\1", text)
    return {"output": output, "variables": after}


def text_of(value):
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def values_of(given, dice):
    """Return the values that an imported text may name."""
    card = read_card(given["card"])
    key, text = "persona_description", given["persona"]["description"]
    components = list(card_components(card, grants=ALL_GRANTS))
    components += [PromptComponent(id=PLUGGABLE_IDS[key], key=key, content=text)] if text else []
    heard = [one for one in given["history"] if not one.get("hidden")]
    chat = History([said(one["role"], one["content"], name=one["name"]) for one in heard])
    now = datetime.fromisoformat(given["now"]).astimezone(ZoneInfo(given["timezone"]))
    names = {"charifnotgroup": card.name, "group": card.name, **last_message_values(chat, None)}
    names |= {**clock_values(now.isoformat()), **macro_values(card, user=given["user"])}
    shared = {"dice": dice, "counter": ESTIMATE, "layout": "classic"}
    return Filling(values=names, fields=ComponentSet(components).fields, **shared).all_values


if __name__ == "__main__":
    from loop import serve

    serve("evennia_ai", version("evennia-ai"), {"macro": macro})
