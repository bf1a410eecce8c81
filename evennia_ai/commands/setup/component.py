"""The command `component`: builders list, show, create and change prompt components.

The command only translates: the registry and the store decide what is allowed. Without a switch the
command only reads.
"""

import re
from collections.abc import Generator
from functools import partial
from typing import Any, Final

from evennia_ai.commands.base import BUILDER_LOCK, CommandError, Run, alike
from evennia_ai.commands.naming import (
    SeveralCalledSoError,
    component_named,
    is_npc_name,
    npc_named,
    scope_named,
    whole_number,
)
from evennia_ai.commands.prompt_shown import folded
from evennia_ai.commands.screens import diffed, head
from evennia_ai.commands.setup import component_shown
from evennia_ai.commands.setup.component_column import column
from evennia_ai.commands.setup.component_fields import ComponentFields
from evennia_ai.commands.setup.component_shown import (
    history_of,
    labelled,
    place_in_words,
)
from evennia_ai.commands.setup.editor import EDITOR_KINDS, Edited, EditorKind, open_editor
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import (
    EvenniaAIError,
    StaticComponentError,
    UnknownComponentError,
)
from evennia_ai.engine.prompt.components import PromptComponent, Scope
from evennia_ai.engine.prompt.report import Report, number_of, trace_lines
from evennia_ai.engine.text.columns import WIDTH, wrap_text
from evennia_ai.engine.text.differences import diff_texts
from evennia_ai.npc.mind.viewers import seer_for
from evennia_ai.npc.views.looking import foreseen_report
from evennia_ai.store.authored import components as store

_CREATE: Final = "component/create <key>[@<scope>] [= [<id>][, <role>][: <text>]]"
# Parses an ID, a role or both, and after a colon the text. Only what begins like a number is an ID.
# Otherwise a text of one word, or a text such as `{{random:a,b}}`, would be read as an ID.
_NEW: Final = re.compile(r"([-+]?\d[^,:\s]*|)\s*(?:,\s*([^:\s]*)\s*)?(?::\s*(.*))?", re.DOTALL)
_ALMOST_NEW: Final = re.compile(r"\d+\s*(?:,|[a-z]+\s*:)")
_BEGINS_SO: Final = "If this is the text, put a colon before it: = : "


