"""Tools for things and places: look, move, take, give, drop, use and write.

Evennia's own locks and hooks decide whether an NPC may do something. Evennia has no hook for using
a thing, so a usable thing needs a method `at_use(user, target)`. For all other things, the game may
name a function `(user, thing, target)` in EVENNIA_AI_USE_ITEM. Both return what the user perceives,
None for nothing, or False if using the thing did not work.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any, Final

from django.utils.module_loading import import_string
from evennia.server.signals import SIGNAL_EXIT_TRAVERSED
from evennia.utils import logger
from pydantic import AfterValidator, Field, StringConstraints

from evennia_ai.engine.text.phrases import Phrase
from evennia_ai.npc.filtering import function_problem
from evennia_ai.npc.senses.labels import with_labels
from evennia_ai.npc.senses.presence import NPC
from evennia_ai.npc.senses.text import plain_name
from evennia_ai.npc.speech.output import show_pose, tell_given
from evennia_ai.npc.tools.targets import (
    carried_things,
    find_thing,
    person,
    shown_name,
    things,
    visible_exits,
    visible_people,
)
from evennia_ai.npc.tools.tool import Name, Refused, Tool, ToolArguments, Use
from evennia_ai.npc.writings import plain_text, why_no_more, writing_by
from evennia_ai.services.settings.kinds import MOST_WRITTEN


class Take(Tool):
    """The tool that picks up a thing in the room."""

    name = "take"
    description = "Pick up something that lies here."
    dangerous = True

    class Arguments(ToolArguments):
        item: Name = Field(description="what to pick up")

    def run(self, use: Use, arguments: Arguments) -> str:
        """Take the thing, if its lock and hooks allow it."""
        npc = use.npc
        item = find_thing(npc, arguments.item, things(npc), none="There is no {} lying here.")
        name = one_of(npc, item)
        if not item.access(npc, "get"):
            raise Refused(item.db.get_err_msg or f"You cannot take {name}.")
        if not item.at_pre_get(npc):
            raise Refused(f"You cannot take {name}.")
        item.move_to(npc, quiet=True, move_type="get")
        if item.location != npc:
            raise Refused(f"You cannot take {name}.")
        item.at_get(npc)
        show_pose(npc, Phrase("picks up {thing}.", thing=name), hops=use.hops)
        return f"You have {name} now."


class Drop(Tool):
    """The tool that puts down a thing that the NPC carries."""

    name = "drop"
    description = "Put down something you carry."
    dangerous = True

    class Arguments(ToolArguments):
        item: Name = Field(description="what to put down")

    def run(self, use: Use, arguments: Arguments) -> str:
        """Drop the thing, if its hooks allow it."""
        npc = use.npc
        item = find_thing(npc, arguments.item, carried_things(npc), none="You do not carry {}.")
        name = one_of(npc, item)
        put_down(npc, item)
        show_pose(npc, Phrase("drops {thing}.", thing=name), hops=use.hops)
        return f"You dropped {name}."


class Give(Tool):
    """The tool that gives somebody a thing that the NPC carries."""

    name = "give"
    description = "Give something you carry to somebody here. What you give is gone."
    dangerous = True

    class Arguments(ToolArguments):
        item: Name = Field(description="what to give")
        to: Name = Field(description="who gets it")

    def run(self, use: Use, arguments: Arguments) -> str:
        """Give the thing, if the hooks of the thing and the receiver allow it."""
        npc = use.npc
        item = find_thing(npc, arguments.item, carried_things(npc), none="You do not carry {}.")
        to = person(npc, arguments.to, answered=use.event.speaker_ref)
        name, whom = one_of(npc, item), shown_name(npc, to)
        hand_over(npc, item, to)
        return f"You gave {name} to {whom}."


def put_down(npc: NPC, item: Any) -> None:
    """Drop a thing that the NPC carries.

    Raises:
        Refused: A hook forbids it.
    """
    place, refused = npc.location, f"You cannot drop {one_of(npc, item)} here."
    if place is None or not item.at_pre_drop(npc):
        raise Refused(refused)
    item.move_to(place, quiet=True, move_type="drop")
    if item.location == npc:
        raise Refused(refused)
    item.at_drop(npc)


def hand_over(npc: NPC, item: Any, to: Any) -> None:
    """Give somebody a thing that the NPC carries.

    Raises:
        Refused: A hook of the thing or the receiver forbids it.
    """
    refused = f"You cannot give {one_of(npc, item)} to {shown_name(npc, to)}."
    if not item.at_pre_give(npc, to):
        raise Refused(refused)
    item.move_to(to, quiet=True, move_type="give")
    if item.location == npc:
        raise Refused(refused)
    item.at_give(npc, to)
    tell_given(npc, to, item)


def one_of(npc: NPC, item: Any) -> str:
    """Return the NPC's name for a thing, with an article: "a lantern"."""
    return plain_name(str(item.get_numbered_name(1, npc, return_string=True)))


