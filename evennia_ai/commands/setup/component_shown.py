"""Components as builders read them: the list in prompt order, and one component in full.

Also `component/context`, which switches components off in one kind of turn.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from evennia_ai.commands.base import FIELD_WORDS, CommandError, day_and_time, revision_in_words
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.memory.recalling import MEMORIES_KEY, MEMORIES_NAME
from evennia_ai.engine.prompt.blocks import FILLED, GUIDANCE_KEY
from evennia_ai.engine.prompt.components import (
    GAME,
    HISTORY_ID,
    MAX_DEPTH,
    PLUGGABLE_IDS,
    PromptComponent,
    depth_in_words,
)
from evennia_ai.engine.prompt.conditions import parse_conditions
from evennia_ai.engine.prompt.contexts import PromptContext
from evennia_ai.engine.prompt.expansion import CompiledComponent
from evennia_ai.engine.prompt.language import LANGUAGE
from evennia_ai.engine.prompt.language import VALUE as LANGUAGE_VALUE
from evennia_ai.engine.prompt.prefix_rules import conditions_dependence
from evennia_ai.engine.prompt.registry import ComponentRegistry
from evennia_ai.engine.prompt.templates.template import compile_template
from evennia_ai.engine.prompt.templates.value_names import KNOWN_NAMES, OUTLET
from evennia_ai.engine.prompt.tokens import ESTIMATE
from evennia_ai.engine.text.columns import (
    WIDTH,
    clip_text,
    escape_controls,
    pad_text,
    wrap_hanging,
    wrap_text,
)
from evennia_ai.engine.text.differences import diff_members
from evennia_ai.formats.cards.components import FIELDS
from evennia_ai.npc.inputs.gather import NAMES
from evennia_ai.npc.views.view import KNOWLEDGE_POLICY
from evennia_ai.store.authored import contexts as store_contexts
from evennia_ai.store.authored.components import VALUE_FIELDS
from evennia_ai.store.authored.life_cycle import Revision, with_values_before

_KEY_COLUMNS: Final = 30
# Names that only the content of these components may use; the engine fills them there.
_NAMES_OF_PLACES: Final = {
    MEMORIES_KEY: (MEMORIES_NAME,),
    **{key: (name,) for key, name in FILLED.items()},
}
_HEADINGS: Final = f"{'role':9} {'depth':>10} {'order':>7} {'on':3} tokens"
# Returns the value of a field in the words of the switch that sets it.
_SET: Final[Mapping[str, Callable[[PromptComponent], object]]] = {
    "role": lambda c: c.role,
    "order": lambda c: c.injection_order,
    "volatile": lambda c: "yes" if c.volatile else "no",
    "state": lambda c: "on" if c.enabled else "off",
    "name": lambda c: c.name or "none",
    "description": lambda c: c.description or "none",
    "priority": lambda c: c.priority,
    "required": lambda c: "yes" if c.required else "no",
    "when": lambda c: c.when or "always",
}
# Fields that `_said` shows in other words.
_SAID_APART: Final = ("injection_depth", "placement", "enabled", "is_static")
HEAD: Final = f"{'ID':>5}  {pad_text('key', _KEY_COLUMNS)} {_HEADINGS}"


def list_lines(components: Iterable[PromptComponent]) -> list[str]:
    """Return the components in the order of the prompt; those with a depth inside the history."""
    in_order = sorted(components, key=lambda c: (c.id, c.key, str(c.scope)))
    ordered = [c for c in in_order if c.placement == "ordered"]
    injected = sorted(
        (c for c in in_order if c.placement == "history"),
        key=lambda c: (-c.injection_depth, c.injection_order, c.id, c.key),
    )
    lines = [HEAD, "-" * WIDTH]
    lines += [_row(c) for c in ordered if c.id <= HISTORY_ID]
    lines += _inside_history(injected)
    return lines + [_row(c) for c in ordered if c.id > HISTORY_ID]


def component_lines(
    component: PromptComponent,
    revisions: Sequence[Revision[PromptComponent]],
    *,
    off_in: Sequence[str] = (),
) -> list[str]:
    """Return one component in full, the contexts in which it is off, and its last change."""
    c = component
    static = ", static" if c.is_static else ""
    marks = f"{', required' if c.required else ''}{', volatile' if c.volatile else ''}"
    lines = [
        f"{labelled(c)} ({c.id}){static}: {c.name or 'no name'}",
        *(f"  {line}" for line in wrap_text(c.description, WIDTH - 2) if line),
        f"  scope {c.scope}, role {c.role}, {'on' if c.enabled else 'off'}",
        *([f"  off in the contexts {', '.join(off_in)}"] if off_in else []),
        f"  {place_in_words(c)}",
        *([f"  used {when_in_words(c)}"] if c.when else []),
        f"  priority {c.priority}, trust {c.trust}{marks}",
        f"  revision {c.revision}, {_last_change(revisions)}",
    ]
    if not c.content.strip():
        return [*lines, "  no content, so it adds nothing to the prompt"]
    return [
        *lines,
        f"  content, about {ESTIMATE.count(c.content)} tokens:",
        "",
        *wrap_text(c.content, WIDTH),
    ]


def author_warnings(component: PromptComponent) -> str:
    """Return sentences that warn the author about the text of a component, or ""."""
    return unknown_names_warning(component) + changing_text_warning(component)


def changing_text_warning(component: PromptComponent) -> str:
    """Return a warning if the text is before the history and differs from turn to turn, else ""."""
    if not CompiledComponent(component).rolls_before_history("cache"):
        return ""
    return (
        " Its text changes from turn to turn and is placed before the history, so a provider can"
        f" cache nothing after it. component/volatile {labelled(component)} = yes places it after"
        " the history, among the facts of the moment."
    )


def unknown_names_warning(component: PromptComponent) -> str:
    """Return a warning about names in the text that nothing ever fills, or ""."""
    template = compile_template(component.content, trust=component.trust)
    names = {*NAMES, LANGUAGE_VALUE, *_NAMES_OF_PLACES.get(component.key, ())}
    # An outlet that no active entry fills is replaced by nothing, so its name is no problem.
    given = (name for name in template.names if not name.startswith(OUTLET))
    unknown = [name for name in given if name not in names | KNOWN_NAMES]
    if not unknown:
        return ""
    written = ", ".join(f"{{{{{name}}}}}" for name in unknown)
    known = ", ".join(f"{{{{{name}}}}}" for name in sorted(names))
    return f" No value is called {written}, so the name itself is sent. The names are {known}."


def place_in_words(component: PromptComponent) -> str:
    """Return where a component is placed in the prompt, as the end of a sentence."""
    if component.placement == "ordered":
        behind = ", in the layout cache after the history, among the facts of the moment"
        passing = conditions_dependence(parse_conditions(component.when))
        moves = (component.volatile or passing is not None) and component.id < HISTORY_ID
        return f"is placed at ID {component.id}{behind if moves else ''}"
    depth, order = component.injection_depth, component.injection_order
    if depth == MAX_DEPTH:
        return f"is placed at the top of the history, order {order}"
    if depth == 0:
        return f"is placed in the history after the newest message (bottom), order {order}"
    spoken = " of speech" if component.depth_counts == "speech" else ""
    follow = (
        f"{depth} message{spoken} follows" if depth == 1 else f"{depth} messages{spoken} follow"
    )
    return f"is placed in the history, depth {depth}: {follow} it; order {order}"


def when_in_words(component: PromptComponent) -> str:
    """Return under which conditions a component is used, as the end of a sentence."""
    return f"only when {escape_controls(component.when)}" if component.when else "always"


def changes_in_words(before: PromptComponent, after: PromptComponent) -> str:
    """Return a sentence for each field that has a new value."""
    told = ((what, tell(before), tell(after)) for what, tell in _SET.items())
    return " ".join(
        f"{what.capitalize()} before: {was}; now: {now}." for what, was, now in told if was != now
    )


def history_of(component_key: str, revisions: Sequence[Revision[PromptComponent]]) -> list[str]:
    """Return the changes of one component, oldest first."""
    lines = [f"Revisions of {component_key}; /revert goes back to one of them:"]
    for before, revision in with_values_before(revisions):
        lines.append(revision_in_words(revision))
        told = _differences(before.value if before else None, revision.after)
        lines += [clip_text(f"         {line}", WIDTH) for line in told]
    return lines


def revision_lines(
    before: Revision[PromptComponent] | None, revision: Revision[PromptComponent]
) -> list[str]:
    """Return what a revision changed in a component, with texts in full."""
    head = revision_in_words(revision).strip()
    was = before.value if before else None
    return [f"{revision.key}, revision {head}:", *differences_of(was, revision.after)]


def differences_of(before: PromptComponent | None, after: PromptComponent | None) -> list[str]:
    """Return the fields that differ. None means that there was or is no component."""
    return list(diff_members(_values_in_words(before), _values_in_words(after)))


def labelled(component: PromptComponent) -> str:
    """Return the key as commands take it, with the scope unless it is the whole game."""
    scope = component.scope
    if scope == GAME:
        return component.key
    return f"{component.key}@{scope.kind}:{scope.ref if scope.kind == 'zone' else f'#{scope.ref}'}"


def _inside_history(injected: Sequence[PromptComponent]) -> Iterator[str]:
    """Yield lines with the components inside the history, from the oldest place to the newest."""
    if not injected:
        return
    yield "       .. oldest message"
    bottom = False
    for component in injected:
        if component.injection_depth == 0 and not bottom:
            bottom = True
            yield "       .. newest message"
        yield _row(component, edge="| ")
    if not bottom:
        yield "       .. newest message"


def _row(component: PromptComponent, *, edge: str = "") -> str:
    c = component
    in_history = c.placement == "history"
    depth = _depth(c) if in_history else "-"
    order = str(c.injection_order) if in_history else "-"
    key = pad_text(edge + escape_controls(labelled(c)), _KEY_COLUMNS)
    state = "on" if c.enabled else "off"
    tokens = ESTIMATE.count(c.content) if c.content else 0
    row = f"{c.id:5}  {key} {c.role:9} {depth:>10} {order:>7} {state:3} {tokens:6}"
    return clip_text(row, WIDTH)


def _last_change(revisions: Sequence[Revision[PromptComponent]]) -> str:
    if not revisions:
        return "never changed"
    last = revisions[-1]
    return f"{last.action} by {last.changed_by}, {day_and_time(last.changed_at)}"


def _differences(before: PromptComponent | None, after: PromptComponent | None) -> Iterator[str]:
    """Return what a revision changed, field by field, with the beginnings of texts only."""
    was, now = _values_in_words(before), _values_in_words(after)
    if before is None:
        yield from (f"{field}: {_short(now[field])}" for field in ("ID", "content") if now)
        return
    for field, said in now.items():
        if was[field] != said:
            yield f"{field}: {_short(was[field])} -> {_short(said)}"


def _values_in_words(component: PromptComponent | None) -> dict[str, str]:
    """Return the values of a component in the words of the switches, or no values for None."""
    if component is None:
        return {}
    fields = {name: getattr(component, name) for name in VALUE_FIELDS if name not in _SAID_APART}
    said = {"depth": _depth(component), "state": "on" if component.enabled else "off"}
    return {
        **{FIELD_WORDS.get(name, name): _in_words(value) for name, value in fields.items()},
        **said,
    }


def _depth(component: PromptComponent) -> str:
    """Return the depth of a component as a builder types it: "4", "top", "normal"."""
    is_normal = component.placement == "ordered"
    return depth_in_words(None if is_normal else component.injection_depth)


def _in_words(value: object) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _short(value: object) -> str:
    text = escape_controls(" ".join(str(value).split()))
    return clip_text(text, 28) if text else "(empty)"


CONTEXT_USAGE: Final = "component/context <context> = <off <key> | on <key> | reset>"
# Keys without a row in the database: texts of cards and of the engine.
_NOT_STORED: Final = frozenset(
    {*PLUGGABLE_IDS, *FIELDS, "card_depth_prompt", KNOWLEDGE_POLICY.key, LANGUAGE.key, GUIDANCE_KEY}
)
_MOST_CHANGES: Final = 10


def list_contexts() -> list[str]:
    """Return the contexts and the components that are off in each."""
    lines = ["Contexts, and the components that are off in them:"]
    for context in store_contexts.contexts():
        lines += wrap_hanging(f"{context.name:13} {off_in_words(context)}")
    return [*lines, f"To change one: {CONTEXT_USAGE}"]


def context_lines(name: str) -> list[str]:
    """Return one context and who changed it."""
    context = store_contexts.context(name.lower())
    lines = [f"{context.name}: {context.description}", f"  {off_in_words(context)}"]
    changes = store_contexts.context_revisions(context.name)[-_MOST_CHANGES:]
    if not changes:
        return [*lines, "  never changed"]
    for change in changes:
        what = ", ".join(sorted(change.off)) or "nothing"
        when = day_and_time(change.changed_at)
        lines += wrap_hanging(f"  {change.number:4}  {when}  {change.changed_by}: {what} off")
    return lines


def change_context(name: str, wish: str, *, registry: ComponentRegistry, by: Actor) -> str:
    """Change a context as typed. Return a line that says what is off in it now."""
    before = store_contexts.context(name.lower())
    now = store_contexts.switch_off(before.name, _off_after(before, wish, registry=registry), by=by)
    same = "nothing was changed" if now.off == before.off else off_in_words(now)
    return f"Context {now.name}: {same}."


def off_in(key: str) -> tuple[str, ...]:
    """Return the names of the contexts in which a component is off."""
    return tuple(context.name for context in store_contexts.contexts() if key in context.off)


def off_in_words(context: PromptContext) -> str:
    """Return what is off in a context, as the end of a line."""
    return f"off: {', '.join(sorted(context.off))}" if context.off else "every component is on"


def _off_after(context: PromptContext, wish: str, *, registry: ComponentRegistry) -> frozenset[str]:
    """Return the keys that are off after the change that was typed."""
    word, _, key = wish.strip().lower().partition(" ")
    key = key.strip()
    if word == "reset" and not key:
        return frozenset()
    if word not in ("off", "on") or not key:
        raise CommandError(f"Usage: {CONTEXT_USAGE}. Nothing was changed.")
    key = _known_key(key, context, registry=registry)
    return context.off | {key} if word == "off" else context.off - {key}


def _known_key(key: str, context: PromptContext, *, registry: ComponentRegistry) -> str:
    """Return the key of a component of any scope, of a card, or of the engine."""
    if any(component.key == key for component in registry) or key in _NOT_STORED | context.off:
        return key
    # The key may be an ID. If nothing has it, the error names the components that exist.
    return registry.get(key).key
