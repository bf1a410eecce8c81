"""What pages ask of the running game.

Each function returns plain values. Reads of the game's memory and all changes run in the reactor's
thread.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from evennia.objects.models import ObjectDB
from evennia.utils import logger
from twisted.internet import reactor as running
from twisted.internet import threads
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.python.failure import Failure
from twisted.python.threadable import isInIOThread

from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import EvenniaAIError, NotStoredError
from evennia_ai.engine.knowledge.pages.page import BackendError
from evennia_ai.engine.knowledge.restricted.mediation import MOST_IN_ALL, PagePassage
from evennia_ai.engine.prompt.report import Report
from evennia_ai.npc.inputs.facts import at_hour
from evennia_ai.npc.knowledge import search
from evennia_ai.npc.knowledge.guarding import is_held_by_lock, searchable_bases
from evennia_ai.npc.mind import emergency
from evennia_ai.npc.mind.actors import actor_of
from evennia_ai.npc.mind.control import (
    commit_correction,
    commit_retry,
    commit_undo,
    open_fresh_branch,
    open_visible_branch,
    retry_in_branch,
)
from evennia_ai.npc.mind.home import Home, home_now
from evennia_ai.npc.mind.memory_list import ListedMemory, list_memories
from evennia_ai.npc.mind.own_data import ListedReport, OwnData, list_reports, own_data
from evennia_ai.npc.mind.room_list import refuse_missing_room
from evennia_ai.npc.mind.spawning import delete_npc, npc_name, spawn_npc
from evennia_ai.npc.mind.status import GameNow, NPCStatus, game_now, stored_status
from evennia_ai.npc.mind.viewers import seer_for
from evennia_ai.npc.npc_settings import change_settings, given_to, settings_of
from evennia_ai.npc.runtime import runtime
from evennia_ai.npc.senses.labels import label_of
from evennia_ai.npc.senses.presence import HasMind, object_of, room_ref_of, seen_here
from evennia_ai.npc.senses.text import plain_name
from evennia_ai.npc.speech.output import talk_to
from evennia_ai.npc.tools.knowledge import USUAL_HITS
from evennia_ai.npc.tools.registry import choice_of, choose_tools
from evennia_ai.npc.turn.rehearsal import Rehearsed, rehearse
from evennia_ai.npc.views.looking import foreseen_report
from evennia_ai.npc.views.lore_reasons import Because, titles_of, why_active
from evennia_ai.npc.views.parse_cache import read_ahead
from evennia_ai.store.authored.cards import StoredCard
from evennia_ai.store.erasing import Forgotten, forget_person
from evennia_ai.store.history import branches, turns
from evennia_ai.store.history.branches import Branch, builder_of, npc_of
from evennia_ai.store.history.record_rows import ConversationRef
from evennia_ai.store.knowledge import knowledge_bases
from evennia_ai.store.personal_data import personal_data

reactor: Any = running  # the game chooses its reactor before it imports this module
TOOLS: Final = "tools"
_WHY: Final = "stopped on the web page"


def page_actor(account: Any, rank: str, *, address: str) -> Actor:
    """Return an account as an actor who must have the permission `rank` or a higher one."""
    return actor_of(account, f"cmd:perm({rank})", addresses=[address])


def player_actor(account: Any, *, address: str) -> Actor:
    """Return an account as an actor for what every player may do about themselves."""
    return actor_of(account, "cmd:all()", addresses=[address])


def character_refs(account: Any) -> tuple[str, ...]:
    """Return the references of an account's characters, those that it plays now first.

    The others are included because a builder who looks at a page has often left the game.
    """
    now = ObjectDB.objects.filter(db_account_id=account.id).values_list("id", flat=True)
    # `account.characters` may write to the database each time it is read.
    own = (one.id for one in account.db._playable_characters or () if one)
    return tuple(dict.fromkeys(map(str, (*now, *own))))


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCharacter:
    """A character of an account, and what NPCs keep of it."""

    ref: str
    name: str
    data: OwnData


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A prompt that an NPC would send, and why its lore would be active."""

    report: Report
    reasons: tuple[Because, ...]
    titles: Mapping[str, str]
    """The names of its texts, by origin."""
    conditional: Mapping[str, str]
    """The conditions of its notes and components, by origin."""


