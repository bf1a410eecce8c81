"""Lints of SillyTavern presets: problems that the author of a preset can fix."""

from collections.abc import Iterator

from evennia_ai.engine.foreign.documents import Finding
from evennia_ai.engine.prompt.assembly.rules import LORE
from evennia_ai.engine.prompt.components import ALL_GRANTS, HISTORY_ID
from evennia_ai.engine.prompt.prefix_rules import describe_dependence
from evennia_ai.engine.prompt.templates.chunks import VariableMacro, nested_chunks
from evennia_ai.engine.prompt.templates.template import compile_template
from evennia_ai.engine.prompt.templates.unknown import unknown_macros
from evennia_ai.engine.prompt.templates.variables import CHANGING
from evennia_ai.formats.lorebooks.editing.without_effect import list_wanted_extensions
from evennia_ai.formats.presets.mapping import preset_components
from evennia_ai.formats.presets.preset import HISTORY, SENT_TEXTS, Preset, PresetPrompt
from evennia_ai.formats.presets.reading import SECRETS
from evennia_ai.formats.regex_scripts import lint_scripts, preset_scripts


def lint_preset(preset: Preset) -> Iterator[Finding]:
    """Yield findings on a preset: notices on reading it, macros, variables, regex scripts.

    Unreadable values and a missing history are errors. The notice on removed secrets is left out,
    because authors cannot fix that.
    """
    yield from (Finding(each, True) for each in preset.notices if not each.startswith(SECRETS))
    if HISTORY in preset.switches and not preset.is_on(HISTORY):
        yield Finding("chatHistory is off: the model does not see the conversation", True)
    yield from map(Finding, list_wanted_extensions(one.content for one in preset.prompts))
    yield from map(Finding, _list_doubts(preset))
    yield from lint_scripts(preset_scripts(preset.source))


def _list_doubts(preset: Preset) -> Iterator[str]:
    prompts = [preset.by_identifier[item.identifier] for item in preset.order]
    texts = [(_label(prompt), prompt.content) for prompt in prompts]
    texts += [(name, preset.texts[name]) for name in SENT_TEXTS]
    for where, text in texts:
        for macro in unknown_macros(text):
            yield f"{where}: {macro} is an unknown macro and is sent as written"
    macros = [(prompt, one) for prompt in prompts for one in _variable_macros(prompt.content)]
    known = {one.variable for _, one in macros if one.operation in CHANGING} | {None}
    for prompt, one in macros:
        if one.operation == "get" and one.variable not in known:
            known.add(one.variable)  # report the variable only for the first prompt that reads it
            yield f"{_label(prompt)}: no prompt sets the variable '{one.variable}' that it reads"
    if (form := preset.texts["wi_format"]).strip() and LORE not in form:
        yield f"wi_format: has no {LORE} and is ignored; lore is sent without a format"
    for component in preset_components(preset, grants=ALL_GRANTS):
        before = component.placement == "ordered" and component.id < HISTORY_ID
        if before and (sentence := describe_dependence(component.content)):
            yield f"prompt '{component.name or component.key}': {sentence}"


def _variable_macros(text: str) -> Iterator[VariableMacro]:
    chunks = compile_template(text, trust="imported").chunks
    return (one for one in nested_chunks(chunks) if isinstance(one, VariableMacro))


def _label(prompt: PresetPrompt) -> str:
    return f"prompt '{prompt.name or prompt.identifier}'"
