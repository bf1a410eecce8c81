"""Perception: turns a message that reached an NPC into the event that it heard, if any.

Every message arrives through the NPC's `at_msg_receive`, so an NPC hears only what was sent to it.
Speakers with `AISpeakerMixin`, and our own output, provide their raw words. The words of any other
speaker are read back from the line that Evennia rendered.

A game may garble words of a language for each listener. An NPC that does not understand the
language gets the garbled words, never the original ones.

Nobody hears a player who opted out (`ai off`): `event_from_message` drops the words here, before
anything can keep them. `presence.can_see` hides what the player does in the same way.

The client of a player is one of a few fixed words. They come from Evennia's `protocol_key`, which
is the same in Evennia 5.0 and 6.1. What a client program says about itself is never used. Telnet
over TLS counts as telnet.
"""

import re
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from django.utils.translation import gettext

from evennia_ai.engine.prompt.blocks import SCREENREADER
from evennia_ai.npc.senses.choices import has_opted_out
from evennia_ai.npc.senses.events import Event, Kind
from evennia_ai.npc.senses.labels import store_label
from evennia_ai.npc.senses.presence import (
    NPC,
    is_alone_with,
    is_unplayed,
    known_ref,
    rank_of,
    room_ref_of,
)
from evennia_ai.npc.senses.text import one_line, strip_markup
from evennia_ai.npc.senses.utterance import (
    Utterance,
    hops_of,
    line_of,
    spoken_words,
    utterance_of,
    uttering,
)
from evennia_ai.services.settings.conf import conf

MAX_WORD: Final = 40

# The listener, the speaker and the languages of the emote that is being delivered.
_rendered: Final[ContextVar[tuple[Any, Any, tuple[str, ...]] | None]] = ContextVar(
    "evennia_ai_languages", default=None
)


def game_word(told: Any) -> str:
    """Return the name of a language or volume as plain words, "" for none."""
    if not told:
        return ""
    return one_line(strip_markup(str(told)))[:MAX_WORD]


def garble(words: str, rendered: str, *, language: str) -> str:
    """Return the rendered words. If they still show the original words, return "(words in ...)"."""
    is_bare = (
        one_line(strip_markup(words)).casefold() in one_line(strip_markup(rendered)).casefold()
    )
    return f"(words in {language})" if is_bare else rendered


def rendered_for(npc: NPC, speaker: Any, language: str, *, words: str, rendered: str) -> str:
    """Return the quoted words in an emote as `npc` should hear them, with their quotes.

    Call this before the message with the emote is sent.

    Args:
        words: The original words.
        rendered: What the game would show to this listener.
    """
    language = game_word(language)
    _note_language(npc, speaker, language)
    if npc.understands(language):
        return rendered
    heard = garble(words.strip('"'), rendered, language=language)
    return rendered if heard == rendered else f'"{heard}"'


def languages_heard(npc: NPC, speaker: Any) -> str:
    """Return the languages in the emote that `npc` is getting from `speaker`, and forget them."""
    noted = _rendered.get()
    _rendered.set(None)
    if noted is None or noted[0] is not npc or noted[1] is not speaker:
        return ""
    return ", ".join(noted[2])


def _note_language(npc: NPC, speaker: Any, language: str) -> None:
    noted = _rendered.get()
    known = noted[2] if noted and noted[0] is npc and noted[1] is speaker else ()
    if language and language not in known:
        known = (*known, language)
    _rendered.set((npc, speaker, known))


OTHER: Final = "other"
"""The client word for a protocol that is not one of Evennia's own."""

_CLIENTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "telnet": "telnet",
        "telnet/ssl": "telnet",
        "ssh": "ssh",
        "websocket": "websocket",
        "ajax/comet": "ajax/comet",
    }
)


def client_of(character: Any) -> str:
    """Return the client of the player of `character`, such as "telnet". "" if nobody plays it.

    Of several sessions, the one with the last command counts. Screen readers are marked.
    """
    handler = getattr(character, "sessions", None)
    sessions = handler.all() if handler is not None else ()
    if not sessions:
        return ""
    newest = max(sessions, key=lambda one: float(getattr(one, "cmd_last", 0.0) or 0.0))
    client = _CLIENTS.get(str(getattr(newest, "protocol_key", "")), OTHER)
    flags = getattr(newest, "protocol_flags", None) or {}
    return f"{client}{SCREENREADER}" if flags.get("SCREENREADER") else client


MAX_HEARD: Final = 2000
"""The most characters of one line that an NPC hears."""

# The lines of Evennia's `at_say` for listeners, as keys for its translations.
_FRAMES: Final = {
    "say": '{object} says, "{speech}"',
    "whisper": '{object} whispers: "|n{speech}|n"',
}
_SPEECH: Final = "\x00"
_QUOTED: Final = re.compile(r"[\"“”«»„]\s*(.*)[\"“”«»]", re.DOTALL)
_SAYING: Final = re.compile(r"(?:\s*\([^()]*\))?\s*(?:[:,>]|\w+\s*[,:])\s*")
"""What may follow a name and precede the words: `says,`, `(shouting):` or only a colon."""
_HEARD: Final = frozenset({"say", "whisper", "pose"})


class AISpeakerMixin:
    """A mixin for player characters, with which NPCs hear exactly what a player typed.

    Put it before the character class. Without it, NPCs read the words back from the line that the
    game shows. A game with languages or volumes passes them to `at_say` as `language=` and
    `volume=`.
    """

    def at_say(self, message: str, *args: Any, **kwargs: Any) -> Any:
        """Say `message`, and let NPCs look up its raw text meanwhile.

        Called by Evennia's commands.
        """
        kind: Kind = "whisper" if kwargs.get("whisper") else "say"
        language, volume = game_word(kwargs.get("language")), game_word(kwargs.get("volume"))
        said = Utterance(speaker=self, text=message, kind=kind, language=language, volume=volume)
        with uttering(said):
            return super().at_say(message, *args, **kwargs)  # type: ignore[misc]