def own_data_of(account: Any) -> tuple[OwnCharacter, ...]:
    """Return what NPCs keep of each character of an account, as its player may read it."""
    stored = [(ref, personal_data(ref)) for ref in character_refs(account)]

    def read() -> tuple[OwnCharacter, ...]:
        known = ((ref, object_of(ref), data) for ref, data in stored)
        return tuple(
            OwnCharacter(ref=ref, name=plain_name(one.key), data=own_data(one, data))
            for ref, one, data in known
            if one is not None and not isinstance(one, HasMind)
        )

    found: tuple[OwnCharacter, ...] = _in_the_reactor(read)
    return found


def forget(player_ref: str, *, npc_ref: str | None, by: Actor) -> Forgotten:
    """Erase what one NPC or all NPCs keep of a player."""
    done: Forgotten = _in_the_reactor(lambda: forget_person(player_ref, by=by, npc_ref=npc_ref))
    return done


def reports(account: Any, *, first: int, most: int) -> tuple[ListedReport, ...]:
    """Return reports of players, as the account may read them, the newest first."""
    found: tuple[ListedReport, ...] = _in_the_reactor(
        lambda: list_reports(account, first=first, most=most)
    )
    return found


def preview(ref: str, line: str, *, account: Any, hour: int | None = None) -> Preview:
    """Return the prompt that an NPC would send if the account now said `line`.

    What the account may not see is hidden. "" means a prompt without a line. Nothing is stored and
    no model is asked.

    Args:
        hour: The hour of the game's day, from 0 to 23; None for the present one.

    Raises:
        NotStoredError: There is no such NPC.
        BudgetError: The turn would fail with this line.
    """

    def composed() -> Preview:
        speaker = next(iter(character_refs(account)), "")
        inputs = _npc(ref).ai.foreseen(line or None, object_of(speaker))
        inputs = inputs if hour is None else at_hour(inputs, hour)
        seer = seer_for(account, ref)
        made, report = foreseen_report(seer, inputs)
        seen = seer.seen(inputs).inputs
        return Preview(
            report=report,
            reasons=why_active(seen, made.lore),
            titles=titles_of(seen),
            conditional={
                one.origin: one.component.when
                for one in (*seen.notes.compiled.members, *seen.components.compiled.members)
                if one.conditions
            },
        )

    found: Preview = _in_the_reactor(composed)
    return found


def home(stored: Home) -> Home:
    """Return the home with what NPCs do now. No object is loaded."""
    found: Home = _in_the_reactor(lambda: home_now(runtime(), stored, now=time.time()))
    return found


def npc_status(ref: str) -> NPCStatus:
    """Return the state of an NPC or of a builder's branch. A deleted NPC has only what is stored.

    The queries about what is stored run in the page's thread.
    """
    now = time.time()
    stored = stored_status(ref, now=now)

    def read() -> Any:
        if not isinstance(object_of(npc_of(ref)), HasMind):
            return stored
        return _npc(npc_of(ref)).ai.status_now(stored, now=now)

    found: NPCStatus = _in_the_reactor(read)
    return found


def display_of(ref: str) -> Callable[[str], str]:
    """Return the function that shows words of an NPC as players see them.

    The words of a deleted NPC are shown as they are recorded.
    """

    def read() -> Any:
        if not isinstance(object_of(npc_of(ref)), HasMind):
            return str
        mind = _npc(npc_of(ref)).ai
        mind.view()  # brings the scripts up to date, in the thread that may read the NPC
        return mind.display

    found: Callable[[str], str] = _in_the_reactor(read)
    return found


