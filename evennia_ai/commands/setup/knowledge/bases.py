"""The switches of `kb` that create, describe, restrict, assign and remove knowledge bases.

A lock such as `restricted:tag(outsider)` depends on tags that any builder can remove. So an NPC
that the lock has once restricted guards the base for good, until a builder who may change the base
lets it go with `kb/release`.
"""

from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from evennia.utils.search import search_object

from evennia_ai.commands.base import (
    CommandError,
    Run,
    StrictCommand,
    and_more,
    counted,
    day_and_time,
)
from evennia_ai.commands.naming import (
    KNOWLEDGE_PLACES,
    checked_locks,
    lost_by,
    npc_named,
    place_named,
    scope_in_words,
    whole_number,
)
from evennia_ai.commands.setup.knowledge import shown
from evennia_ai.engine.knowledge.meta_prompt import TOOL
from evennia_ai.engine.knowledge.pages.page import MEDIATIONS, BaseInfo
from evennia_ai.engine.prompt.components import Scope
from evennia_ai.engine.text.columns import escape_controls, wrap_hanging
from evennia_ai.npc.knowledge.backends import BACKENDS
from evennia_ai.npc.knowledge.guarding import is_held_by_lock, names_some
from evennia_ai.npc.mind.guard_watch import record_guards_of
from evennia_ai.npc.mind.viewers import lock_allows
from evennia_ai.npc.npc_settings import settings_of
from evennia_ai.store.knowledge import knowledge_bases
from evennia_ai.store.knowledge import pages as store
from evennia_ai.store.knowledge.knowledge_bases import Hold

_USAGE: Final = "kb/release <base> [= <npc>]"
_MOST: Final = 40


def still_held(info: BaseInfo) -> str:
    """Return a phrase that says how many NPCs guard the knowledge base.

    These NPCs guard it even if its lock no longer requires that. The phrase is "" without such
    NPCs.
    """
    count = len(knowledge_bases.held_refs(info.key))
    if not count or not info.restricted:
        return ""
    return f" NPCs that guard it for good: {count}; kb/release {info.key} lists them."


def _may_release(caller: object, locks: str) -> bool:
    return lock_allows(caller, locks, "view") and lock_allows(caller, locks, "edit")


def _lines(info: BaseInfo) -> Iterator[str]:
    held = knowledge_bases.list_holds(info.key)
    if not info.restricted:
        yield f"Knowledge base {info.key} is not restricted: no NPC guards it now."
    elif not names_some(info):
        yield f"Knowledge base {info.key} is restricted for every NPC."
    if not held:
        yield f"No NPC guards {info.key} for good."
        return
    yield f"These NPCs guard {info.key} for good, whatever its lock says now:"
    rows = ["\n".join(wrap_hanging(f"  {_row(info, hold)}")) for hold in held]
    yield from and_more(rows, most=_MOST)
    yield f"kb/release {info.key} = <npc> lets one go."


def _row(info: BaseInfo, hold: Hold) -> str:
    npc = _object(hold.npc_ref)
    name = escape_controls(npc.key) if npc is not None else "gone"
    by_lock = npc is not None and names_some(info) and is_held_by_lock(npc, info)
    now = "the lock restricts it now" if by_lock else "the lock does not restrict it now"
    return f"{name} (#{hold.npc_ref}), since {day_and_time(hold.held_since)}; {now}"


def _object(ref: str) -> Any:
    found = search_object(f"#{ref}")
    return found[0] if found else None