class CmdComponent(ComponentFields):
    """
    List, show and change the components that prompts are made of

    Usage:
      component [<key or id>[@<scope>]]
      component @<scope>
      component <npc>
      component/<switch> <key or id>[@<scope>] [= <value>]
      component/preview[/full] <npc> [= <what you would say>]

    A component is one text of the prompt. 'component oren' lists everything in
    Oren's next prompt from top to bottom, also from cards, notes, lore and
    facts, and the command that changes each.

    Switches:
      create    - [<id>][, <role>][: <text>]: create a component; without an ID
                  it gets a free one after those of its kind; without a text the
                  editor opens
      edit      - <text>: write its text; without a text the editor opens
      depth     - <n [speech] | normal | bottom>: place it inside the history,
                  with n messages after it; with `speech` only what was said
                  counts, not who comes and goes; bottom: after the newest
                  message; 0 or normal: back at its ID. Without a value: show it
      off       - keep it, but leave it out of every prompt
      on        - use it in prompts again
      remove    - remove it, after a question
      revisions - show who changed it, and when; with a number: show what that
                  revision changed
      revert    - <number>: go back to an earlier revision; you see what would
                  change and are asked first
      preview   - show the prompt that an NPC would get now, or if you said
                  something to it; this changes nothing

    Examples:
      component
      component mood
      component/create smell = {{char}} smells the sea.
      component/create mood@npc:oren = 1200: Oren is in a foul temper.
      component/depth mood = 2
      component/revert mood = 1
      component/preview oren = When does the ferry sail?

    # subtopics

    ## fields

    Change the other fields of a component. Without a value each shows the field.

    Switches:
      order     - <n>: at the same depth, a lower order comes first
      role      - <system | user | assistant | tool>: who speaks the text
      move      - <id>: give it another ID, which is its place in the prompt
      volatile  - <yes | no>: yes if its text changes from turn to turn; then it
                  is placed after the history, with the facts of the moment.
                  A text before the history may not use {{speaker}} or {{time}}
      name      - <name>: its name in lists
      description - <text>: what it is for
      priority  - <n>: if a prompt is too long, a lower priority is left out first
      required  - <yes | no>: yes if no prompt may be sent without it
      when      - <fact> <test> <value>, <value>; ...: use it only while all
                  these conditions are met (help note, help lore); off: always.
                  With a fact that changes, such as time.hour, a text before the
                  history moves after it, as with volatile

    Examples:
      component/create weather = 1250, user: It rains.
      component/order mood@npc:oren = 50
      component/description weather = What the sky does.
      component/when weather = time.part is_any evening, night

    ## places

    Its ID is the place of a component: 0 to 4999 are before the conversation,
    5001 to 5499 are between the conversation and the facts of the moment (5500),
    and so on. You can edit the components of the game itself (0, 1000, 1500 ...
    7000), switch them off and give them a depth. You cannot move or remove them.
    The history, the facts of the moment, the event and the results of tools
    always stay where they are. If a depth is greater than the length of the
    history, the component is placed at its top.

    The scope is the whole game unless you name another: @game, @zone:<tag>,
    @here, @room:<room>, @npc:<name> or @ and the name of an NPC. If several
    scopes have the same key, the narrowest counts.

    Switches:
      preview/full - like preview, with every message in full and all reasons
      context   - leave a component out of one kind of turn only: conversation,
                  whisper or autonomous (the NPC acts by itself);
                  component/context [<context> [= <off <key> | on <key> | reset>]]

    Examples:
      component @npc:oren
      component/depth mood = normal
      component/context
      component/context whisper = off mood
      component/context whisper = reset
    """

    key = "component"
    aliases = ["comp"]
    locks = BUILDER_LOCK.format(key="component")
    help_category = "Building"
    auto_help = True
    verbs = {
        "": "look",
        **alike("create edit depth order role move volatile when"),
        "on": "switch_on",
        "off": "switch_off",
        "name": "rename",
        "description": "describe",
        **alike("priority required"),
        **alike("remove revisions revert preview context"),
        "preview/full": "preview_full",
    }
    without_value = frozenset({"", "on", "off", "remove"})

    def names_something(self, text: str) -> bool:
        try:
            self._found(text)
        except EvenniaAIError:
            return is_npc_name(self.caller, text)
        return True

    def line_for_value(self) -> str:
        return f"component/edit {self.lhs} = {self.rhs}"

    def look(self) -> None:
        registry = store.registry()
        if self.lhs and not self.lhs.startswith("@"):
            try:
                found = self._found(self.lhs)
            except UnknownComponentError as unknown:
                self._look_at_column(unknown)
                return
            changes = store.COMPONENTS.revisions(found.key, scope=found.scope)
            off_in = component_shown.off_in(found.key)
            self.show(component_shown.component_lines(found, changes, off_in=off_in))
            return
        components = list(registry)
        if self.lhs:
            scope = scope_named(self.caller, self.lhs[1:], registry=registry)
            components = [c for c in components if c.scope == scope]
            if not components:
                self.say(
                    f"No component has the scope {self.lhs}; 'component' without a scope lists all."
                )
                return
        self.show(component_shown.list_lines(components))

    def _look_at_column(self, unknown: UnknownComponentError) -> None:
        """Show what an NPC's next prompt is made of. Raise `unknown` if no NPC has this name."""
        try:
            npc = npc_named(self.caller, self.wanted("component <npc>"))
        except SeveralCalledSoError:
            raise
        except CommandError:
            raise unknown from None
        seer = seer_for(self.caller, npc.ai.ref)
        made, report = foreseen_report(seer, npc.ai.foreseen(None, self.caller))
        self.show(column(npc, report, pieces=made.prompt.fragments))

    def create(self) -> None:
        registry = store.registry()
        key, scope = component_named(self.caller, self.wanted(_CREATE), registry=registry)
        component_id, role, text = _new(self.rhs or "")
        free = registry.free_id(scope) if component_id is None else component_id
        made = store.create(
            PromptComponent(
                id=free,
                key=key,
                role=role or "system",  # type: ignore[arg-type]  # the component checks it
                content=text,
                scope=scope,
            ),
            by=self.actor,
        )
        remarks = component_shown.author_warnings(made)
        chosen = "; component/move gives it another ID" if component_id is None else ""
        self.say(f"Created {labelled(made)} ({made.id}), role {made.role}{chosen}.{remarks}")
        if not made.content:
            self._open_editor(made)

    def edit(self) -> None:
        """Set the text of a component, or open the editor on it."""
        component = self._component("edit", "<text>")
        if self.rhs is None:
            self._open_editor(component)
            return
        self.refuse_empty(off="component/off")
        after = store.update(
            component.key,
            by=self.actor,
            scope=component.scope,
            seen_revision=component.revision,
            content=self.rhs,
        )
        if after == component:
            self.say(f"{labelled(component)} has this text already; nothing was changed.")
            return
        warnings = component_shown.author_warnings(after)
        told = f"Wrote {labelled(after)}, revision {after.revision}.{warnings}"
        changes = diff_texts(component.content, after.content)
        self.show(diffed([*wrap_text(told, WIDTH), *changes]))

    def remove(self) -> Generator[Any, Any, None]:
        component = self._component("remove")
        if component.is_static:
            raise StaticComponentError(component.key, "removed")
        return self._remove_after_yes(component, labelled(component))

    def revisions(self) -> None:
        """Show who changed a component. With a number, show what that revision changed."""
        key, scope = self._key_and_scope("revisions")
        if self.rhs is not None:
            number = whole_number(self.rhs, what="revision")
            then = store.COMPONENTS.revision(key, number, scope=scope)
            before = store.COMPONENTS.revision_before(key, number, scope=scope)
            self.show(diffed(component_shown.revision_lines(before, then)))
            return
        changes = store.COMPONENTS.revisions(key, scope=scope)
        if not changes:
            self.say(f"{key} was never changed.")
            return
        self.show(history_of(key, changes))

    def revert(self) -> Run:
        """Revert a component to a revision, after a question. A removed component comes back."""
        self.both("component/revert <key>[@<scope>] = <revision>")
        key, scope = self._key_and_scope("revert")
        number = whole_number(self.rhs, what="revision")
        return self._revert_after_yes(key, scope, store.COMPONENTS.then(key, number, scope=scope))

    def preview(self) -> None:
        """Show the prompt that an NPC would send now, on one screen."""
        npc, report = self._would_send("component/preview <npc> [= <what you would say>]")
        self.show(
            [
                head(f"The prompt that {npc.key} would get now; nothing was changed."),
                *folded(report),
                f"Every message in full: component/preview/full {npc.key}",
            ]
        )

    def preview_full(self) -> None:
        """Show the prompt that an NPC would send now: its trace, then every message in full."""
        npc, report = self._would_send("component/preview/full <npc> [= <what you would say>]")
        lines = [
            f"The prompt that {npc.key} would get now; nothing was changed.",
            *trace_lines(report),
        ]
        for index, message in enumerate(report.messages):
            name = f", {message.name}" if message.name else ""
            title = f"== {number_of(report, index)}: {message.role}{name} =="
            lines += ["", title, *wrap_text(message.content, WIDTH)]
        self.show(lines)

    def _would_send(self, usage: str) -> tuple[Any, Report]:
        npc = npc_named(self.caller, self.wanted(usage))
        inputs = npc.ai.foreseen(self.rhs or None, self.caller)
        return npc, foreseen_report(seer_for(self.caller, npc.ai.ref), inputs)[1]

    def context(self) -> None:
        if not self.lhs:
            if self.rhs is not None:
                raise CommandError(f"Usage: {component_shown.CONTEXT_USAGE}. Nothing was changed.")
            self.show(component_shown.list_contexts())
        elif self.rhs is None:
            self.show(component_shown.context_lines(self.lhs))
        else:
            registry = store.registry()
            self.say(
                component_shown.change_context(self.lhs, self.rhs, registry=registry, by=self.actor)
            )

    def _remove_after_yes(
        self, component: PromptComponent, named: str
    ) -> Generator[Any, Any, None]:
        question = f"Remove {named} ({component.id})? It can come back with component/revert."
        if not (yield from self.agreed(question)):
            self.say(f"{named} stays.")
            return
        store.COMPONENTS.remove(
            component.key,
            by=self.actor,
            scope=component.scope,
            seen_revision=component.revision,
        )
        self.say(f"Removed {named}.")

    def _revert_after_yes(
        self, key: str, scope: Scope, then: PromptComponent
    ) -> Generator[str, Any, None]:
        now = next((c for c in store.registry() if (c.key, c.scope) == (key, scope)), None)
        seen = store.COMPONENTS.revisions(key, scope=scope)[-1].number
        number, changes = then.revision, component_shown.differences_of(now, then)
        revert = partial(
            store.COMPONENTS.revert, key, number, by=self.actor, scope=scope, seen_revision=seen
        )
        going = self.goes_back(labelled(then), number, changes=changes, revert=revert)
        if not (yield from going):
            return
        back = revert()
        self.say(
            f"{labelled(back)} is what it was at revision {number}; this is revision"
            f" {back.revision}. It {place_in_words(back)}."
        )

    def _open_editor(self, component: PromptComponent) -> None:
        edited = _edited(component)
        open_editor(self.caller, "component", edited, label=labelled(component))

    def _key_and_scope(self, switch: str) -> tuple[str, Scope]:
        """Return the key and scope that were typed; the component may have been removed."""
        text = self.wanted(f"component/{switch} <key or id>[@<scope>]")
        registry = store.registry()
        wanted, scope = component_named(self.caller, text, registry=registry)
        if any(str(c.id) == wanted and c.scope == scope for c in registry):
            wanted = registry.get(wanted, scope=scope).key
        elif not store.COMPONENTS.revisions(wanted, scope=scope):
            registry.get(wanted, scope=scope)
        return wanted, scope


