"""The switches of `component` that change one field of a component, or show it."""

from typing import Any, Final, get_args

from evennia_ai.commands.base import CommandError, StrictCommand
from evennia_ai.commands.naming import (
    any_whole_number,
    component_named,
    conditions_typed,
    depth_typed,
    whole_number,
)
from evennia_ai.commands.setup.component_shown import (
    changes_in_words,
    changing_text_warning,
    labelled,
    place_in_words,
    when_in_words,
)
from evennia_ai.engine.prompt.components import PromptComponent
from evennia_ai.engine.prompt.messages import DepthCounts
from evennia_ai.engine.text.columns import clip_text, escape_controls
from evennia_ai.store.authored import components as store

_YES_OR_NO: Final = {"yes": True, "no": False}


class ComponentFields(StrictCommand):
    """The switches that each set or show one field of a component."""

    def depth(self) -> None:
        component = self._component("depth", "<n [speech] | normal | bottom>")
        if self.rhs is None:
            self.say(f"{labelled(component)} {place_in_words(component)}.")
            return
        fields = _depth_fields(self.rhs)
        self._changed(component, **fields)

    def order(self) -> None:
        component = self._component("order", "<n>")
        if self.rhs is None:
            self.say(f"{labelled(component)} has order {component.injection_order}.")
            return
        self._changed(component, injection_order=any_whole_number(self.rhs, what="order"))

    def role(self) -> None:
        component = self._component("role", "<role>")
        if self.rhs is None:
            self.say(f"{labelled(component)} has role {component.role}.")
            return
        self._changed(component, role=self.rhs.lower())

    def move(self) -> None:
        self.both("component/move <key or id>[@<scope>] = <id>")
        component = self._component("move")
        self._changed(component, id=whole_number(self.rhs, what="ID"))

    def volatile(self) -> None:
        component = self._component("volatile", "<yes | no>")
        if self.rhs is None:
            word = "volatile" if component.volatile else "not volatile"
            self.say(f"{labelled(component)} is {word}.")
            return
        self._changed(component, volatile=self._yes_or_no())

    def when(self) -> None:
        component = self._component("when", "<conditions>, or off")
        if self.rhs is None:
            self.say(f"{labelled(component)} is used {when_in_words(component)}.")
            return
        self._changed(component, when=conditions_typed(self.rhs))

    def switch_on(self) -> None:
        self._changed(self._component("on"), enabled=True)

    def switch_off(self) -> None:
        self._changed(self._component("off"), enabled=False)

    def rename(self) -> None:
        component = self._component("name", "<name>")
        if self.rhs is None:
            self.say(f"{labelled(component)} is called: {component.name or 'nothing'}")
            return
        self._changed(component, name=self.rhs)

    def describe(self) -> None:
        component = self._component("description", "<text>")
        if self.rhs is None:
            self.say(f"{labelled(component)}: {component.description or 'no description'}")
            return
        self._changed(component, description=self.rhs)

    def priority(self) -> None:
        component = self._component("priority", "<n>")
        if self.rhs is None:
            self.say(f"{labelled(component)} has priority {component.priority}.")
            return
        self._changed(component, priority=any_whole_number(self.rhs, what="priority"))

    def required(self) -> None:
        component = self._component("required", "<yes | no>")
        if self.rhs is None:
            word = "required" if component.required else "not required"
            self.say(f"{labelled(component)} is {word}.")
            return
        self._changed(component, required=self._yes_or_no())

    def _changed(self, component: PromptComponent, **fields: Any) -> None:
        changed = store.update(
            component.key,
            by=self.actor,
            scope=component.scope,
            seen_revision=component.revision,
            **fields,
        )
        if changed == component:
            self.say(f"{labelled(component)} has this value already; nothing was changed.")
            return
        state = "on" if changed.enabled else "off"
        self.say(
            f"{labelled(changed)} ({changed.id}, {changed.role}, {state})"
            f" {place_in_words(changed)}. {changes_in_words(component, changed)}"
            f" Revision {changed.revision}."
            f"{changing_text_warning(changed)}"
        )

    def _component(self, switch: str, value: str = "") -> PromptComponent:
        suffix = f" = {value}" if value else ""
        return self._found(self.wanted(f"component/{switch} <key or id>[@<scope>]{suffix}"))

    def _found(self, text: str) -> PromptComponent:
        registry = store.registry()
        wanted, scope = component_named(self.caller, text, registry=registry)
        return registry.get(wanted, scope=scope)

    def _yes_or_no(self) -> bool:
        word = self.rhs.lower()
        if word not in _YES_OR_NO:
            raise CommandError(f"Type 'yes' or 'no'; '{self.rhs}' is neither. Nothing was changed.")
        return _YES_OR_NO[word]


def _depth_fields(value: str) -> dict[str, Any]:
    """Return the fields that put a component at this depth. Depth 0 means "at its ID"."""
    number, _, counts = value.partition(" ")
    counts = counts.strip().lower() or "messages"
    if counts not in get_args(DepthCounts):
        raise CommandError(
            f"A depth counts `messages` or `speech`, and '{clip_text(escape_controls(counts), 40)}'"
            " is neither: component/depth <key> = 4 speech. Nothing was changed."
        )
    depth = depth_typed(number)
    in_history = bool(depth) or number.lower() == "bottom"
    return {
        "injection_depth": depth or 0,
        "placement": "history" if in_history else "ordered",
        "depth_counts": counts if in_history else "messages",
    }