def memories(ref: str, *, account: Any) -> tuple[ListedMemory, ...]:
    """Return what an NPC remembers, as the account may see it."""
    found: tuple[ListedMemory, ...] = _in_the_reactor(
        lambda: list_memories(ref, seer_for(account, ref))
    )
    return found


def game_state() -> GameNow:
    """Return what all NPCs of the game do now."""
    found: GameNow = _in_the_reactor(lambda: game_now(runtime()))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A setting of an NPC. `is_own` is False if the NPC follows the game's setting."""

    name: str
    value: str
    is_own: bool


def settings(ref: str) -> tuple[Setting, ...]:
    """Return the settings of an NPC and its tools.

    Raises:
        NotStoredError: There is no such NPC.
    """

    def read() -> tuple[Setting, ...]:
        npc = _npc(ref)
        own, values = given_to(npc), settings_of(npc)
        told = [
            Setting(
                name=one.name, value=_in_words(getattr(values, one.name)), is_own=one.name in own
            )
            for one in fields(values)
            if one.name != TOOLS
        ]
        tools = ", ".join(tool.name for tool in choice_of(npc).has)
        return (*told, Setting(name=TOOLS, value=tools or "none", is_own=TOOLS in own))

    found: tuple[Setting, ...] = _in_the_reactor(read)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolChoice:
    """A tool of the game, and whether an NPC has it."""

    name: str
    description: str
    is_dangerous: bool
    is_on: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What a builder can choose for an NPC."""

    mode: str
    profile: str
    """The name of the NPC's own profile, "" if it follows the game."""
    profiles: tuple[str, ...]
    usual_profile: str
    own: Mapping[str, Any]
    """The settings that the NPC has of its own."""
    tools: tuple[ToolChoice, ...]


def choices(ref: str) -> Choices:
    """Return what a builder can choose for an NPC, and what is chosen.

    Raises:
        NotStoredError: There is no such NPC.
    """

    def read() -> Choices:
        npc, live = _npc(ref), runtime()
        values, tools = settings_of(npc), choice_of(npc)
        return Choices(
            mode=values.mode,
            profile=values.profile,
            profiles=tuple(one.profile.name for one in live.models.accesses()),
            usual_profile=live.models.of_role("speaker")[0].profile.name,
            own={name: getattr(values, name) for name in given_to(npc) if name != TOOLS},
            tools=tuple(
                ToolChoice(
                    name=tool.name,
                    description=" ".join(tool.description.split()),
                    is_dangerous=tool.dangerous,
                    is_on=is_on,
                )
                for is_on, known in ((True, tools.has), (False, tools.others))
                for tool in known
            ),
        )

    found: Choices = _in_the_reactor(read)
    return found


def choose(ref: str, *, values: Mapping[str, Any], tools: Sequence[str], by: Actor) -> None:
    """Change settings and tools of an NPC. None as a value follows the game's setting.

    Raises:
        SettingError: A value is invalid. Nothing was changed.
    """

    def changed() -> None:
        npc = _npc(ref)
        change_settings(npc, by=by, **values)
        if set(tools) != {tool.name for tool in choice_of(npc).has}:
            choose_tools(npc, tools, by=by)
        runtime().ticker.stirs(npc)  # the new values may start or stop what it does on its own

    _in_the_reactor(changed)


def _in_words(value: Any) -> str:
    if value is None or value in ("", (), {}):
        return "not set, as in the game"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {said}" for name, said in value.items())
    return ", ".join(map(str, value)) if isinstance(value, tuple | frozenset) else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundBy:
    """What an NPC finds in a knowledge base."""

    may_search: bool
    """True if the base is assigned to the NPC or its place, and its lock allows the NPC."""
    guards: bool
    """True if the NPC gets only safe summaries or hints."""
    passages: tuple[PagePassage, ...] = ()


def search_as(ref: str, base: str, words: str) -> FoundBy:
    """Return what an NPC finds in a knowledge base. The NPC learns nothing, and nothing is stored.

    Raises:
        BackendError: The base cannot be read now.
    """
    return _in_the_reactor(lambda: _searched(_npc(ref), base, words))


