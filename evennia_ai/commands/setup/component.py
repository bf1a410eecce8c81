"""The command `component`: builders list, show, make and change prompt components.

The command only translates: what is allowed is the registry's and the store's to say. The bare
command reads; every change needs its own switch.
"""

import re
from collections.abc import Generator
from typing import Any, Final

from evennia_ai.commands.base import BUILDER_LOCK, CommandError, StrictCommand, alike
from evennia_ai.commands.naming import (
    any_whole_number,
    component_named,
    npc_named,
    scope_named,
    whole_number,
)
from evennia_ai.commands.setup import component_shown
from evennia_ai.commands.setup.component_shown import (
    changes_in_words,
    history_of,
    labelled,
    place_in_words,
    unsettled_in_words,
)
from evennia_ai.commands.setup.editor import KINDS, Edited, Kind, open_editor
from evennia_ai.errors import StaticComponentError
from evennia_ai.game.mind.viewers import seer_for
from evennia_ai.prompt.components import PromptComponent, Scope
from evennia_ai.prompt.report import report_of, trace_lines
from evennia_ai.store.authored import components as store

_CREATE: Final = "component/create <key>[@<scope>] = <id>[, <role>][: <text>]"
# What stands right of "=" in /create.
_NEW: Final = re.compile(r"([^,:\s]*)\s*(?:,\s*([^:\s]*)\s*)?(?::\s*(.*))?", re.DOTALL)

_YES_OR_NO: Final = {"yes": True, "no": False}