class Look(Tool):
    """The tool that looks at the room, a thing or a person."""

    name = "look"
    description = "Look around where you are, or look at somebody or something here."

    class Arguments(ToolArguments):
        at: Name | None = Field(
            default=None, description="who or what to look at; leave it out to look around"
        )

    def run(self, use: Use, arguments: Arguments) -> str:
        """Return what the hook `at_look` of the game shows the NPC."""
        shown = str(use.npc.at_look(_target(use.npc, arguments.at)))
        return with_labels(use.npc, shown, visible_people(use.npc))


def _target(npc: NPC, name: str | None) -> Any:
    """Return the room, or what the NPC sees under this name."""
    if npc.location is None:
        raise Refused("You are nowhere; there is nothing to see.")
    if name is None:
        return npc.location
    among = [*visible_people(npc), *things(npc), *visible_exits(npc), *carried_things(npc)]
    return find_thing(npc, name, among, none="You see no {} here.")


class Move(Tool):
    """The tool with which the NPC goes through an exit.

    It ends the turn, because the turn belongs to the conversation of the room that the NPC left.
    """

    name = "move"
    description = "Leave through an exit. Say what you want to say before you go."
    dangerous = True
    ends_turn = True

    class Arguments(ToolArguments):
        exit: Name = Field(description="the exit to take")

    def run(self, use: Use, arguments: Arguments) -> str:
        """Go through the exit, if it lets the NPC pass."""
        npc, left = use.npc, use.npc.location
        way = find_thing(npc, arguments.exit, visible_exits(npc), none="There is no exit {} here.")
        closed = way.db.err_traverse or f"You cannot go {shown_name(npc, way)}."
        if not way.access(npc, "traverse"):
            if not way.db.err_traverse:
                way.at_failed_traverse(npc)
            raise Refused(closed)
        under_way = npc.ndb.currently_moving
        way.at_traverse(npc, way.destination)
        if npc.location == left and way.destination != left:
            # Slow exits set this, for example those of evennia.contrib.grid.slow_exit.
            if npc.ndb.currently_moving is not under_way:
                return f"You set out to {shown_name(npc, way)} and will be there in a while."
            raise Refused(closed)
        SIGNAL_EXIT_TRAVERSED.send(sender=way, traverser=npc)
        return f"You went {shown_name(npc, way)} and are now in {shown_name(npc, npc.location)}."


NOTHING: Final = "Not done: nothing of it can be read."

FORMS: Final = ("letter", "book")


def _check_form(form: str) -> str:
    if form not in FORMS:
        raise ValueError(f"it must be {' or '.join(FORMS)}")
    return form


Form = Annotated[str, AfterValidator(_check_form), Field(json_schema_extra={"enum": list(FORMS)})]
Text = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MOST_WRITTEN)
]


