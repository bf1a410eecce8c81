"""Languages: what an NPC makes of words in a language it may not understand.

A game renders such words for each listener, garbled or not. An NPC that does not understand them
gets what was rendered for it and never the words themselves.
"""

from contextvars import ContextVar
from typing import Any, Final

from evennia_ai.game.text import one_line, unmarked

MAX_WORD: Final = 40

# Who is about to be sent an emote, by whom, and the languages in it.
_rendered: Final[ContextVar[tuple[Any, Any, tuple[str, ...]] | None]] = ContextVar(
    "evennia_ai_languages", default=None
)


def game_word(told: Any) -> str:
    """A language or volume as a game tells it, as one plain word or few; "" for none."""
    return one_line(unmarked(str(told or "")))[:MAX_WORD]


def garbled(words: str, rendered: str, *, language: str) -> str:
    """`rendered`, or only that it is the language, where the words stand in it as they are."""
    is_bare = one_line(unmarked(words)).casefold() in one_line(unmarked(rendered)).casefold()
    return f"(words in {language})" if is_bare else rendered


def rendered_for(npc: Any, speaker: Any, language: str, *, words: str, rendered: str) -> str:
    """What a roleplaying game's emote is to show `npc` of quoted `words`, the quotes included.

    `rendered` is what the game would show. The message with it comes next.
    """
    language = game_word(language)
    _note(npc, speaker, language)
    if npc.understands(language):
        return rendered
    heard = garbled(words.strip('"'), rendered, language=language)
    return rendered if heard == rendered else f'"{heard}"'


def languages_heard(npc: Any, speaker: Any) -> str:
    """The languages of the emote that is being sent to `npc`, told once."""
    noted = _rendered.get()
    _rendered.set(None)
    if noted is None or noted[0] is not npc or noted[1] is not speaker:
        return ""
    return ", ".join(noted[2])


def _note(npc: Any, speaker: Any, language: str) -> None:
    noted = _rendered.get()
    known = noted[2] if noted and noted[0] is npc and noted[1] is speaker else ()
    if language and language not in known:
        known = (*known, language)
    _rendered.set((npc, speaker, known))