async def _searched(npc: Any, base: str, words: str) -> FoundBy:
    known = next((info for info in searchable_bases(npc, None) if info.key == base), None)
    if known is None:
        return FoundBy(may_search=False, guards=False)
    found = await search.search_bases(
        npc,
        [known],
        words,
        backends=runtime().backends,
        limit=USUAL_HITS,
        most_whole=MOST_IN_ALL,
    )
    if found.unread:
        raise BackendError(f"knowledge base '{base}' cannot be read now; the Server log says why")
    is_kept = str(npc.id) in knowledge_bases.held_refs(base)
    guards = known.restricted and (is_kept or is_held_by_lock(npc, known))
    return FoundBy(may_search=True, guards=guards, passages=found.chunks)


def pause(ref: str, *, by: Actor) -> None:
    """Stop one NPC until `resume`, and give up its running turn."""
    _in_the_reactor(lambda: emergency.pause(_npc(ref), by=by, reason=_WHY))


def resume(ref: str, *, by: Actor) -> None:
    """Let a paused NPC answer again."""
    _in_the_reactor(lambda: emergency.resume(_npc(ref), by=by))


def stop_all(*, by: Actor) -> None:
    """Stop all NPCs of the game until `start_all`."""
    _in_the_reactor(lambda: emergency.stop_all(by=by, reason=_WHY))


def start_all(*, by: Actor) -> None:
    """Let all NPCs of the game answer again."""
    _in_the_reactor(lambda: emergency.start_all(by=by))


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """Where an NPC is, and whether an account can speak with it there."""

    room: str
    """The name of the room, "" for an NPC without one."""
    room_ref: str
    people: tuple[str, ...]
    """The names of the other characters in the room, in order of arrival."""
    speaker: str
    """The name of the account's character, "" without one."""
    speaker_ref: str
    why_not_aloud: str
    """Why the account cannot speak aloud there, "" if it can."""
    is_answering: bool


def around(ref: str, *, account: Any) -> Around:
    """Return where an NPC is and who is there.

    Args:
        ref: The reference of an NPC or of a builder's branch.

    Raises:
        NotStoredError: There is no such NPC.
    """
    refs = character_refs(account)

    def read() -> Around:
        npc = _npc(npc_of(ref))
        speaker, why = _speaker(npc, refs)
        return Around(
            room=plain_name(npc.location.key) if npc.location else "",
            room_ref=room_ref_of(npc),
            people=tuple(label_of(npc, who) for who in seen_here(npc)),
            speaker=plain_name(speaker.key) if speaker else "",
            speaker_ref=str(speaker.id) if speaker else "",
            why_not_aloud=why,
            is_answering=runtime().scheduler.in_flight(ref)
            or (ref == npc.ai.ref and npc.ai.is_busy),
        )

    found: Around = _in_the_reactor(read)
    return found


def room_of_account(account: Any) -> str:
    """Return the reference of the room in which the account's character is, "" without one."""
    refs = character_refs(account)
    found: str = _in_the_reactor(
        lambda: next((str(who.location.id) for who in _characters(refs) if who.location), "")
    )
    return found


def say_aloud(ref: str, text: str, *, account: Any, by: Actor) -> None:
    """Let the account's character say a text aloud to an NPC in the same room.

    Raises:
        SpeechError: It cannot.
    """
    refs = character_refs(account)

    def said() -> None:
        by.check("speaking on the web page")
        npc = _npc(ref)
        speaker, why = _speaker(npc, refs)
        if why or not talk_to(speaker, npc, text):
            raise SpeechError(why or f"The game does not let {speaker.key} say that.")

    _in_the_reactor(said)