class CmdComponent(StrictCommand):
    """
    List, show and change the components that prompts are made of

    Usage:
      component [@<scope>]
      component <key or id>[@<scope>]
      component/create <key>[@<scope>] = <id>[, <role>][: <text>]
      component/<switch> <key or id>[@<scope>] [= <value>]
      component/preview <npc> [= <what you would say>]
      component/context [<context> [= <off <key> | on <key> | reset>]]

    Switches:
      create    - make a component; without a text the editor opens
      edit      - open the editor on its text
      depth     - <n | normal | bottom>: n messages from the newest, inside
                  the history; 0 or normal: at its ID; bottom: after the
                  newest message. Without a value: show it
      order     - <n>: what stands first at the same depth; low first
      role      - <system | user | assistant | tool>
      move      - <id>: give it another ID, its place in the prompt
      volatile  - <yes | no>: whether it changes from turn to turn; then it
                  stands behind the history, among the facts of the moment.
                  Before the history {{speaker}} and {{time}} are refused
      enable    - let it take part
      off       - keep it and leave it out of every prompt
      remove    - remove it, after a question
      revisions - who changed what, and when
      revert    - <revision>: make it what it was then
      preview   - the prompt an NPC would send now, or if you said something
                  to it; looking changes nothing
      context   - leave a component out of one kind of prompt alone: of the
                  contexts conversation, whisper and autonomous (ticks)

    Examples:
      component
      component mood
      component/create smell = 1250, system: {{char}} smells the sea.
      component/create mood@npc:oren = 1200: Oren is in a foul temper.
      component/depth mood = 2
      component/depth mood = normal
      component/order mood@npc:oren = 50
      component/revert mood = 1
      component/preview oren
      component/preview oren = When does the ferry sail?
      component/context
      component/context whisper = off mood
      component/context whisper = reset

    A component is one text of the prompt and its ID is its place: 0 to 4999
    stand before the conversation, 5001 to 5499 between it and the facts of the
    moment (5500), and so on. Those of the game itself (0, 1000, 1500 ... 7000)
    can be edited and switched off; they cannot be moved or removed.

    The scope is the whole game unless you name another: @zone:<tag>, @room,
    @room:<room> or @npc:<name>. Where several have the same key, the narrowest
    counts. A depth deeper than the history is its top: a component never leaves
    the conversation.
    """

    key = "component"
    aliases = ["comp"]
    locks = BUILDER_LOCK.format(key="component")
    help_category = "Building"
    auto_help = True
    verbs = {
        "": "look",
        **alike("create edit depth order role move volatile enable"),
        "off": "switch_off",
        **alike("remove revisions revert preview context"),
    }

    def look(self) -> None:
        self._refuse_value()
        registry = store.registry()
        if self.lhs and not self.lhs.startswith("@"):
            found = self._found(self.lhs)
            changes = store.revisions(found.key, scope=found.scope)
            off_in = component_shown.off_in(found.key)
            self.show(component_shown.shown(found, changes, off_in=off_in))
            return
        components = list(registry)
        if self.lhs:
            scope = scope_named(self.caller, self.lhs[1:], registry=registry)
            components = [c for c in components if c.scope == scope]
            if not components:
                self.say(f"No component has the scope {self.lhs}; 'component' alone lists all.")
                return
        self.show(component_shown.listed(components))

    def create(self) -> None:
        named, value = self.both(_CREATE)
        key, scope = component_named(self.caller, named, registry=store.registry())
        given = _NEW.fullmatch(value)
        if given is None:
            raise CommandError(f"Usage: {_CREATE}")
        component_id, role, text = given.groups()
        made = store.create(
            PromptComponent(
                id=whole_number(component_id, what="ID"),
                key=key,
                role=role or "system",  # type: ignore[arg-type]  # the component checks it
                content=text or "",
                scope=scope,
            ),
            by=self.typed_by,
        )
        remarks = component_shown.remarks(made)
        self.say(f"Made {labelled(made)} ({made.id}), role {made.role}.{remarks}")
        if not made.content:
            self._open_editor(made)

    def edit(self) -> None:
        self._refuse_value()
        self._open_editor(self._component("edit"))

    def depth(self) -> None:
        component = self._component("depth", "<n | normal | bottom>")
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
        if self.rhs.lower() not in _YES_OR_NO:
            raise CommandError(
                f"It is 'yes' or 'no'; '{self.rhs}' is neither. Nothing was changed."
            )
        self._changed(component, volatile=_YES_OR_NO[self.rhs.lower()])

    def enable(self) -> None:
        self._refuse_value()
        self._changed(self._component("enable"), enabled=True)

    def switch_off(self) -> None:
        self._refuse_value()
        self._changed(self._component("off"), enabled=False)

    def remove(self) -> Generator[Any, Any, None]:
        self._refuse_value()
        component = self._component("remove")
        if component.is_static:
            raise StaticComponentError(component.key, "removed")
        return self._remove_after_yes(component, labelled(component))

    def revisions(self) -> None:
        self._refuse_value()
        key, scope = self._key_and_scope("revisions")
        changes = store.revisions(key, scope=scope)
        if not changes:
            self.say(f"{key} was never changed.")
            return
        self.show(history_of(key, changes))

    def revert(self) -> None:
        """Make a component what it was at a revision; a removed one comes back."""
        self.both("component/revert <key>[@<scope>] = <revision>")
        key, scope = self._key_and_scope("revert")
        number = whole_number(self.rhs, what="revision")
        back = store.revert(key, number, by=self.typed_by, scope=scope)
        self.say(
            f"{labelled(back)} is what it was at revision {number}; this is revision"
            f" {back.revision}. It {place_in_words(back)}."
        )

    def preview(self) -> None:
        """The prompt an NPC would send now, first its trace, then every message in full."""
        npc = npc_named(
            self.caller, self.wanted("component/preview <npc> [= <what you would say>]")
        )
        made = report_of(npc.ai.preview(self.rhs or None, self.caller))
        report = seer_for(self.caller, npc.ai.ref).report(made)
        lines = [f"What {npc.key} would send now; nothing was changed.", *trace_lines(report)]
        for number, message in enumerate(report.messages):
            name = f", {message.name}" if message.name else ""
            lines += ["", f"== {number}: {message.role}{name} ==", message.content]
        self.show(lines)

    def context(self) -> None:
        if not self.lhs:
            if self.rhs is not None:
                raise CommandError(f"Usage: {component_shown.CONTEXT_USAGE}. Nothing was changed.")
            self.show(component_shown.contexts_listed())
        elif self.rhs is None:
            self.show(component_shown.context_shown(self.lhs))
        else:
            registry = store.registry()
            self.say(
                component_shown.context_changed(
                    self.lhs, self.rhs, registry=registry, by=self.typed_by
                )
            )

    def _remove_after_yes(
        self, component: PromptComponent, named: str
    ) -> Generator[Any, Any, None]:
        question = f"Remove {named} ({component.id})? It can come back with /revert."
        if not (yield from self.agreed(question)):
            self.say(f"{named} stays.")
            return
        now = store.registry().get(component.key, scope=component.scope)
        if now != component:
            self.say(f"{named} was changed while you were asked, so it stays; look at it again.")
            return
        store.remove(component.key, by=self.typed_by, scope=component.scope)
        self.say(f"Removed {named}.")

    def _changed(self, component: PromptComponent, **fields: Any) -> None:
        changed = store.update(
            component.key,
            by=self.typed_by,
            scope=component.scope,
            seen_revision=component.revision,
            **fields,
        )
        if changed == component:
            self.say(f"{labelled(component)} is so already; nothing was changed.")
            return
        state = "on" if changed.enabled else "off"
        self.say(
            f"{labelled(changed)} ({changed.id}, {changed.role}, {state})"
            f" {place_in_words(changed)}. {changes_in_words(component, changed)}"
            f" Revision {changed.revision}."
            f"{unsettled_in_words(changed)}"
        )

    def _open_editor(self, component: PromptComponent) -> None:
        edited = _edited(component, by=self.typed_by)
        open_editor(self.caller, "component", edited, label=labelled(component))

    def _component(self, switch: str, value: str = "") -> PromptComponent:
        suffix = f" = {value}" if value else ""
        return self._found(self.wanted(f"component/{switch} <key or id>[@<scope>]{suffix}"))

    def _key_and_scope(self, switch: str) -> tuple[str, Scope]:
        """The key, also of a component that was removed, and the scope."""
        text = self.wanted(f"component/{switch} <key or id>[@<scope>]")
        registry = store.registry()
        wanted, scope = component_named(self.caller, text, registry=registry)
        if any(str(c.id) == wanted and c.scope == scope for c in registry):
            wanted = registry.get(wanted, scope=scope).key
        elif not store.revisions(wanted, scope=scope):
            registry.get(wanted, scope=scope)
        return wanted, scope

    def _found(self, text: str) -> PromptComponent:
        registry = store.registry()
        wanted, scope = component_named(self.caller, text, registry=registry)
        return registry.get(wanted, scope=scope)

    def _refuse_value(self) -> None:
        """The bare command and the switches without a value change nothing by a stray "="."""
        if self.rhs is not None:
            usage = f"component/<switch> {self.lhs} = {self.rhs}"
            raise CommandError(
                f"This takes no '='; to change something name a switch: {usage}."
                " Nothing was changed."
            )


