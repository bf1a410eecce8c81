"""The home of the pages: rooms with the NPCs in them, what each said last, and problems."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

import evennia

from evennia_ai.npc.mind.status import (
    Filter,
    GameStatus,
    NPCPage,
    NPCRow,
    PlayedCard,
    game_now,
    npcs_now,
    stored_game_status,
    stored_page,
)
from evennia_ai.npc.runtime import Runtime
from evennia_ai.npc.views.visibility import Seer
from evennia_ai.npc.views.withheld.viewer import WHISPERED
from evennia_ai.store.authored.cards import assignment_of, card_of
from evennia_ai.store.history.past_turns import LastWords, last_words_of

PAGE_NPCS: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class LastLine:
    """What an NPC said last, as the viewer may see it."""

    text: str
    to: str
    """The name of the person whom it answered; "" if that is unknown."""
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomOfNPCs:
    """A room with the NPCs of one page that are in it."""

    ref: str
    """The reference of the room, "" for the NPCs that are nowhere."""
    name: str
    npcs: tuple[str, ...]
    """The references of the NPCs."""
    players: tuple[str, ...] = ()
    """The names of the characters of players in the room; empty outside of the running game."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that a builder should look at: a sentence, and what to do about it."""

    text: str
    advice: str
    npc_ref: str = ""
    """The NPC whose page helps; "" if the problem concerns no single NPC."""
    turn: int | None = None
    """The turn of the NPC whose page helps."""
    is_hint: bool = False
    """True if nothing is broken, and the advice only makes the game better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """One page of the game's NPCs by room. `stored_home` makes it and `home_now` completes it."""

    page: NPCPage
    game: GameStatus
    rooms: tuple[RoomOfNPCs, ...]
    lines: Mapping[str, LastLine]
    """What the NPCs said last, by reference."""
    pictures: Mapping[str, PlayedCard]
    """The cards with pictures that the NPCs play, by reference."""
    problems: tuple[Problem, ...]


def stored_home(
    part: str, number: int, *, now: float, which: Filter = "", seer_of: Callable[[str], Seer]
) -> Home:
    """Return one page of the NPCs whose name or room contains `part`, as they are stored.

    The arguments are those of `stored_page`.
    """
    page = stored_page(
        part, number, size=PAGE_NPCS, now=now, which=which, seer_of=seer_of, by_room=True
    )
    words = last_words_of([row.last_turn for row in page.npcs if row.last_turn is not None])
    assignment_of.load_missing([row.ref for row in page.npcs])
    played = {row.ref: card_of(row.ref) for row in page.npcs}
    home = Home(
        page=page,
        game=stored_game_status(now=now),
        rooms=tuple(
            RoomOfNPCs(ref=ref, name=name, npcs=tuple(row.ref for row in rows))
            for (ref, name), rows in groupby(page.npcs, key=lambda row: (row.room_ref, row.room))
        ),
        lines={ref: _as_seen(said, seer_of(ref)) for ref, said in words.items()},
        pictures={
            ref: PlayedCard(name=card.name, revision=card.revision)
            for ref, card in played.items()
            if card is not None and card.has_picture
        },
        problems=(),
    )
    return replace(home, problems=tuple(_problems(home)))


def home_now(live: Runtime, home: Home, *, now: float) -> Home:
    """Return the home with what only the running game knows.

    Call this in the reactor's thread; it makes no query.
    """
    rows = home.page.npcs
    states = npcs_now(live, rows, now=now)
    npcs = tuple(replace(row, now=does) for row, does in zip(rows, states, strict=True))
    present = _players_by_room()
    found = replace(
        home,
        page=replace(home.page, npcs=npcs),
        game=replace(home.game, now=game_now(live)),
        rooms=tuple(replace(room, players=present.get(room.ref, ())) for room in home.rooms),
    )
    return replace(found, problems=tuple(_problems(found)))


def _as_seen(said: LastWords, seer: Seer) -> LastLine:
    """Return the last words of an NPC. Nobody reads whispers on a page that reloads by itself."""
    text = WHISPERED if said.is_private else seer.record(said.record).body
    return LastLine(text=text, to=said.speaker, at=said.record.created_at)


def _players_by_room() -> dict[str, tuple[str, ...]]:
    """Return the names of the characters that players play now, by their room."""
    found: dict[str, dict[int, str]] = {}
    for session in evennia.SESSION_HANDLER.values():
        puppet = session.puppet
        if puppet is not None and puppet.location is not None:
            found.setdefault(str(puppet.location.id), {})[puppet.id] = puppet.key
    return {ref: tuple(sorted(names.values())) for ref, names in found.items()}


def _problems(home: Home) -> Iterator[Problem]:
    """Yield what a builder should look at, the widest first."""
    game = home.game
    if game.stopped is not None:
        yield Problem(
            text=f"All NPCs are {game.stopped}.",
            advice="An Admin can let them answer again, here or with ai/startall.",
        )
    if (now := game.now) is not None:
        if now.spending.reached:
            yield Problem(
                text=f"No NPC asks a model: {now.spending.reached}.",
                advice="ai/limits in the game shows and changes the limits.",
            )
        for warning in now.small_windows:
            yield Problem(text=warning, advice="ai/check in the game tests it again.")
        for profile, state in now.breakers.items():
            if state != "closed":
                yield Problem(
                    text=f"The model '{profile or 'default'}' failed repeatedly and is not asked"
                    " for a while.",
                    advice="ai/check in the game tests it and says what to change.",
                )
        for advice in now.spending.unpriced:
            yield Problem(
                text="The cost of some calls is not known.",
                advice=f"{advice[:1].upper()}{advice[1:]}.",
                is_hint=True,
            )
    for row in home.page.npcs:
        yield from _problems_of(row)
    if home.page.npcs and all(row.now is not None and row.now.offline for row in home.page.npcs):
        yield Problem(
            text="No model is connected: NPCs quote sentences of your texts.",
            advice="Set EVENNIA_AI_BASE_URL and EVENNIA_AI_MODEL in server/conf/settings.py.",
            is_hint=True,
        )


def _problems_of(row: NPCRow) -> Iterator[Problem]:
    last = row.last_turn
    if row.pause is not None:
        yield Problem(
            text=f"{row.name} is {row.pause}.",
            advice="Let it answer again on its page.",
            npc_ref=row.ref,
        )
    if last is not None and last.state == "failed":
        yield Problem(
            text=f"{row.name} could not answer in turn {last.number}: {last.outcome}.",
            advice="Look at the turn; ai/check in the game tests the model.",
            npc_ref=row.ref,
            turn=last.number,
        )
    if last is not None and row.cut is not None:
        yield Problem(
            text=f"{row.name} did not get its whole prompt in turn {last.number}.",
            advice=f"{row.cut_because[:1].upper()}{row.cut_because[1:]}.",
            npc_ref=row.ref,
            turn=last.number,
        )
    if row.now is not None and row.now.refused:
        yield Problem(
            text=f"Limits refused {_times(row.now.refused)} of {row.name} today.",
            advice="ai/limits in the game shows and changes them.",
            npc_ref=row.ref,
        )
    for problem in row.problems:
        yield Problem(
            text=f"{row.name}: {problem}.",
            advice=f"ai/set {row.name} in the game changes its settings.",
            npc_ref=row.ref,
        )


def _times(count: int) -> str:
    return "an answer" if count == 1 else f"{count} answers"