def say_in_branch(ref: str, text: str, *, account: Any, by: Actor) -> None:
    """Say a text in the account's own branch of an NPC. The answer comes later.

    Args:
        ref: The reference of the branch.

    Raises:
        SpeechError: The branch belongs to another character, or it was closed.
        BranchError: The NPC is stopped or a limit is reached.
    """
    refs = character_refs(account)

    def said() -> None:
        by.check("speaking in a branch")
        branch, builder = _own_branch(ref, refs)
        _rehearse(_npc(npc_of(ref)), branch, text, typist=object_of(builder))

    _in_the_reactor(said)


def visit(ref: str, text: str, *, account: Any, by: Actor) -> str:
    """Meet an NPC as a visitor in a branch without a past. Return the reference of the branch.

    Args:
        text: The visitor's first words. "" only opens the branch.

    Raises:
        SpeechError: The account has no character.
        BranchError: The NPC is stopped or a limit is reached.
    """
    refs = character_refs(account)

    def opened() -> str:
        npc, looker = _npc(ref), _own_character(refs)
        branch = open_fresh_branch(looker, npc, by=by)
        if text:
            _rehearse(npc, branch, text, typist=looker)
        return branch.conversation.npc_ref

    made: str = _in_the_reactor(opened)
    return made


def open_branch(ref: str, number: int, *, account: Any, by: Actor) -> str:
    """Open a branch from a turn of an NPC. Return the reference of the branch.

    Raises:
        SpeechError: The account has no character.
        BranchError, ControlError: There can be no branch.
    """
    turn, refs = turns.get_turn(ref, number), character_refs(account)
    made: str = _in_the_reactor(
        lambda: (
            open_visible_branch(_own_character(refs), _npc(ref), turn, by=by).conversation.npc_ref
        )
    )
    return made


def undo(where: ConversationRef, count: int, *, by: Actor) -> None:
    """Take back the newest exchanges of a conversation of an NPC or of a branch."""
    _in_the_reactor(lambda: commit_undo(_npc(npc_of(where.npc_ref)), where, count, by=by))


def retry(where: ConversationRef, hint: str, *, account: Any, by: Actor) -> None:
    """Take back the newest answer of a conversation, and let the NPC answer again.

    Raises:
        SpeechError: The conversation is a branch that the account did not open.
        ControlError, BranchError: It has no answer, or the NPC cannot answer now.
    """
    npc_ref, refs = npc_of(where.npc_ref), character_refs(account)

    def again() -> Any:
        npc = _npc(npc_ref)
        if npc_ref == where.npc_ref:
            return commit_retry(npc, where, hint, by=by)
        branch, builder = _own_branch(where.npc_ref, refs)
        done = retry_in_branch(npc, branch, hint, typist=object_of(builder), by=by)
        return _keep_reason(npc, branch, done)

    _in_the_reactor(again)


def correct(ref: str, record: str, text: str, *, account: Any, by: Actor) -> None:
    """Replace what an NPC said in one record, in the game or in a branch."""
    _in_the_reactor(
        lambda: commit_correction(account, _npc(npc_of(ref)), record, text, mind_ref=ref, by=by)
    )


def spawn(card: StoredCard, name: str, room_ref: str, *, account: Any, by: Actor) -> str:
    """Create an NPC that plays a card, in this room. Return its reference.

    Raises:
        NotStoredError: The room does not exist.
        SpawnError, NotPermittedError: The NPC cannot be created.
    """
    read_ahead(card)  # parse it in this thread, so that the game's thread does not have to
    refuse_missing_room(room_ref)
    wanted, refs = npc_name(card, name), character_refs(account)

    def made() -> str:
        room = object_of(room_ref)
        maker = next(iter(_characters(refs)), account)
        ref: str = spawn_npc(card, name=wanted, room=room, maker=maker, by=by).ai.ref
        return ref

    found: str = _in_the_reactor(made)
    return found


