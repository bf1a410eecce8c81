"""The command `kb`: builders list, read, write, assign and restrict knowledge bases.

The command only translates. `evennia_ai.engine.knowledge` defines pages; the store or another
backend keeps them. The locks of bases and pages are checked before anything is shown or changed.
Without a switch the command only reads.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any, Final

from twisted.internet.defer import Deferred

from evennia_ai.commands.background_work import Steps, waits
from evennia_ai.commands.base import (
    BUILDER_LOCK,
    CommandError,
    Run,
    alike,
    day_and_time,
)
from evennia_ai.commands.naming import whole_number
from evennia_ai.commands.setup.knowledge import shown
from evennia_ai.commands.setup.knowledge.bases import FIELDS, KnowledgeBases
from evennia_ai.commands.setup.knowledge.incoming import KnowledgeDrafts, KnowledgeFolder
from evennia_ai.commands.setup.knowledge.pages import PAGE, KnowledgePages, revision_typed
from evennia_ai.commands.setup.knowledge.shown import requires_tree, tree_lines
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.engine.knowledge.pages.page import (
    NAMESPACES,
    BaseInfo,
    Namespace,
    Page,
    PageName,
    page_name,
)
from evennia_ai.engine.text.columns import wrap_hanging
from evennia_ai.npc.knowledge.backends import as_deferred
from evennia_ai.npc.mind.viewers import viewer_of
from evennia_ai.npc.runtime import runtime
from evennia_ai.npc.views.withheld.pages import HiddenPages
from evennia_ai.npc.views.withheld.viewer import withheld_mark
from evennia_ai.store.knowledge import knowledge_searches
from evennia_ai.store.knowledge import pages as store

_MOST_READINGS: Final = 40


def _passages(looker: Any, info: BaseInfo, by: Actor) -> Iterator[str]:
    found, pages = knowledge_searches.open_vault(info.key, by=by), HiddenPages(viewer_of(looker))
    if not found:
        yield f"The vault of knowledge base {info.key} is empty. Your look was recorded."
        return
    yield f"The vault of knowledge base {info.key}, newest first. Your look was recorded."
    for chunk in found:
        yield ""
        if pages.covers(chunk.base, chunk.title):
            mark = withheld_mark(f"a page of knowledge base '{chunk.base}'")
            yield from wrap_hanging(f"search {chunk.search}: {mark}")
            continue
        yield from wrap_hanging(f"search {chunk.search}: {chunk.title}, revision {chunk.revision}")
        yield chunk.content


def _readings(_viewer: Any, info: BaseInfo, _by: Actor) -> Iterator[str]:
    readings = knowledge_searches.vault_readings(info.key)
    if not readings:
        yield f"Nobody has looked into the vault of knowledge base {info.key}."
        return
    yield f"Who looked into the vault of knowledge base {info.key}, newest first:"
    for one in readings[:_MOST_READINGS]:
        yield from wrap_hanging(f"  {day_and_time(one.at)}  {one.by}, passages: {one.chunks}")


def _emptied(_viewer: Any, info: BaseInfo, by: Actor) -> Iterator[str]:
    count = knowledge_searches.empty_vault(info.key, by=by)
    yield f"Emptied the vault of knowledge base {info.key}, passages: {count}."


_SHOWN: Final[Mapping[str, Callable[[Any, BaseInfo, Actor], Iterator[str]]]] = {
    "readings": _readings,
    "empty": _emptied,
}


_MOST_HITS: Final = 10


class CmdKnowledge(KnowledgeDrafts, KnowledgeFolder, KnowledgePages, KnowledgeBases):
    """
    List, read, write, assign and restrict knowledge bases

    Usage:
      kb
      kb <base>
      kb <base>/<page>[/<revision>]
      kb/<switch> <base>[/<page>] [= <value>]

    A knowledge base is a set of pages, like a small wiki, that NPCs can search.

    Switches:
      create     - <base> [= <name>]: create a base
      edit       - <base>/<page> [= <text>]: write the text of a page, which may
                   be new; without a text the editor opens
      pages      - [= <n>]: list its pages; <base>/<namespace> or
                   <base>/<beginning> lists only some of them
      search     - <words>: list the pages with these words, the best first
      assign     - game, zone:<tag>, here, room:<room>, npc:<name> or the name of
                   an NPC, faction:<tag> or conversation:<n>: these NPCs may
                   search it
      unassign   - the same places: these NPCs may no longer search it
      revisions  - show who changed a page, and when; with a number: show what
                   that revision changed
      revert     - <number>: go back to an earlier revision of a page; you see
                   what would change and are asked first
      remove     - remove a page; a whole base after a question

    Examples:
      kb/search harbour = when does the ferry sail
      kb harbour/The Ferry
      kb/create lamps = The Lamps of the Coast
      kb/edit lamps/The Dry Lamp = It burns on the quay from dusk to dawn.
      kb/assign lamps = oren

    # subtopics

    ## pages

    Each page is in a namespace: Main (which you need not write), Instructions,
    Sources or Talk.

    Switches:
      links      - list the pages to which it links, and those that link to it
      requires   - show the pages that must be read with it, as a tree
      rename     - <new title>: rename it; the old title leads to the new one
      lock       - <lock string> or off: who may view and search it

    Examples:
      kb/pages harbour/Instructions
      kb/links harbour/The Ferry
      kb/requires harbour/Instructions:Create/Source/Interview

    ## bases

    Describe a base, and fill it from a folder.

    Switches:
      set        - <base>/<field> = <value>: set one of its fields
      import     - <folder> [= <base>]: show what an import of this folder would
                   change; without a folder: list the folders
      import/run - <folder> [= <base>]: import the folder

    Fields: name, summary, topics, hint, keywords, locks; direct: a base with at
    most this many characters is shown to NPCs as a whole; vault: keep what
    searches of a restricted base found; backend: where the pages are stored;
    mediation: what NPCs get from a restricted base, either a 'summary' by a
    model or only the 'hints' that you write with kb/hints. The value 'off'
    empties a field.

    Examples:
      kb/set harbour/summary = Everything about the harbour.
      kb/import

    ## restricted

    Keep the pages of a base from some NPCs. A restricted base gives them only
    safe summaries or hints.

    Switches:
      restricted - on or off: on: NPCs get only safe summaries of its pages
      release    - [= <npc>]: list the NPCs that guard it for good, or let one go
      hints      - <base>: list the hints of its pages; <base>/<page> [= <hint>]:
                   list the hints of a page, or add one
      hints/remove - <base>/<page> = <number>: remove a hint
      vault      - [= readings | empty]: show what searches of a restricted base
                   found; each look is recorded; readings: who looked; empty:
                   delete it

    Examples:
      kb/set secret/hint = What happens on the quay at night.
      kb/restricted secret = on
      kb/set secret/locks = view:perm(Builder);search:tag(smuggler)

    Locks: 'view' decides which builders may see a base or a page, 'search' which
    characters may search it, 'restricted' which NPCs get only safe summaries of
    a restricted base, and 'edit' which builders may change a base, its pages and
    its guards. An NPC that the lock 'restricted' has caught once guards the base
    until kb/release, even if it loses the tags that the lock asks for.

    ## drafts

    A draft is a page that a model wrote. A builder must approve it first.

    Switches:
      drafts     - [<base>]: list the drafts that wait
      draft      - <number>: show what a draft would change
      approve    - <number>: write the page of a draft
      reject     - <number>: reject a draft; its page is not written

    Examples:
      kb/drafts
    """

    key = "kb"
    locks = BUILDER_LOCK.format(key="kb")
    help_category = "Building"
    auto_help = True
    verbs = {
        "": "look",
        "pages": "pages",
        "search": "search",
        **alike("edit links requires create"),
        "set": "set_field",
        **alike("assign unassign restricted release"),
        "import": "import_plan",
        "import/run": "import_run",
        **alike("rename lock revisions revert remove drafts draft approve reject vault hints"),
        "hints/remove": "remove_hint",
    }
    without_value = frozenset(
        {"", "links", "requires", "remove", "drafts", "draft", "approve", "reject"}
    )
    thing = "knowledge base"

    def names_something(self, text: str) -> bool:
        base, page = shown.split(text)
        if base.lower() not in {info.key for info in shown.visible_bases(self.caller)}:
            return False
        if not page or page.lower() in FIELDS:
            return True
        try:
            return self._lists(store.page_or_none(base.lower(), page_name(page)))
        except EvenniaAIError:  # No page can have this title.
            return False

    def line_for_value(self) -> str:
        return f"kb/edit {self.lhs} = {self.rhs}" if "/" in self.lhs else ""

    def look(self) -> None:
        base, page = shown.split(self.lhs)
        if page:
            self._look_at_page()
            return
        if not base:
            self._look_at_bases()
            return
        self.show(shown.base_shown(shown.base_named(self.caller, base)))

    @waits
    def pages(self) -> Steps:
        base, begin = shown.split(self.wanted("kb/pages <base>[/<namespace or beginning>] [= <n>]"))
        number = 1 if self.rhs is None else whole_number(self.rhs, what="page")
        info = shown.base_named(self.caller, base)
        names: list[PageName] = []
        for namespace, prefix in _asked_for(begin):
            names += yield as_deferred(runtime().backends.of(info).listed(namespace, prefix=prefix))
        if not names:
            which = f" that begin with '{begin}'" if begin else ""
            self.say(f"Knowledge base {info.key} has no pages{which}.")
            return
        total = -(-len(names) // shown.PAGE)
        if not 1 <= number <= total:
            raise CommandError(f"There is no page {number}; the list has the pages 1 to {total}.")
        part = names[(number - 1) * shown.PAGE : number * shown.PAGE]
        found = yield as_deferred(runtime().backends.of(info).fetch(part))
        visible = [name for name, page in zip(part, found, strict=True) if self._lists(page)]
        self.show(shown.names_shown(self.lhs, visible, page=number, pages=total))

    @waits
    def search(self) -> Steps:
        base, query = self.both("kb/search <base> = <words>")
        info = shown.base_named(self.caller, base)
        hits = yield as_deferred(runtime().backends.of(info).search(query, limit=_MOST_HITS))
        seen = [hit for hit in hits if shown.may_see(self.caller, hit.page)]
        self.show(shown.hits_shown(info, query, seen))

    @waits
    def _look_at_page(self) -> Steps:
        info, name = shown.page_typed(self.caller, self.lhs, usage=f"kb {PAGE}[/<revision>]")
        before, number = revision_typed(name.full)
        page = yield from shown.page_or_none(self.caller, info, name)
        if page is None and number is not None:
            page = self.then(info, page_name(before), number)
        elif page is None:
            page = yield from shown.page_seen(self.caller, info, name)
        self.show(shown.page_shown(page, asked=name if number is None else None))

    @waits
    def links(self) -> Steps:
        info, page = yield from self._read("links")
        backend = runtime().backends.of(info)
        found = (yield as_deferred(backend.fetch(page.links))) if page.links else ()
        gone = [name for name, at in zip(page.links, found, strict=True) if not self._lists(at)]
        here: Sequence[PageName] = ()
        if info.backend == shown.STORED:
            here = self._visible(info, store.pages_linking_to(info.key, page.name))
        self.show(shown.links_shown(page, gone, here))

    @waits
    def requires(self) -> Steps:
        info, page = yield from self._read("requires")
        tree = yield from requires_tree(page, runtime().backends.of(info), seen=self._lists)
        self.show(tree_lines(tree))

    def vault(self) -> None:
        info = shown.base_named(self.caller, self.wanted("kb/vault <base> [= readings | empty]"))
        done = _passages if self.rhs is None else _SHOWN.get(self.rhs.lower())
        if done is None:
            raise CommandError(f"'{self.rhs}' is no value of kb/vault; type readings or empty.")
        if done is _emptied:
            shown.refuse_change(self.caller, info)
        self.show(done(self.caller, info, self.actor))

    def remove(self) -> Run:
        text = self.wanted(f"kb/remove {PAGE} or kb/remove <base>")
        if "/" not in text:
            return self.remove_base(shown.base_named(self.caller, text))
        self.remove_page(text)
        return None

    def _look_at_bases(self) -> None:
        infos = list(shown.visible_bases(self.caller))
        if not infos:
            self.say("There are no knowledge bases yet; kb/create <base> makes one.")
            return
        self.show(shown.listed(infos))

    def _read(self, switch: str) -> Generator[Deferred[Any], Any, tuple[BaseInfo, Page]]:
        """Return the knowledge base and the page that were typed."""
        usage = f"kb/{switch} {PAGE}"
        info, name = shown.page_typed(self.caller, self.wanted(usage), usage=usage)
        return info, (yield from shown.page_seen(self.caller, info, name))

    def _lists(self, page: Page | None) -> bool:
        """True if a page exists and the caller may see it."""
        return page is not None and shown.may_see(self.caller, page)

    def _visible(self, info: BaseInfo, names: Sequence[PageName]) -> list[PageName]:
        found = store.pages_named(info.key, names)
        return [name for name, page in zip(names, found, strict=True) if self._lists(page)]


def _asked_for(begin: str) -> list[tuple[Namespace, str]]:
    """Return the namespaces to list, each with the beginning of the wanted titles."""
    if not begin:
        return [(namespace, "") for namespace in NAMESPACES]
    head, _, prefix = begin.partition(":")
    for namespace in NAMESPACES:
        if head.strip().casefold() == namespace.casefold():
            return [(namespace, prefix.strip())]
    return [("Main", begin)]
