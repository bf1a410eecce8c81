"""Expand the texts of SillyTavern's macro cases, and write its answers in the form of ours."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
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
from tests.conformance.sillytavern_adapter import card_of

Case = Mapping[str, Any]
SCOPES: Final = {"local": False, "global": True}
# Marks that the application leaves in variables, and takes out of every text that it shows.
_MARKS: Final = re.compile(r"\n*\{\{trim\}\}\n*|\x00\x1fELSE\x1f\x00")


@dataclass(frozen=True, slots=True, kw_only=True)
class _FixedDice(Dice):
    """Dice that always give the same number."""

    share: float

    def roll(self, *what: object) -> float:
        return self.share

    def rolls(self, count: int, *what: object) -> list[float]:
        return [self.share] * count

    def pick(self, *what: object) -> float:
        return self.share


def answer(case: Case, defaults: Case) -> dict[str, Any]:
    """Return the expanded text of a case, and the variables after it as a text shows them."""
    context = {**defaults, **case.get("context", {})}
    dice = _FixedDice(turn="1", conversation="1", share=context["random"])
    values = dict(_values(context, dice))
    for name, text in context.get("outlets", {}).items():
        values[OUTLET + name] = compile_template(text, trust="imported").render(values, dice)
    if "original" in context:
        values["original"] = context["original"]
    meter = Meter()
    variables = Variables(_variables(context), meter=meter)
    template = compile_template(case["text"], trust="imported")
    output = template.render(values, dice, meter=meter, variables=variables)
    if re.fullmatch(case.get("pattern", "a^"), output):
        output = case["output"]
    left = {**_variables(context), **variables.changed}
    return {"output": output, "variables": _shown({k: v for k, v in left.items() if v is not None})}


def wanted(case: Case, defaults: Case) -> dict[str, Any]:
    """Return SillyTavern's answer in the form of ours."""
    after = case.get("variables_after", {**defaults, **case.get("context", {})})
    return {"output": case["output"], "variables": _shown(_variables(after))}


def _variables(scopes: Case) -> dict[Variable, str]:
    return {
        Variable(name, is_global): value if isinstance(value, str) else _json(value)
        for scope, is_global in SCOPES.items()
        for name, value in scopes[scope].items()
    }


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _shown(variables: Mapping[Variable, str]) -> dict[str, str]:
    return {
        str(variable): _MARKS.sub("", value).replace("\\{", "{").replace("\\}", "}")
        for variable, value in variables.items()
    }


def _values(context: Case, dice: Dice) -> Mapping[str, str]:
    """Return the values that an imported text of the role user may name."""
    card = read_card(card_of(context))
    components = list(card_components(card, grants=ALL_GRANTS))
    if text := context["persona"].get("description", ""):
        key = "persona_description"
        fields: dict[str, Any] = {"key": key, "content": text, "trust": "imported"}
        components.append(PromptComponent(id=PLUGGABLE_IDS[key], **fields))
    chat = [
        said("user" if one["is_user"] else "assistant", one["mes"], name=one["name"])
        for one in context["chat"]
        if not one.get("is_system")
    ]
    zone = ZoneInfo(context["timezone"])
    now = datetime.fromisoformat(context["now"]).astimezone(zone).isoformat()
    char = context["char"]
    filling = Filling(
        dice=dice,
        counter=ESTIMATE,
        layout="classic",
        values={
            "charifnotgroup": char,
            "group": char,
            **last_message_values(History(chat), None),
            **clock_values(now),
            **macro_values(card, user=context["user"]),
        },
        fields=ComponentSet(components).fields,
    )
    return filling.all_values