def retire(ref: str, *, account: Any, by: Actor) -> None:
    """Delete an NPC that plays a card. The card and what was recorded stay."""
    refs = character_refs(account)

    def deleted() -> None:
        npc = _npc(ref)
        # The lock `id(12)` means character 12, but Evennia would let account 12 pass, too.
        is_mistakable = f"id({account.id})" in str(npc.locks)
        lookers = [*_characters(refs), *([] if is_mistakable else [account])]
        delete_npc(npc, lookers=lookers, by=by)

    _in_the_reactor(deleted)


class SpeechError(EvenniaAIError):
    """The account's character cannot say this. Nothing was said."""


def _speaker(npc: Any, refs: Sequence[str]) -> tuple[Any, str]:
    """Return the account's character who can speak with the NPC, and why it cannot, if so."""
    own = _characters(refs)
    if not own:
        return None, "Your account has no character in the game, so nobody can speak for you."
    here = [one for one in own if one.location is not None and one.location == npc.location]
    if not here:
        where = f" in {plain_name(npc.location.key)}" if npc.location else ""
        return own[0], f"{own[0].key} is not with {npc.key}{where}. Go there in the game first."
    return here[0], ""


def _characters(refs: Sequence[str]) -> list[Any]:
    return [one for ref in refs if (one := object_of(ref)) is not None]


def _own_character(refs: Sequence[str]) -> Any:
    """Return the account's character that speaks in branches.

    Raises:
        SpeechError: The account has none.
    """
    found = next(iter(_characters(refs)), None)
    if found is None:
        raise SpeechError(
            "Your account has no character in the game, so nobody can speak for you. Create one in"
            " the game, then try again. Nothing was said."
        )
    return found


def _rehearse(npc: Any, branch: Branch, text: str, *, typist: Any) -> None:
    """Say a text in a branch, and keep the reason if there is no answer."""
    _keep_reason(npc, branch, rehearse(npc, branch, text, typist=typist))


def _own_branch(ref: str, refs: Sequence[str]) -> tuple[Branch, str]:
    """Return the branch with this reference, and the reference of who opened it.

    Raises:
        SpeechError: It was closed, or none of the characters `refs` opened it.
    """
    npc_ref, builder = npc_of(ref), builder_of(ref)
    branch = branches.newest_branch(npc_ref, builder) if builder in refs else None
    if branch is None:
        raise SpeechError("Only who opened a branch speaks in it. Nothing was said.")
    return branch, builder


def _keep_reason(npc: Any, branch: Branch, done: "Deferred[Rehearsed]") -> None:
    """Keep the reason if a turn in a branch, which is not waited for, gives no answer."""
    ref = branch.conversation.npc_ref
    _no_answer.pop(ref, None)

    def ended(result: Rehearsed | Failure) -> None:
        if isinstance(result, Failure):
            result.trap(EvenniaAIError)
            _no_answer[ref] = str(result.value)

    done.addBoth(ended).addErrback(
        lambda failure: logger.log_err(
            f"evennia_ai: a branch of NPC {npc.ai.ref} failed\n{failure.getTraceback()}"
        )
    )


_no_answer: Final[dict[str, str]] = {}
"""Why the newest line of a branch got no answer, by the reference of the branch."""


def why_no_answer(ref: str) -> str:
    """Return why the newest line of a branch got no answer, "" if it got one or waits for it."""
    return _no_answer.get(ref, "")


def _npc(ref: str) -> Any:
    found = object_of(ref)
    if not isinstance(found, HasMind):
        raise NotStoredError("NPC with number", ref, [])
    return found


def _in_the_reactor(act: Callable[[], Any]) -> Any:
    """Call `act` in the reactor's thread. Wait for its result, also if it is a coroutine."""

    def done() -> "Deferred[Any]":
        return maybeDeferred(act)

    if reactor.running and not isInIOThread():
        return threads.blockingCallFromThread(reactor, done)
    told = done()  # without a running reactor, as in a script, all work finishes at once
    failed = told.result
    if isinstance(failed, Failure):
        told.addErrback(lambda _: None)  # raised below, so Twisted need not report it
        failed.raiseException()
    return told.result