def _new(value: str) -> tuple[int | None, str, str]:
    """Return the ID, None for a free one, the role and the text of a new component."""
    given = _NEW.fullmatch(value)
    if given is None:
        if _ALMOST_NEW.match(value):
            raise CommandError(f"Usage: {_CREATE}. {_BEGINS_SO}{value[:20]} ...")
        return None, "", value
    component_id, role, text = given.groups()
    number = _new_id(component_id) if component_id else None
    return number, role or "", text or ""


def _new_id(typed: str) -> int:
    try:
        return whole_number(typed, what="ID")
    except CommandError as error:
        raise CommandError(f"{error} {_BEGINS_SO}{typed} ...") from None


def _edited(component: PromptComponent) -> Edited:
    scope = component.scope
    return {
        "key": component.key,
        "scope": (scope.kind, scope.ref),
        "revision": component.revision,
    }


def _scope_of(edited: Edited) -> Scope:
    kind, ref = edited["scope"]
    return Scope(kind=kind, ref=ref)


def _load(_caller: Any, edited: Edited) -> str:
    return store.registry().get(edited["key"], scope=_scope_of(edited)).content


def _save(_caller: Any, edited: Edited, text: str, by: Actor) -> tuple[Edited, str]:
    seen = edited["revision"]
    saved = store.update(
        edited["key"], by=by, scope=_scope_of(edited), seen_revision=seen, content=text
    )
    warnings = component_shown.author_warnings(saved)
    told = f"Saved {labelled(saved)} as revision {saved.revision}.{warnings}"
    return _edited(saved), told


EDITOR_KINDS["component"] = EditorKind(_load, _save, CmdComponent.locks)
