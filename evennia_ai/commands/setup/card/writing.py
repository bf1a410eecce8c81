"""The switches of `card` that write cards in the game and make NPCs that play them.

What a builder writes needs no approval and is used from the next turn on. Each edit is a revision
of the whole card, in the same kind of file. Only the edited field differs.
"""

import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from twisted.internet.defer import inlineCallbacks

from evennia_ai.commands.background_work import CardWork, Steps, waits
from evennia_ai.commands.base import BUILDER_LOCK, CommandError
from evennia_ai.commands.naming import name_and_rest, npc_named
from evennia_ai.commands.screens import diffed
from evennia_ai.commands.setup.card.imports import CardImports, npcs_in_words
from evennia_ai.commands.setup.editor import EDITOR_KINDS, Edited, EditorKind, open_editor
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import ComponentValueError
from evennia_ai.engine.text.columns import WIDTH, clip_text, first_line, pad_text
from evennia_ai.engine.text.differences import diff_texts
from evennia_ai.formats.cards.card import Card
from evennia_ai.formats.cards.components import describe_changing_texts
from evennia_ai.formats.cards.writing import (
    CardField,
    field_named,
    fields_of,
    new_card,
    text_of,
    with_text,
)
from evennia_ai.npc.mind.spawning import (
    delete_npc,
    namesakes,
    npc_name,
    spawn_npc,
    why_not_deleted,
)
from evennia_ai.npc.views.parse_cache import parsed_card
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.authored import cards as store
from evennia_ai.store.authored.card_files import new_card_file
from evennia_ai.store.authored.cards import StoredCard, players_of

_CREATE: Final = "card/create <name> [= <description>]"
_EDIT: Final = "card/edit <name>[/<field> [= <text>]]"
_SPAWN: Final = "card/spawn <card> [= <name>]"
_DESPAWN: Final = "card/despawn <npc>"
_KIND: Final = "card"
_WORD_COLUMNS: Final = 16
_MOST_TAKEN: Final = 8
_MOST_NAME_WORDS: Final = 3
"""A longer name must be followed by "=", because it may be a description."""


