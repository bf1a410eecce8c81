"""What `component/context` does: which components are off in which kind of event."""

from typing import Final

from evennia_ai.cards.components import FIELDS
from evennia_ai.commands.shown import day_and_time
from evennia_ai.commands.strict import CommandError
from evennia_ai.minds.view import KNOWLEDGE_POLICY
from evennia_ai.prompt.blocks import GUIDANCE_KEY
from evennia_ai.prompt.components import PLUGGABLE_IDS
from evennia_ai.prompt.registry import ComponentRegistry, PromptContext
from evennia_ai.store.authored import components as store
from evennia_ai.text.columns import hanging

USAGE: Final = "component/context <context> = <off <key> | on <key> | reset>"
# Components that are no rows: a card's own, and texts of the engine.
_NOT_STORED: Final = frozenset(
    {*PLUGGABLE_IDS, *FIELDS, "card_depth_prompt", KNOWLEDGE_POLICY.key, GUIDANCE_KEY}
)
_MOST_CHANGES: Final = 10


def listed() -> list[str]:
    """The contexts, and what is off in each."""
    lines = ["Contexts, and the components that are off in them:"]
    for context in store.contexts():
        lines += hanging(f"{context.name:13} {off_in_words(context)}")
    return [*lines, f"To change one: {USAGE}"]


def shown(name: str) -> list[str]:
    """One context, and who changed it."""
    context = store.context(name.lower())
    lines = [f"{context.name}: {context.description}", f"  {off_in_words(context)}"]
    changes = store.context_revisions(context.name)[-_MOST_CHANGES:]
    if not changes:
        return [*lines, "  never changed by anybody"]
    for change in changes:
        what = ", ".join(sorted(change.off)) or "nothing"
        when = day_and_time(change.changed_at)
        lines += hanging(f"  {change.number:4}  {when}  {change.changed_by}: {what} off")
    return lines


def changed(name: str, wish: str, *, registry: ComponentRegistry, by: str) -> str:
    """Do what is wished of a context, and say how it is now."""
    before = store.context(name.lower())
    now = store.switch_off(before.name, _off(before, wish, registry=registry), by=by)
    same = "is so already; nothing was changed" if now.off == before.off else off_in_words(now)
    return f"Context {now.name}: {same}."


def off_in(key: str) -> tuple[str, ...]:
    """The names of the contexts in which a component is off."""
    return tuple(context.name for context in store.contexts() if key in context.off)


def off_in_words(context: PromptContext) -> str:
    """What is off in a context."""
    return f"off: {', '.join(sorted(context.off))}" if context.off else "every component takes part"


def _off(context: PromptContext, wish: str, *, registry: ComponentRegistry) -> frozenset[str]:
    """The keys that are off when the wish is done."""
    word, _, key = wish.strip().lower().partition(" ")
    key = key.strip()
    if word == "reset" and not key:
        return frozenset()
    if word not in ("off", "on") or not key:
        raise CommandError(f"Usage: {USAGE}. Nothing was changed.")
    key = _known(key, context, registry=registry)
    return context.off | {key} if word == "off" else context.off - {key}


def _known(key: str, context: PromptContext, *, registry: ComponentRegistry) -> str:
    """The key of a component of any scope, or of one that cards or the engine bring."""
    if any(component.key == key for component in registry) or key in _NOT_STORED | context.off:
        return key
    return registry.get(key).key  # by its ID, or an error that names those there are