_NOTHING: Final = "off"
_STATES: Final[Mapping[str, bool]] = {"on": True, "off": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseField:
    """A field that `kb/set` sets: how the typed value is parsed, and how it is shown."""

    read: Callable[[Any, str], Mapping[str, Any]]
    told: Callable[[BaseInfo], str]


class KnowledgeBases(StrictCommand):
    """The switches that change a knowledge base, but not its pages."""

    def create(self) -> None:
        key = self.wanted("kb/create <base> [= <name>]").lower()
        if "/" in key:
            raise CommandError(
                f"'{key}' cannot be the key of a knowledge base: it has a slash. To create a page:"
                f" kb/edit {key}"
            )
        if knowledge_bases.base_or_none(key) is not None:
            raise CommandError(f"There is a knowledge base '{key}' already; nothing was changed.")
        made = knowledge_bases.save_base(BaseInfo(key=key, name=self.rhs or key), by=self.actor)
        self.say(
            f"Created knowledge base {made.key}, without pages. No NPC can search it yet: kb/assign"
            f" {made.key} = npc:<name>."
        )

    def set_field(self) -> Run:
        """Set a field of a knowledge base. Ask first if a new lock would shut out the caller."""
        usage = f"kb/set <base>/<{' | '.join(FIELDS)}> = <value>"
        text, value = self.both(usage)
        base, word = shown.split(text)
        if not word:
            raise CommandError(f"Usage: {usage}.")
        field = FIELDS.get(word.lower())
        if field is None:
            raise CommandError(f"'{word}' is no field of a knowledge base; {usage}.")
        info = shown.base_to_change(self.caller, base)
        given = field.read(self.caller, value)
        if all(getattr(info, name) == new for name, new in given.items()):
            self.say(f"Knowledge base {info.key} has this {word} already; nothing was changed.")
            return None
        if "backend" in given and info.pages:
            raise CommandError(
                f"Knowledge base '{info.key}' has {info.pages} pages in '{info.backend}'; create"
                " another base for pages that are stored elsewhere. Nothing was changed."
            )
        if lost_by(self.caller, given.get("locks", ""), shown.LOSABLE):
            return self._set_after_yes(info, word, given)
        self._set(info, word, given)
        return None

    def _set_after_yes(
        self, info: BaseInfo, word: str, given: Mapping[str, Any]
    ) -> Generator[str, Any, None]:
        label = f"knowledge base {info.key}"
        lost = lost_by(self.caller, given["locks"], shown.LOSABLE)
        lock = f"With the lock {given['locks']} you could no longer {lost} {label}"
        if (yield from self.agreed(f"{lock} or undo this. Set it?")):
            self._set(info, word, given)
        else:
            self.say(f"The lock of {label} stays; nothing was changed.")

    def _set(self, info: BaseInfo, word: str, given: Mapping[str, Any]) -> None:
        field = FIELDS[word.lower()]
        after = knowledge_bases.save_base(
            replace(info, **given), by=self.actor, seen_revision=info.revision
        )
        out = "" if lock_allows(self.caller, after.locks, "view") else " You can no longer see it."
        before, now = field.told(info) or "none", field.told(after) or "none"
        if "locks" in given:
            record_guards_of(after)
            out += still_held(after)
        out += _unheld(given, after)
        self.say(f"{info.key}: {word} before: {before}; now: {_ended(now)}{out}")

    def restricted(self) -> None:
        """Set whether NPCs read the pages of a knowledge base, or only safe summaries of them."""
        base, value = self.both("kb/restricted <base> = on | off")
        info, state = shown.base_to_change(self.caller, base), _state(value)
        if info.restricted == state:
            word = "restricted" if state else "not restricted"
            self.say(f"Knowledge base {info.key} is {word} already; nothing was changed.")
            return
        after = knowledge_bases.set_restricted(info.key, state, by=self.actor)
        record_guards_of(after)
        if not state:
            self.say(f"Knowledge base {info.key} is no longer restricted: NPCs read its pages.")
            return
        told = "" if info.hint else f" It has no hint; write one: kb/set {info.key}/hint = <text>"
        self.say(
            f"Knowledge base {info.key} is restricted from now on: NPCs get safe summaries instead"
            f" of its pages.{told}{still_held(after)}"
        )

    def assign(self) -> None:
        info, scope = self._place("assign")
        if scope in knowledge_bases.assigned_to(info.key):
            self.say(f"Knowledge base {info.key} is assigned to {scope_in_words(scope)} already.")
            return
        knowledge_bases.assign_base(info.key, scope, by=self.actor)
        self.say(
            f"Knowledge base {info.key} is assigned to {shown.assigned_in_words(info)} now."
            f"{_without_tool(scope)}"
        )

    def unassign(self) -> None:
        info, scope = self._place("unassign")
        where = scope_in_words(scope)
        removed = knowledge_bases.unassign_base(info.key, scope, by=self.actor)
        self.say(
            f"Knowledge base {info.key} is {'no longer' if removed else 'not'} assigned to {where};"
            f" it is assigned to {shown.assigned_in_words(info)}."
        )

    def remove_base(self, info: BaseInfo) -> Generator[Any, Any, None]:
        """Remove a knowledge base after a question."""
        shown.refuse_change(self.caller, info)
        record_guards_of(info)
        if not all(lock_allows(self.caller, locks, "view") for locks in store.locks_in(info.key)):
            raise CommandError(
                f"Knowledge base '{info.key}' has pages that you may not see, so you may not"
                " remove it. Nothing was changed."
            )
        question = (
            f"Remove knowledge base {info.key} with its {counted(info.pages, 'page')}? Their"
            " revisions stay; the base itself cannot be restored."
        )
        if not (yield from self.agreed(question)):
            self.say(f"Knowledge base {info.key} stays.")
            return
        knowledge_bases.remove_base(info.key, by=self.actor, seen_revision=info.revision)
        self.say(f"Removed knowledge base {info.key}.")

    def release(self) -> None:
        info = shown.base_named(self.caller, self.wanted(_USAGE))
        record_guards_of(info)
        if self.rhs is None:
            self.show(_lines(info))
        else:
            self._release(info, self.rhs)

    def _release(self, info: BaseInfo, who: str) -> None:
        shown.refuse_change(self.caller, info)
        held = {hold.npc_ref: hold for hold in knowledge_bases.list_holds(info.key)}
        ref, name = self._guard(who, held.keys())
        if ref not in held:
            raise CommandError(f"{name} does not guard {info.key} for good. Nothing was changed.")
        if not all(_may_release(self.caller, locks) for locks in held[ref].locks):
            raise CommandError(
                f"{name} guarded an earlier base '{info.key}', whose lock does not let you change"
                " this. Nothing was changed."
            )
        npc = _object(ref)
        if npc is not None and names_some(info) and is_held_by_lock(npc, info):
            raise CommandError(
                f"The lock of {info.key} still restricts {name}: {info.locks}. First change the"
                " lock, or remove the tag that it asks for. Nothing was changed."
            )
        knowledge_bases.release_npc(info.key, ref, by=self.actor)
        self.say(f"{name} no longer guards {info.key}: it reads the pages again.")

    def _guard(self, who: str, refs: Collection[str]) -> tuple[str, str]:
        """Return the ID and name of an NPC. A deleted NPC can be named by number."""
        number = who.removeprefix("#").strip()
        if number.isdecimal() and _object(number) is None and number in refs:
            return number, f"#{number}"
        npc = npc_named(self.caller, who)
        return str(npc.id), str(npc.key)

    def _place(self, switch: str) -> tuple[BaseInfo, Scope]:
        base, where = self.both(f"kb/{switch} <base> = <place>")
        bases = {info.key for info in shown.visible_bases(self.caller)}
        if base.lower() not in bases and where.lower() in bases:
            raise self.turned_round(switch)
        info = shown.base_to_change(self.caller, base)
        known = knowledge_bases.assigned_to(info.key)
        return info, place_named(
            self.caller, where, kinds=KNOWLEDGE_PLACES, known=known, what="a knowledge base"
        )


def _unheld(given: Mapping[str, Any], info: BaseInfo) -> str:
    """Return a remark if hints were chosen for a knowledge base that is not restricted, else ""."""
    if given.get("mediation") != "hints" or info.restricted:
        return ""
    return f" It has an effect only if the base is restricted: kb/restricted {info.key} = on"


def _without_tool(scope: Scope) -> str:
    """Return a remark if the NPC lacks the tool for searches, else ""."""
    npc = search_object(f"#{scope.ref}")[0] if scope.kind == "npc" else None
    if npc is None or TOOL in settings_of(npc).tools:
        return ""
    return f" It cannot search yet: ai/tools {npc.key} = +{TOOL}"


def _ended(text: str) -> str:
    """Return the text with a full stop unless it already ends a sentence."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _text(field: str) -> BaseField:
    return BaseField(
        read=lambda _caller, value: {field: "" if value.lower() == _NOTHING else value},
        told=lambda info: str(getattr(info, field)),
    )


def _list(field: str) -> BaseField:
    def read(_caller: Any, value: str) -> Mapping[str, Any]:
        if value.lower() == _NOTHING:
            return {field: ()}
        words = (" ".join(word.split()) for word in value.split(","))
        return {field: tuple(dict.fromkeys(filter(None, words)))}

    return BaseField(read=read, told=lambda info: ", ".join(getattr(info, field)))


def _read_locks(caller: Any, value: str) -> Mapping[str, Any]:
    if value.lower() == _NOTHING:
        return {"locks": ""}
    return {"locks": checked_locks(caller, value, access=shown.BASE_ACCESS, thing="knowledge base")}


def _read_direct(_caller: Any, value: str) -> Mapping[str, Any]:
    if value.lower() == _NOTHING:
        return {"direct_characters": 0}
    return {"direct_characters": whole_number(value, what="number of characters", words="off")}


def _state(value: str) -> bool:
    if value.lower() not in _STATES:
        raise CommandError(f"'{value}' is neither on nor off. Nothing was changed.")
    return _STATES[value.lower()]


def _read_chunks(_caller: Any, value: str) -> Mapping[str, Any]:
    return {"keeps_chunks": _state(value)}


def _read_mediation(_caller: Any, value: str) -> Mapping[str, Any]:
    if value.lower() not in MEDIATIONS:
        raise CommandError(f"'{value}' is neither {' nor '.join(MEDIATIONS)}. Nothing was changed.")
    return {"mediation": value.lower()}


def _read_backend(_caller: Any, value: str) -> Mapping[str, Any]:
    if value.lower() not in BACKENDS:
        raise CommandError(
            f"'{value}' is no place for pages; there are {', '.join(BACKENDS)}. Nothing was"
            " changed."
        )
    return {"backend": value.lower()}


FIELDS: Final[Mapping[str, BaseField]] = {
    "name": _text("name"),
    "summary": _text("summary"),
    "topics": _list("topics"),
    "hint": _text("hint"),
    "keywords": _list("keywords"),
    "locks": BaseField(read=_read_locks, told=lambda info: info.locks),
    "direct": BaseField(read=_read_direct, told=lambda info: str(info.direct_characters or "off")),
    "vault": BaseField(read=_read_chunks, told=lambda info: "on" if info.keeps_chunks else "off"),
    "mediation": BaseField(read=_read_mediation, told=lambda info: info.mediation),
    "backend": BaseField(read=_read_backend, told=lambda info: info.backend),
}
"""The fields that `kb/set` sets, by the words that builders type."""