class Payload(NamedTuple):
    """The parts of a message to an NPC: the rendered line and its options."""

    line: str
    kind: str = ""
    language: str = ""
    volume: str = ""


def event_from_message(npc: NPC, text: Any, from_obj: Any) -> Event | None:
    """Return the event in a message that `npc` received, None if nothing in it can be heard.

    `text` and `from_obj` are the arguments of `at_msg_receive`.
    """
    speaker = sender_of(from_obj)
    if speaker is None or speaker == npc:
        return None
    payload = payload_of(text)
    emoted_in = languages_heard(npc, speaker)
    if has_opted_out(speaker):
        return None
    utterance = utterance_of(speaker)
    if utterance is not None:
        heard = _hear_utterance(npc, utterance, payload)
    else:
        heard = _read_back(npc, speaker, payload)
    if heard is None or not heard.text:
        return None
    text = heard.text
    if text.startswith("/") and heard.kind != "pose":
        text = spoken_words(text)
    if text.casefold().startswith(tuple(map(str.casefold, conf().ooc_marks))):
        return None  # out of character
    return Event(
        kind=heard.kind,
        speaker_ref=str(speaker.id),
        client=client_of(speaker),
        speaker_name=store_label(npc, speaker),
        speaker_rank=rank_of(speaker),
        known_ref=known_ref(npc, speaker),
        text=text,
        room_ref=room_ref_of(npc),
        to_ref=heard.to_ref,
        private=heard.kind == "whisper",
        alone=is_alone_with(npc, speaker),
        hops=heard.hops,
        unplayed=is_unplayed(speaker),
        language=heard.language or payload.language or emoted_in,
        volume=heard.volume or payload.volume,
        by_rote=heard.by_rote,
        line=line_of(heard.hops) if heard.hops else None,
    )


def sender_of(from_obj: Any) -> Any:
    """Return the object that sent a message. None for sessions, accounts or several objects."""
    if isinstance(from_obj, list | tuple | set):
        from_obj = next(iter(from_obj)) if len(from_obj) == 1 else None
    return from_obj if hasattr(from_obj, "location") and getattr(from_obj, "id", None) else None


def payload_of(text: Any) -> Payload:
    """Parse the `text` of Evennia's `msg(text=(line, {"type": ..., "language": ...}))`."""
    if not isinstance(text, list | tuple):
        return Payload(str(text or ""))
    line = text[0] if text else ""
    options = text[1] if len(text) > 1 and isinstance(text[1], dict) else {}
    return Payload(
        line=str(line or ""),
        kind=str(options.get("type") or ""),
        language=game_word(options.get("language")),
        volume=game_word(options.get("volume")),
    )


@lru_cache(maxsize=16)
def heard_text(text: str) -> str:
    """Return `text` as a listener hears it: one line, without colour codes or links.

    The cache can be small, because all listeners in a room get the same line one after the other.
    """
    return one_line(strip_markup(text))[:MAX_HEARD]


def _hear_utterance(npc: NPC, utterance: Utterance, payload: Payload) -> Utterance | None:
    """Return the speaker's utterance as this NPC hears it. None if it has heard it already."""
    if str(npc.id) in utterance.heard_by:
        return None
    text = heard_text(utterance.text)
    if payload.kind not in _HEARD and text not in heard_text(payload.line):
        return None
    utterance.heard_by.add(str(npc.id))
    language = utterance.language or payload.language
    if language and not npc.understands(language):
        text = garble(text, _words(npc, utterance.speaker, payload), language=language)
    return replace(utterance, text=text, language=language)


def _read_back(npc: NPC, speaker: Any, payload: Payload) -> Utterance | None:
    """Return the utterance in a rendered line, for a speaker whose raw words are unknown."""
    if payload.kind not in _HEARD:
        return None
    text = _words(npc, speaker, payload)
    return Utterance(speaker=speaker, text=text, kind=payload.kind, hops=hops_of(speaker))


def _words(npc: NPC, speaker: Any, payload: Payload) -> str:
    """Return the words or the pose in a line that was rendered for this listener."""
    name = str(speaker.get_display_name(npc))
    if payload.kind == "pose":
        return _after_name(heard_text(payload.line), (heard_text(name), str(speaker.key)))
    return _speech(payload.line, payload.kind, name)


def _speech(rendered: str, kind: str, name: str) -> str:
    """Return the spoken words in a rendered line.

    They are what fits Evennia's own frame, else what is in quotes, else the line without the name.
    """
    frame = gettext(_FRAMES.get(kind, _FRAMES["say"])).format_map(
        {"object": name, "speech": _SPEECH}
    )
    before, _, after = frame.partition(_SPEECH)
    framed = rendered.startswith(before) and rendered.endswith(after)
    if framed and len(rendered) >= len(before) + len(after):
        return heard_text(rendered[len(before) : len(rendered) - len(after)])
    whole = heard_text(rendered)
    line = _after_name(whole, (heard_text(name),))
    quoted = _QUOTED.search(line)
    if quoted:
        return quoted[1].strip()
    saying = None if line == whole.strip() else _SAYING.match(line)
    return line[saying.end() :] if saying else line


def _after_name(line: str, names: tuple[str, ...]) -> str:
    """Return the line without the name at its start, in any case."""
    for name in names:
        if name and line.casefold().startswith(name.casefold()):
            return line[len(name) :].strip()
    return line.strip()