class Write(Tool):
    """The tool that writes a letter or a book, and gives it to somebody or puts it down."""

    name = "write"
    description = (
        "Write a letter or a book that people can keep, for what is too long to be said. It is"
        " opened with the command: read <its name>"
    )
    dangerous = True

    class Arguments(ToolArguments):
        form: Form = Field(description="what it is")
        text: Text = Field(description="all that stands in it, in plain text")
        title: Name | None = Field(default=None, description="a few words on its outside")
        to: Name | None = Field(
            default=None, description="who here gets it; leave it out to put it down"
        )

    def refusal(self, use: Use, arguments: Arguments) -> str:
        """Return why the game's limits forbid this writing, "" if they do not."""
        limits = use.conf.writings
        length = len(plain_text(arguments.text))
        if length > limits.characters:
            return (
                f"Not done: it has {length} characters, and a {arguments.form} holds"
                f" {limits.characters}; write less."
            )
        if not length:
            return NOTHING
        return why_no_more(use.npc, limits)

    def run(self, use: Use, arguments: Arguments) -> str:
        """Write it and hand it out, if the hooks of thing, receiver and room allow that."""
        npc = use.npc
        to = arguments.to and person(npc, arguments.to, answered=use.event.speaker_ref)
        if npc.location is None:
            raise Refused("There is nobody here to read it.")
        made = writing_by(
            npc,
            form=arguments.form,
            title=arguments.title or "",
            text=plain_text(arguments.text),
        )
        name = one_of(npc, made)
        try:
            where = _hand_out(npc, made, to)
        except Exception:  # hooks of a game may raise anything
            made.delete()
            raise
        show_pose(npc, Phrase("writes {thing}.", thing=name), hops=use.hops)
        return f"You wrote {name}{where}. It is opened with: read {made.key}"


def _hand_out(npc: NPC, made: Any, to: Any | None) -> str:
    """Give the writing to somebody or put it down. Return where it is, in words.

    Raises:
        Refused: A hook forbids it.
    """
    if to is None:
        put_down(npc, made)
        return " and put it down here"
    hand_over(npc, made, to)
    return f" and gave it to {shown_name(npc, to)}"


HOOK: Final = "at_use"


class UseItem(Tool):
    """The tool that uses a thing, by itself or on a target."""

    name = "use"
    description = "Use something that you carry or that lies here, on somebody or something or not."
    dangerous = True

    class Arguments(ToolArguments):
        item: Name = Field(description="what to use")
        on: Name | None = Field(
            default=None, description="whom or what to use it on; leave it out for nothing"
        )

    def run(self, use: Use, arguments: Arguments) -> str:
        """Use the thing, if its lock allows that."""
        npc = use.npc
        own = carried_things(npc)
        item = find_thing(
            npc, arguments.item, [*own, *things(npc)], none="There is no {} to use here."
        )
        name = one_of(npc, item)
        if not _may_use(npc, item, is_carried=item in own):
            raise Refused(f"You may not use {name}.")
        target = None if arguments.on is None else _used_on(npc, arguments.on)
        use_it = _way_to_use(item, use.conf.use_item)
        if use_it is None:
            raise Refused(f"Nothing can be done with {name}.")
        told = use_it(npc, target)
        if told is False:
            raise Refused(f"Using {name} did not work.")
        return f"You used {name}." if told in (None, True) else str(told)


def _way_to_use(item: Any, path: str) -> Callable[[Any, Any], Any] | None:
    """Return the function that uses a thing: its own hook, else the game's function at `path`."""
    hook = getattr(item, HOOK, None)
    if callable(hook):
        own: Callable[[Any, Any], Any] = hook
        return own
    function = _games_function(path)
    return None if function is None else lambda user, target: function(user, item, target)


@lru_cache(maxsize=4)
def _games_function(path: str) -> Callable[[Any, Any, Any], Any] | None:
    """Return the game's function at `path`. If it is unusable, log that once and return None."""
    problem = function_problem(path)
    if problem:
        logger.log_err(f"evennia_ai: EVENNIA_AI_USE_ITEM: {problem}")
    if problem or not path:
        return None
    found: Callable[[Any, Any, Any], Any] = import_string(path)
    return found


def _may_use(npc: NPC, item: Any, *, is_carried: bool) -> bool:
    """True if the NPC may use the thing by its lock `use`.

    Without such a lock, it may use a thing that it carries or could take.
    """
    default = is_carried or bool(item.access(npc, "get"))
    return bool(item.access(npc, "use", default=default))


def _used_on(npc: NPC, name: str) -> Any:
    among = [*visible_people(npc), *things(npc), *carried_things(npc), *visible_exits(npc)]
    return find_thing(npc, name, among, none="There is no {} here.")