class CardWriting(CardImports):
    """The switches that create a card, change its fields, and make or delete its NPCs."""

    def create(self) -> None:
        """Create a card with a name and, if given, a description."""
        typed = self.wanted(_CREATE)
        words = typed.split()
        if self.rhs is None and len(words) > _MOST_NAME_WORDS:
            raise CommandError(
                f"A name of {len(words)} words looks like a description without its '='. If it is"
                f" the name, type = after it. Nothing was created.",
                instead=f"card/create {words[0]} = {' '.join(words[1:])}",
            )
        try:
            name = store.CARDS.known_name(store.CARDS.typeable_name(typed))
        except ComponentValueError as error:
            raise CommandError(f"{error}. Nothing was created.") from error
        made = new_card(name, description=self.rhs or "", creator=self.actor.name)
        file = new_card_file(made, modified_at=int(time.time()), limits=conf().card_limits)
        card = store.create_card(name, file, by=self.actor)
        self.read_ahead(card)
        self.say(
            f"Created card {name}, revision {card.revision}. card/edit {name} lists its fields;"
            f" card/spawn {name} creates an NPC here that plays it.{_remark(made)}"
        )

    @waits
    def edit(self) -> Steps:
        """Write one field of a card.

        Without a text open the editor on the field, without a field list all fields.
        """
        card, field = self.card_and_field(self.wanted(_EDIT))
        if field is None:
            if self.rhs is not None:
                raise CommandError(
                    f"Name a field of the card: {_EDIT}. Nothing was changed.",
                    instead=f"card/edit {self.lhs}/description = {self.rhs}",
                )
            self.show(_fields_shown(card))
            return
        if self.rhs is None:
            edited = _edited(card, field)
            open_editor(self.caller, _KIND, edited, label=f"{field} of card {card.name}")
            return
        typed = self.rhs
        write = partial(with_text, field=field, text=typed)
        after, before = yield self.edited(card, write, by=self.actor)
        if after is card:
            self.say(f"{field} of card {card.name} has this text already; nothing was changed.")
            return
        self.show(
            diffed([_told(after, field, before=before), *diff_texts(text_of(before, field), typed)])
        )

    def spawn(self) -> Generator[str, Any, None]:
        """Create an NPC in the builder's room that plays a card. Ask first if its name is taken."""
        card = self.typed_thing(_SPAWN)
        room = self.caller.location
        if room is None:
            raise CommandError("You are in no room, and an NPC needs one. No NPC was created.")
        name = npc_name(card, self.rhs or "")
        if (taken := namesakes(name)) and not (yield from self._agreed_twin(name, taken)):
            self.say("No NPC was created.")
            return
        npc = spawn_npc(card, name=name, room=room, maker=self.caller, by=self.actor)
        self.say(
            f"{npc.key} (#{npc.id}) is here now and plays the card {card.name}. Say something:"
            f" say {npc.key}, hello. What its prompt is made of: component/preview {npc.key}"
        )

    def _agreed_twin(self, name: str, taken: Sequence[str]) -> Generator[str, Any, bool]:
        which = ", ".join(f"#{ref}" for ref in taken[:_MOST_TAKEN])
        more = f" and {len(taken) - _MOST_TAKEN} more" if len(taken) > _MOST_TAKEN else ""
        return (
            yield from self.agreed(
                f"An NPC called {name} exists already ({which}{more}). You could tell the two"
                f" apart only by number; {_SPAWN} gives another name. Create it anyway?"
            )
        )

    def despawn(self) -> Generator[str, Any, None]:
        """Delete an NPC that plays a card, after a question. The card stays."""
        npc = npc_named(self.caller, self.wanted(_DESPAWN))
        if self.rhs is not None:
            raise CommandError(f"Usage: {_DESPAWN}. No NPC was deleted.")
        label, played = f"{npc.key} (#{npc.id})", store.assignment_of(npc.ai.ref)
        if why := why_not_deleted(npc, [self.caller]):
            raise CommandError(why)
        assert played is not None
        question = f"Delete {label}? The card {played.card} stays, and so does what was recorded."
        if not (yield from self.agreed(question)):
            self.say(f"{label} stays.")
            return
        delete_npc(npc, lookers=[self.caller], by=self.actor)
        self.say(
            f"{label} is deleted. The card {played.card} stays; card/spawn creates another NPC."
        )

    def card_and_field(self, text: str) -> tuple[StoredCard, CardField | None]:
        """Return the current card and the field that `<name>[/<field>]` names.

        The name of a card may have a slash in it.
        """
        names = set(store.CARDS.list_keys())
        name, field = name_and_rest(text, lambda one: store.CARDS.known_name(one) in names)
        if not name:
            raise CommandError(f"Usage: {_EDIT}. Nothing was changed.")
        return self.thing_named(name), field_named(field) if field else None


def _told(card: StoredCard, field: CardField, *, before: Card) -> str:
    players = npcs_in_words(players_of(card.name))
    wrote = f"Wrote {field} of card {card.name}, revision {card.revision}; played by {players}."
    return wrote + _remark(parsed_card(card), before=before)


def _remark(card: Card, *, before: Card | None = None) -> str:
    """Return a warning on each text that may not be placed before the history, or ""."""
    known = set(describe_changing_texts(before)) if before else set()
    return "".join(f" {one}." for one in describe_changing_texts(card) if one not in known)


def _fields_shown(card: StoredCard) -> Iterator[str]:
    """Yield every field with the beginning of its text."""
    read = parsed_card(card)
    yield f"Card {card.name}, revision {card.revision}; card/edit {card.name}/<field> = <text>"
    for field in fields_of(read):
        text = text_of(read, field)
        size = f"{len(text):6}" if text else f"{'-':>6}"
        yield clip_text(f"{size}  {pad_text(str(field), _WORD_COLUMNS)}  {first_line(text)}", WIDTH)


def _edited(card: StoredCard, field: CardField) -> Edited:
    seen = {"sha256": card.sha256, "revision": card.revision}
    return {"card": card.name, "field": str(field), **seen}


def _load(_caller: Any, edited: Edited) -> str:
    return text_of(parsed_card(store.get_card(edited["card"])), field_named(edited["field"]))


@inlineCallbacks
def _save(
    caller: Any, edited: Edited, text: str, by: Actor
) -> Generator[Any, Any, tuple[Edited, str]]:
    card, field = store.get_card(edited["card"]), field_named(edited["field"])
    seen = replace(card, sha256=edited["sha256"], revision=edited["revision"])
    write = partial(with_text, field=field, text=text)
    after, before = yield CardWork.of(caller).edited(seen, write, by=by)
    return _edited(after, field), _told(after, field, before=before)


EDITOR_KINDS[_KIND] = EditorKind(_load, _save, BUILDER_LOCK.format(key="card"))
