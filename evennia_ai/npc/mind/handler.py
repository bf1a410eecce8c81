"""AIHandler: the mind of one NPC (`npc.ai`), which hears, answers and explains itself."""

import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from django.db import DatabaseError
from evennia.utils import logger
from twisted.internet.defer import Deferred, succeed

from evennia_ai.engine.compose import compose
from evennia_ai.engine.errors import StoreError
from evennia_ai.engine.history.turn.replay import turn_report
from evennia_ai.engine.inputs import Inputs
from evennia_ai.engine.lorebook.book import names_of
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.names import SOMEONE
from evennia_ai.engine.prompt.prompt import Prompt
from evennia_ai.engine.prompt.report import Report, explain_lines, make_report
from evennia_ai.engine.regex_scripts import display_text
from evennia_ai.npc.filtering import FilteredWords, InOrder, withheld
from evennia_ai.npc.floor.addressing import mentions
from evennia_ai.npc.inputs import gather
from evennia_ai.npc.inputs.facts import standing_facts
from evennia_ai.npc.mind.attention import Attention
from evennia_ai.npc.mind.status import NPCStatus, left_of_limits, npcs_now, stored_status
from evennia_ai.npc.npc_settings import ATTRIBUTE, settings_in
from evennia_ai.npc.recording.heard import ConversationKey, Lately
from evennia_ai.npc.runtime import Current
from evennia_ai.npc.senses.choices import has_opted_out
from evennia_ai.npc.senses.events import HEARD, Event
from evennia_ai.npc.senses.labels import label_of
from evennia_ai.npc.senses.perception import (
    Payload,
    client_of,
    event_from_message,
    heard_text,
    payload_of,
    sender_of,
)
from evennia_ai.npc.senses.presence import (
    NPC,
    is_on,
    known_ref,
    names_for,
    object_of,
    rank_of,
    room_ref_of,
    scopes_of,
)
from evennia_ai.npc.senses.sincere import language_of_sincere_question
from evennia_ai.npc.senses.text import person_name, plain_name
from evennia_ai.npc.speech.output import deliver_reply, tell_about
from evennia_ai.npc.tools.registry import problems_of
from evennia_ai.npc.views.view import NPCView, char_name_of, sources_of, view_of
from evennia_ai.services.settings.kinds import NOTHING_DISCLOSED, Disclosure
from evennia_ai.services.settings.npc import USUAL, NPCSettings
from evennia_ai.store import memories
from evennia_ai.store.history import record_rows, turns
from evennia_ai.store.history.turns import StoredTurn
from evennia_ai.store.memories import NewlyNamed

HABITS: Final = "ai_habits"
"""The Attribute with what an NPC does by itself at its ticks."""


