"""The command `library`: what games share, publish and take over.

The library is asked in a thread, which also writes what is taken: another machine is never waited
for here. Who may publish is who may read all of it and change it; what is taken is looked at as an
import is, and a card waits for `card/approve`.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from twisted.internet.defer import Deferred

from evennia_ai.commands.background_work import BackgroundWork, Steps, waits
from evennia_ai.commands.base import BUILDER_LOCK, CommandError, and_more, counted, day_and_time
from evennia_ai.commands.setup.knowledge.shown import base_to_change
from evennia_ai.engine.text.columns import hanging, visible
from evennia_ai.npc.mind.overview import look_at_all
from evennia_ai.npc.mind.viewers import allows
from evennia_ai.npc.model_calls.naming import game_id, game_name
from evennia_ai.npc.runtime import runtime
from evennia_ai.store.authored.cards import known_name
from evennia_ai.store.core import copies
from evennia_ai.store.core.copies import Copy, named
from evennia_ai.store.knowledge.knowledge_bases import bases, get_base
from evennia_ai.store.knowledge.pages import locks_in
from evennia_ai.store.library.bases import MOST_WRITTEN, PublishedBase, publish_base
from evennia_ai.store.library.cards import publish_card
from evennia_ai.store.library.entries import Entry, entries, entry, reading
from evennia_ai.store.library.following import LOOKING_SECONDS, take

_MOST: Final = 60


class CmdLibrary(BackgroundWork):
    """
    Share knowledge bases and cards with other games

    Usage:
      library
      library/<switch> <base>
      library/<switch> card:<name>

    Switches:
      publish - put a base or a card of this game into the library, as it is now;
                once more after you changed it
      use     - take one that another game published: a base with its pages, a
                card that waits for card/approve
      own     - let what was taken be this game's own: it may be edited here,
                and changes there come no longer

    Examples:
      library/publish harbour
      library/publish card:Oren
      library

    The library is a database that several games name in their settings. What
    this game has taken from it is a copy, which follows what is published there
    and is edited there alone; where it counts, whom it is bound to and who is
    held to safe summaries is said here. kb/remove and card/remove take a copy
    away.
    """

    key = "library"
    locks = BUILDER_LOCK.format(key="library")
    help_category = "Building"
    auto_help = True
    verbs = {"": "look", "publish": "publish", "use": "use", "own": "own"}

    @waits
    def look(self) -> Steps:
        """List what is in the library, and what this game has of it."""
        self.refuse_value()
        if self.lhs:
            raise CommandError(f"To take it: library/use {self.lhs}. Nothing was changed.")
        found = yield self._asked_of_library(_listed)
        hidden = {one.key for one in bases() if not allows(self.caller, one.locks, "view")}
        seen = [one for one in found if one.kind != "base" or one.name not in hidden]
        known = [one for one in copies.copies() if one.kind != "base" or one.name not in hidden]
        self.show(_lines(seen, known, own_game=game_id()))

    @waits
    def publish(self) -> Steps:
        self.refuse_value()
        kind, name = named(self.wanted("library/publish <base> | card:<name>"))
        game, by = {"game": game_id(), "game_name": game_name()}, self.actor
        if kind == "card":
            name = known_name(name)
            is_new = yield self._asked_of_library(partial(publish_card, name, by=by, **game))
            self.say(_published(copies.typed(kind, name), is_new=is_new))
            return
        info = base_to_change(self.caller, name)
        if not all(allows(self.caller, locks, "view") for locks in locks_in(info.key)):
            raise CommandError(
                f"Knowledge base '{info.key}' has pages that you may not see, so it is not yours to"
                " publish. Nothing was changed."
            )
        done = yield self._asked_of_library(partial(publish_base, info.key, by=by, **game))
        self.show(_told_of_base(info.key, done))

    @waits
    def use(self) -> Steps:
        self.refuse_value()
        kind, name = named(self.wanted("library/use <base> | card:<name>"))
        by = self.actor

        def taken() -> Entry:
            with reading(seconds=LOOKING_SECONDS):
                found = entry(kind, name)
            take(found, by=by, most=MOST_WRITTEN)
            return found

        found = yield self._asked_of_library(taken)
        begin = f"Took {found.typed}, which the game {found.game_name} published."
        if kind == "card":
            self.say(f"{begin} It waits: card/report {name}, then card/approve {name}.")
            return
        info = get_base(name)
        look_at_all(info)
        self.say(
            f"{begin} Knowledge base {info.key} has {counted(info.pages, 'page')} and follows the"
            f" library; kb/bind {info.key} = npc:<name> says who may search it."
        )

    def own(self) -> None:
        self.refuse_value()
        kind, name = named(self.wanted("library/own <base> | card:<name>"))
        if kind == "base":
            base_to_change(self.caller, name)
        if not copies.make_own(kind, name, by=self.actor):
            raise CommandError(
                f"{copies.typed(kind, name)} does not come from the library. Nothing was changed."
            )
        self.say(
            f"{copies.typed(kind, name)} is this game's own from now on: edit it here; what"
            " changes in the library does not come any more."
        )

    def _asked_of_library(self, work: Callable[[], Any]) -> "Deferred[Any]":
        """What `work` returns, which asks the library in a thread."""
        return runtime().library.asked(work)


def _listed() -> tuple[Entry, ...]:
    with reading(seconds=LOOKING_SECONDS):
        return entries()


def _lines(found: Sequence[Entry], known: Sequence[Copy], *, own_game: str) -> Iterator[str]:
    used = {copy.typed: copy for copy in known}
    rows = [row for one in found for row in hanging(_row(one, used.get(one.typed), own_game))]
    there = {one.typed for one in found}
    rows += [
        row
        for copy in known
        if copy.typed not in there
        for row in hanging(f"  {visible(copy.typed)}: used here, and in the library no more")
    ]
    yield "The library:" if rows else "The library is empty; library/publish <base> fills it."
    yield from and_more(rows, most=_MOST)


def _row(one: Entry, copy: Copy | None, own_game: str) -> str:
    by = "this game" if one.game == own_game else f"the game {visible(one.game_name)}"
    row = f"  {visible(one.typed)}: {by} published it {day_and_time(one.published_at)}"
    if copy is None:
        return row
    state = "used here" if copy.sha256 == one.sha256 else "used here as it was before"
    return f"{row}; {state}"


def _published(typed: str, *, is_new: bool) -> str:
    if not is_new:
        return f"{typed} is in the library as it is now already; nothing was changed."
    return f"Published {typed}. Games that use it have it in some minutes."


def _told_of_base(key: str, done: PublishedBase) -> Iterator[str]:
    yield from hanging(_published(key, is_new=done.is_new))
    yield f"  pages: {done.pages}"
    if done.kept:
        kept = [visible(name.full) for name in done.kept]
        yield from hanging(
            "  at home stay, because their locks ask for more than permissions:"
            f" {', '.join(and_more(kept, most=20, more='and {} more'))}"
        )