def _depth_fields(value: str) -> dict[str, Any]:
    """The fields that put a component at this depth; 0 is no depth at all, as in the issue."""
    word = value.lower()
    if word == "bottom":
        return {"injection_depth": 0, "placement": "history"}
    if word == "normal":
        return {"injection_depth": 0, "placement": "ordered"}
    depth = whole_number(value, what="depth", words="normal or bottom")
    return {"injection_depth": depth, "placement": "history" if depth else "ordered"}


def _edited(component: PromptComponent, *, by: str) -> Edited:
    scope = component.scope
    return {
        "key": component.key,
        "scope": (scope.kind, scope.ref),
        "revision": component.revision,
        "by": by,
    }


def _scope_of(edited: Edited) -> Scope:
    kind, ref = edited["scope"]
    return Scope(kind=kind, ref=ref)


def _load(_caller: Any, edited: Edited) -> str:
    return store.registry().get(edited["key"], scope=_scope_of(edited)).content


def _save(_caller: Any, edited: Edited, text: str) -> tuple[Edited, str]:
    by, seen = edited["by"], edited["revision"]
    saved = store.update(
        edited["key"], by=by, scope=_scope_of(edited), seen_revision=seen, content=text
    )
    told = f"Saved {labelled(saved)} as revision {saved.revision}.{component_shown.remarks(saved)}"
    return _edited(saved, by=by), told


KINDS["component"] = Kind(_load, _save)
