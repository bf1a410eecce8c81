"""Formats: text around a card's scenario, its personality, or the lore at one place.

A format and the text inside it are joined and then expanded once, together. A macro cannot begin
in one of them and end in the other. Formats come from imported presets, which are not trusted. So
a format with macros other than names is only applied to imported texts.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from evennia_ai.engine.prompt.assembly.rules import LORE, AssemblyRules, Names
from evennia_ai.engine.prompt.components import MAX_CONTENT, PromptComponent
from evennia_ai.engine.prompt.expansion import ComponentSet
from evennia_ai.engine.prompt.filling import Filling, MacroStore
from evennia_ai.engine.prompt.fragments import SharedMessage
from evennia_ai.engine.prompt.prefix_rules import stable_values
from evennia_ai.engine.prompt.templates.template import compile_template
from evennia_ai.engine.prompt.trace import Verdict

# Maps the key of a component to the rule with its format, and to a pattern for a macro. The
# component's text replaces this macro in the format.
_FORMATS: Final[Mapping[str, tuple[str, re.Pattern[str]]]] = MappingProxyType(
    {
        key: (rule, re.compile(rf"\{{\{{\s*{name}\s*\}}\}}", re.IGNORECASE))
        for key, rule, name in (
            ("scenario", "scenario_format", "scenario"),
            ("char_personality", "personality_format", "personality"),
        )
    }
)


# The description of each value of the rule `names`, for the trace.
_NAMES: Final[Mapping[Names, str]] = MappingProxyType(
    {"field": "", "none": "without names", "content": "names before what users and the NPC said"}
)
_QUOTED: Final = ["what users said in quotes"]
_WHY_NOT: Final = "whose macros are more than names"
# Matches a text without logic whose macros are only names. Such a text means the same in every
# template language, so it is safe to join it with texts of any author.
_ONLY_NAMES: Final = re.compile(r"(?:\{\{\s*\w+\s*\}\}|\{(?![{%#])|[^{])*")


def apply_formats(
    components: Iterable[PromptComponent], rules: AssemblyRules
) -> tuple[PromptComponent, ...]:
    """Return the components with formats from the rules around their texts."""
    return tuple(_apply_format(component, rules) for component in components)


def format_verdicts(components: ComponentSet, rules: AssemblyRules) -> Iterator[Verdict]:
    """Yield verdicts on the history and on components, about what the assembly rules changed."""
    if ways := [_NAMES[rules.names]] * (rules.names != "field") + _QUOTED * rules.quote_user:
        reason = f"sent in another form than it was said: {', '.join(ways)}"
        yield Verdict(stage="expand", item="history", kept=True, reason=reason)
    for key, (rule, called) in _FORMATS.items():
        form: str = getattr(rules, rule)
        found = components.find(key)
        if not form.strip() or found is None or not found.component.content.strip():
            continue
        is_framed = found.component.content.startswith(called.split(form)[0])
        reason = f"inside its {rule}" if is_framed else f"without {rule}, {_WHY_NOT}"
        yield Verdict(stage="expand", item=f"component:{key}", kept=True, reason=reason)


def _apply_format(component: PromptComponent, rules: AssemblyRules) -> PromptComponent:
    if component.key not in _FORMATS or not component.content.strip():
        return component
    rule, called = _FORMATS[component.key]
    form: str = getattr(rules, rule)
    if not form.strip():
        return component
    text = called.sub(lambda _: component.content, form)
    return component.changed(content=text) if _is_safe_format(form, component, text) else component


def _is_safe_format(form: str, component: PromptComponent, text: str) -> bool:
    """True if it is safe to put this format around the component's text.

    Formats are imported and not trusted. Their macros could use the text of a trusted component.
    """
    if len(text) > MAX_CONTENT:
        return False
    return component.trust == "imported" or _ONLY_NAMES.fullmatch(form) is not None


def format_lore_messages(
    shared_messages: Mapping[str, SharedMessage],
    rules: AssemblyRules,
    filling: Filling,
    store: MacroStore,
) -> Mapping[str, SharedMessage]:
    """Return the messages for lore before the history, with the lore format around each."""
    form = rules.lore_format
    if form.strip() in ("", LORE):
        return shared_messages
    head, _, tail = form.partition(LORE)
    return {
        key: replace(
            shared,
            head=_expand_format(head, shared, filling, store),
            tail=_expand_format(tail, shared, filling, store),
        )
        for key, shared in shared_messages.items()
    }


def _expand_format(text: str, shared: SharedMessage, filling: Filling, store: MacroStore) -> str:
    if "{" not in text and "<" not in text:
        return text
    values = stable_values(filling.values_for(shared.role))
    return store.expand_or_keep(compile_template(text, trust="imported"), values, filling.dice)
