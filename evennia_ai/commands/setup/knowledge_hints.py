"""The switches of `kb` for hints: what a base that tells only hints may tell of a page.

A hint is the author's own word for what may get out. Where it repeats what its page protects, its
author is told, and it stays: it may be meant so.
"""

from dataclasses import replace
from typing import Final

from evennia_ai.commands.numbered import counted_number
from evennia_ai.commands.setup import knowledge_named as named
from evennia_ai.commands.setup.knowledge_pages import PAGE, KnowledgePages
from evennia_ai.commands.strict import CommandError
from evennia_ai.knowledge.hinting import FIELD, MOST_HINT, hints_of, with_hints
from evennia_ai.knowledge.leaks import leak, protected
from evennia_ai.knowledge.pages import BaseInfo, Page
from evennia_ai.store import pages as store
from evennia_ai.text.columns import hanging

_MOST_OF_A_PAGE: Final = 20


class KnowledgeHints(KnowledgePages):
    """Everything about the hints of pages."""

    def hints(self) -> None:
        """List the hints of a base or of a page, or write one more."""
        usage = f"kb/hints <base> or kb/hints {PAGE} [= <hint>]"
        text = self.wanted(usage)
        if "/" not in text:
            self.refuse_value()
            self._list(named.base_named(self.caller, text))
            return
        info, page = self._page(text, usage)
        if self.rhs is None:
            self.show("\n".join(_lines(info, [page])))
            return
        self._add(info, page, " ".join(self.rhs.split()))

    def remove_hint(self) -> None:
        """Take a hint away."""
        usage = f"kb/hints/remove {PAGE} = <number>"
        text, value = self.both(usage)
        info, page = self._page(text, usage)
        before, number = hints_of(page), counted_number(value, what="number of a hint")
        if number > len(before):
            raise CommandError(
                f"{info.key}/{page.name} has {len(before)} hints; kb/hints {info.key}/{page.name}"
                " lists them. Nothing was changed."
            )
        kept = (*before[: number - 1], *before[number:])
        self._keep(info, page, kept)
        self.say(f"{info.key}/{page.name}: took away the hint '{before[number - 1]}'.")

    def _add(self, info: BaseInfo, page: Page, hint: str) -> None:
        before = hints_of(page)
        if not 0 < len(hint) <= MOST_HINT:
            raise CommandError(f"A hint has 1 to {MOST_HINT} characters. Nothing was changed.")
        if len(before) >= _MOST_OF_A_PAGE:
            raise CommandError(f"A page has {_MOST_OF_A_PAGE} hints at most. Nothing was changed.")
        if hint in before:
            self.say(f"{info.key}/{page.name} has this hint already; nothing was changed.")
            return
        self._keep(info, page, (*before, hint))
        self.say(f"{info.key}/{page.name}: hint {len(before) + 1}: {hint}{_warning(page, hint)}")
        if info.mediation != "hints":
            self.say(f"Hints are told of {info.key} after kb/set {info.key}/mediation = hints.")

    def _keep(self, info: BaseInfo, page: Page, hints: tuple[str, ...]) -> None:
        fields = with_hints(page.meta.fields, hints)
        new = replace(page, meta=replace(page.meta, fields=fields))
        self._save(info, new, was=page.revision, note="hints")

    def _list(self, info: BaseInfo) -> None:
        found = store.with_field(named.stored_base(info).key, FIELD)
        seen = [page for page in found if named.may_see(self.caller, page)]
        self.show("\n".join(_lines(info, seen)))


def _lines(info: BaseInfo, pages: list[Page]) -> list[str]:
    """The hints of pages, each with its number on its page."""
    lines = []
    for page in pages:
        hints = hints_of(page)
        lines += hanging(f"{info.key}/{page.name}:") if hints else []
        for number, hint in enumerate(hints, start=1):
            lines += hanging(f"  {number}  {hint}{_warning(page, hint)}")
    return lines or [f"There are no hints; kb/hints {info.key}/<page> = <hint> writes one."]


def _warning(page: Page, hint: str) -> str:
    """The end of a line on a hint that repeats what its page says; "" for most."""
    kind = leak(hint, protected([page.body], titles=[page.name.title]))
    return f" (this tells a {_KINDS[kind]} of the page)" if kind in _KINDS else ""


_KINDS: Final = {
    "words": "passage",
    "letters": "passage",
    "number": "number",
    "title": "title",
}