class AIHandler:
    """The mind of `npc`. The store holds everything lasting; the rest may be lost in a reload."""

    def __init__(self, npc: NPC, current: Current) -> None:
        self.npc = npc
        self.ref = str(npc.id)
        self._stored_settings: Any = None
        self._settings: tuple[NPCSettings, tuple[str, ...]] = (USUAL, ())
        self.known_view: NPCView | None = None
        """The view of the last turn."""

        self._current: Final = current
        self._habits_done = 0
        self.lately: Final = Lately(self.ref)
        self.foreseen_names: OrderedDict[str, dict[str, bool]] = OrderedDict()
        """Folded name -> references of people seen with it, in order, until they are stored.

        True: it is being stored.
        """

        self.attention: Final = Attention(self, current)
        self._arriving: Final = InOrder(self._pass_on)
        """Events that the game's filter has not decided about yet."""
        # Turns report to `Attention`, without the filter in between.
        self.spoke: Final = self.attention.spoke
        self.gone: Final = self.attention.gone
        self.speaker_left: Final = self.attention.speaker_left
        self.begun: Final = self.attention.begun
        self.answered: Final = self.attention.answered
        self.disengage: Final = self.attention.disengage
        self.put_back: Final = self.attention.put_back
        self.unanswered: Final = self.attention.unanswered
        self.waiting_records: Final = self.attention.waiting_records

    @property
    def enabled(self) -> bool:
        """True if the NPC is switched on and no player plays it."""
        return is_on(self.npc)

    @property
    def settings(self) -> NPCSettings:
        """Return the settings of this NPC. This makes no query once they are cached."""
        return self._read_settings()[0]

    @property
    def settings_problems(self) -> tuple[str, ...]:
        """Return the problems of settings that are invalid and ignored, for builders."""
        return self._read_settings()[1]

    def _read_settings(self) -> tuple[NPCSettings, tuple[str, ...]]:
        """Return the settings and their problems.

        They are parsed again, and the problems logged, only if the Attribute was changed.
        """
        attribute = self.npc.attributes.get(ATTRIBUTE, return_obj=True)
        stored = None if attribute is None else attribute.db_value
        # Evennia gives an Attribute a new value object for every change, even a change in place.
        if stored is not self._stored_settings:
            self._stored_settings = stored
            self._settings = settings_in(stored)
            for problem in self._settings[1]:
                logger.log_warn(f"evennia_ai: settings of NPC {self.ref}: {problem}")
        return self._settings

    @property
    def fallback_line(self) -> str:
        """Return the line that the NPC says if it gets no reply from a model."""
        return self.npc.fallback_line or self._current.runtime.conf.fallback_line

    @property
    def withheld_line(self) -> str:
        """Return the line that the NPC says instead of a reply that the game's filter withholds."""
        return self._current.runtime.conf.filter.line

    def settle_names(self, new: Sequence[NewlyNamed]) -> "Deferred[object]":
        """Store the labels of people, before later events that use them are committed."""
        return self._current.runtime.writer.write(partial(memories.settle_names, new))

    @property
    def own_names(self) -> tuple[str, ...]:
        """Return the names of the NPC: the one of its card, if that can be read, and its key."""
        key, view = plain_name(self.npc.key), self.known_view
        try:
            return (char_name_of(key, self.ref) if view is None else view.char_name), key
        except (StoreError, DatabaseError):  # a turn needs the view as well and reports this error
            return (key,)

    def display(self, text: str) -> str:
        """Return words of the NPC as players see them, after the regex scripts for players."""
        try:
            view = self.known_view or self.view()
        except (StoreError, DatabaseError):  # a turn needs the view as well and reports this error
            return text
        if not view.scripts:
            return text
        partner = person_name(self.npc.ai_partner or gather.VISITOR)
        return display_text(
            text,
            view.scripts,
            values={"char": view.char_name, "user": partner},
            dice=Dice(turn=self.ref, conversation=self.ref),
        )

    @property
    def is_busy(self) -> bool:
        """True if a turn is running, or an event is not committed yet."""
        if self._arriving:
            return True
        return self.attention.is_busy or self._current.runtime.scheduler.in_flight(self.ref)

    def enable(self) -> None:
        """Switch the NPC on."""
        self.npc.ai_enabled = True

    def disable(self) -> None:
        """Switch the NPC off. It still hears and remembers, but does not answer."""
        self.npc.ai_enabled = False
        self.attention.drop_waiting("the NPC was switched off")

    def view(self, settings: NPCSettings | None = None) -> NPCView:
        """Return the view for composing turns. It is built again if one of its sources changed.

        Args:
            settings: The settings of the NPC, if the caller has already read them.
        """
        settings, live = settings or self.settings, self._current.runtime
        sources = sources_of(
            self.ref,
            scopes_of(self.npc),
            facts=standing_facts(self.npc),
            conf=live.conf,
            limit_tokens=live.models.speaking_limit(settings),
            tools=settings.tools,
        )
        if stand_ins := live.book_builds.stand_ins(sources.books):
            sources = replace(sources, stand_ins=stand_ins)
        if self.known_view is None or not self.known_view.sources.is_same(sources):
            self.known_view = view_of(plain_name(self.npc.key), sources)
            for problem in self.known_view.problems:
                logger.log_warn(f"evennia_ai: {problem}")
        return self.known_view

    # Hearing.

    def hear(self, event: Event) -> None:
        """Perceive an event, after the game's filter has decided about the words of a person.

        Happenings and words of NPCs are not filtered, but they do not overtake words that wait.
        """
        game_filter = self._current.runtime.filter
        if not self._arriving and not game_filter.is_set("heard"):
            self.attention.hear(event)
            return
        verdict: Deferred[str] = succeed("")
        if event.kind in HEARD and not event.is_without_person:
            words = FilteredWords(
                text=event.text,
                npc=self.npc,
                person=object_of(event.speaker_ref),
                private=event.private,
            )
            verdict = game_filter.heard(words)
        self._arriving.add(event, verdict)

    def _pass_on(self, event: Event, reason: str) -> None:
        """Let the NPC hear an event. Withheld words are replaced by the reason."""
        if not reason:
            self.attention.hear(event)
            return
        live = self._current.runtime
        live.watch.withheld(self.ref, side="heard", reason=reason)
        if event.private or event.to_ref == self.ref or self._is_named(event):
            live.signs.show("withheld", self.npc, event)
        self.attention.hear(replace(event, text=f"({withheld(reason)})", withheld=reason))

    def _is_named(self, event: Event) -> bool:
        return mentions(event.text, names_for(self.npc, event.speaker_ref))

    def receive(self, text: Any, from_obj: Any) -> None:
        """Perceive a message sent to the NPC. The arguments are those of `at_msg_receive`."""
        if self.npc.has_account:
            return
        self._answer_sincerely(payload_of(text), sender_of(from_obj))
        try:
            event = event_from_message(self.npc, text, from_obj)
        except DatabaseError as error:
            logger.log_err(
                f"evennia_ai: NPC {self.ref}: a message was not perceived, because the database"
                f" cannot be read: {error}"
            )
            return
        if event is not None:
            self.hear(event)
        else:
            self._nod_to_opted_out(text, sender_of(from_obj))

    @property
    def is_offline(self) -> bool:
        """True if no model speaks for this NPC."""
        models = self._current.runtime.models.of_role("speaker", settings=self.settings)
        return all(access.model.offline for access in models)

    @property
    def disclosure(self) -> Disclosure:
        """Return what players are told about this NPC: nothing if no model speaks for it."""
        return NOTHING_DISCLOSED if self.is_offline else self._current.runtime.conf.disclosure

    def follow_habit(self) -> bool:
        """Do the next of the NPC's habits. Return False if it has none.

        The Attribute `ai_habits` is a text or a list of texts. Each is written like a reply: a pose
        between asterisks, or words to say. No model is asked, and nobody answers.
        """
        stored = self.npc.attributes.get(HABITS)
        habits = [stored] if isinstance(stored, str) else list(stored or ())
        if not habits:
            return False
        text = str(habits[self._habits_done % len(habits)])
        self._habits_done += 1
        deliver_reply(self.npc, text, own_names=[plain_name(self.npc.key)], by_rote=True)
        return True

    def _answer_sincerely(self, payload: Payload, speaker: Any) -> None:
        """Tell a player who asks whether this NPC is a machine the truth, and nobody else.

        The character answers too, as to any other line. Nothing of this is recorded.
        """
        if getattr(speaker, "account", None) is None:
            return
        line = heard_text(payload.line)
        language = language_of_sincere_question(line)
        if not language or not (payload.kind == "whisper" or self._is_asked(line, speaker)):
            return
        if answer := self.disclosure.answer:
            tell_about(self.npc, speaker, answer, language=language)

    def _is_asked(self, line: str, speaker: Any) -> bool:
        """True if a line names this NPC, or names no NPC and this is the first one in the room."""
        company = self._current.runtime.companies.around(self.npc)
        npcs = [one.ref for one in company.people if one.is_npc]
        named = company.named_in(line).intersection(npcs)
        return self.ref in named or (not named and npcs[:1] == [self.ref])

    def _nod_to_opted_out(self, text: Any, speaker: Any) -> None:
        """Show a player who opted out and speaks to this NPC that it does not listen."""
        if not has_opted_out(speaker):
            return
        payload, names = payload_of(text), names_for(self.npc, str(speaker.id))
        if payload.kind == "whisper" or mentions(heard_text(payload.line), names):
            self._current.runtime.signs.show_to("opted_out", self.npc, speaker)

    def prompted(self, stored: StoredTurn) -> None:
        """Tell watchers about a prompt that is about to be sent."""
        if stored.npc_ref == self.ref:  # not for rehearsals
            self._current.runtime.watch.prompted(stored)

    # Explaining.

    def preview(self, question: str | None = None, speaker: Any = None) -> Prompt:
        """Return the prompt that would be sent if `speaker` now said `question` in the room.

        Nothing is committed or changed.

        Raises:
            BudgetError: The prompt does not fit, so the turn would fail.
        """
        return compose(self.foreseen(question, speaker))

    def foreseen(self, question: str | None = None, speaker: Any = None) -> Inputs:
        """Return the inputs of `preview`. `views.looking.foreseen_report` makes their report."""
        room_ref = room_ref_of(self.npc)
        talk = ConversationKey(kind="room", place_ref=room_ref or "nowhere")
        event = None if question is None else self._imagined(question, speaker, room_ref)
        return gather.foreseen_inputs(self.npc, self.view(), talk, event=event)

    def _imagined(self, question: str, speaker: Any, room_ref: str) -> Event:
        return Event(
            kind="say",
            speaker_ref=str(speaker.id) if speaker else "",
            known_ref=known_ref(self.npc, speaker) if speaker else "",
            speaker_name=label_of(self.npc, speaker) if speaker else SOMEONE,
            speaker_rank=rank_of(speaker) if speaker else "Player",
            text=heard_text(question),
            room_ref=room_ref,
            client=client_of(speaker),
        )

    def last_report(self) -> Report | None:
        """Return the report of the last prompt that was sent, None if there was none.

        Raises:
            ReplayError: Words of the prompt were erased.
        """
        stored = turns.last_turn(self.ref)
        if stored is None:
            return None
        shown = record_rows.records(stored.manifest.record_ids)
        return turn_report(stored.manifest, shown)

    def why(self, item: str) -> list[str]:
        """Explain why one component, entry, note or message was in the last prompt or left out.

        Before the first turn, explain the prompt that would be sent now.
        """
        report = self.last_report() or make_report(self.preview())
        return explain_lines(report, item, names=names_of(self.view().books))

    def status(self) -> NPCStatus:
        """Return the state of the NPC."""
        now = time.time()
        return self.status_now(stored_status(self.ref, now=now), now=now)

    def status_now(self, stored: NPCStatus, *, now: float) -> NPCStatus:
        """Return the stored state of the NPC with what only the running game knows of it."""
        live, view = self._current.runtime, self.view()
        return replace(
            stored,
            now=npcs_now(live, [stored], now=now)[0],
            preset=view.sources.preset.name if view.sources.preset else None,
            left=left_of_limits(live, self.ref, self.settings),
            overflows=self.attention.overflows,
            unrecorded=self.attention.unrecorded,
            problems=(*self.settings_problems, *view.problems, *problems_of(self.npc)),
        )
