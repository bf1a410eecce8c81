"""Build the demo village of `world/demo/` in the running game.

`build()` may run at every start. Each thing is made once and remembered by name, so what a builder
has edited, moved or removed stays so. If nobody has changed a lorebook or a page, it is updated
when the demo has a new edition. To get a removed thing back, remove its name from the server's
`demo_world_built` list and start the game again.
"""

from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from typing import Any, Final

from django.conf import settings
from django.db import transaction
from evennia.accounts.models import AccountDB
from evennia.objects.models import ObjectDB
from evennia.server.initial_setup import LIMBO_DESC
from evennia.server.models import ServerConfig
from evennia.utils.create import create_object, create_script
from evennia.utils.utils import class_from_module

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import EvenniaAIError, UnknownComponentError
from evennia_ai.engine.prompt.components import STATIC_IDS, PromptComponent, Scope, of_npc
from evennia_ai.npc.inputs.shipped_providers import GOALS
from evennia_ai.npc.npc_settings import change_settings, settings_of
from evennia_ai.npc.senses.presence import FACTION
from evennia_ai.npc.tools.registry import choose_tools
from evennia_ai.npc.writings import Writing
from evennia_ai.store.authored import cards, components, lorebooks, notes
from server.logins import Login, Logins
from world import evening
from world.demo_content import (
    DEMO,
    Book,
    DemoContent,
    Note,
    Person,
    Thing,
    Wiki,
    read_content,
)
from world.demo_content import Place as Room
from world.demo_content import Way as Exit
from world.demo_knowledge import (
    bind_wiki,
    edition_of,
    give_search,
    make_wiki,
    renew_wiki,
    wiki_folder,
)
from world.typeclasses import Basket, Place, Scenery, Way

DEMO_QUESTION: Final = ("oren", "why did the night ferry to Saltholm stop running?")
# Which login, the name of the character, and the permission.
ACCOUNTS: Final = (
    ("builder", "Tamsin", "Builder"),
    ("player", "Anna", "Player"),
)
ONCE_PUBLIC: Final = ("harbour-admin-1", "harbour-builder-1", "harbour-player-1")
"""Passwords that older demos gave to everybody. No account may keep one of them."""
OWN_ACCOUNT: Final = "account"
NPC_TYPECLASS: Final = "evennia_ai.typeclasses.AINPC"
BY: Final = trusted("the demo world")
BUILT: Final = "demo_world_built"
TAG: Final = "demo"
ZONE: Final = "ebbwick"
"""The zone tag of every room.

It is the scope of components and lorebooks that apply in the village only.
"""

# By default, only admins may edit what no builder has made. In the demo, builders may edit
# everything.
BUILDERS_MAY: Final = "edit:perm(Builder);delete:perm(Builder)"

# Things in a room are scenery: players can look at them but not take them.
STAYS: Final = "get:false()"
ANYBODY_TAKES: Final = "get:all()"

# The fields of static components that the demo sets. The other fields keep the engine's values.
_STATIC_FIELDS: Final = ("name", "description", "content", "priority", "required")

KINDS: Final = {"scenery": Scenery, "basket": Basket}
TICK_SECONDS: Final = 60

Make = Callable[[], str]


class DemoWorldError(EvenniaAIError):
    """A part of the demo world cannot be made in this game."""


def build() -> list[str]:
    """Make all parts that were not made before. Return and print a line for each."""
    lines = [line for name, make in _parts(read_content()) if (line := _once(name, make))]
    for line in lines:
        print(f"demo world: {line}")
    return lines


def _once(name: str, make: Make) -> str:
    """Make one part if it was not made before.

    Return what was made, or why it could not be made, or "".
    """
    built = ServerConfig.objects.conf(BUILT, default=[])
    if name in built:
        return ""
    try:
        with transaction.atomic():
            line = make()
    except EvenniaAIError as error:
        return f"{name} was left out: {error}"
    ServerConfig.objects.conf(BUILT, [*built, name])
    return line


def _parts(content: DemoContent) -> Iterator[tuple[str, Make]]:
    """Return all parts by name, in the order in which they need each other."""
    for room in content.rooms:
        make = _make_first_room if room.id == content.start else _make_room
        yield f"room:{room.id}", partial(make, room)
    for room in content.rooms:
        for way in room.exits:
            yield f"exit:{room.id}:{way.to}", partial(_make_exit, room, way)
    for thing in content.objects:
        yield f"object:{thing.id}", partial(_make_thing, thing)
        if thing.kind != "basket":
            yield f"stays:{thing.id}", partial(_keep_thing, thing)
    yield from _authored(content)
    for person in content.npcs:
        yield f"npc:{person.id}", partial(_make_npc, person)
        yield f"play:{person.id}", partial(_assign_card, person)
        yield f"goals:{person.id}", partial(_give_goals, person)
        if settings.DEMO_EVENING:
            yield f"tick:{person.id}", partial(_let_tick, person)
    yield "evening", partial(_begin_evening, content)
    for note in content.notes:
        yield f"note:{note.npc}", partial(_make_note, note)
    for wiki in content.wikis:
        yield from _of_wiki(wiki)
    yield from _accounts(settings.DEMO_PASSWORDS, start=content.start)


def _accounts(logins: Logins | None, *, start: str) -> Iterator[tuple[str, Make]]:
    """Return the parts that make accounts, and those that renew passwords."""
    if logins is None:
        yield "accounts", _refuse_accounts
        return
    for role, character, permission in ACCOUNTS:
        login: Login = getattr(logins, role)
        make = partial(_make_account, login, character, permission, start=start)
        yield f"account:{login[0]}", make
    yield f"passwords:{logins.edition}", partial(_renew_passwords, logins)


def _authored(content: DemoContent) -> Iterator[tuple[str, Make]]:
    for component in content.components:
        make = _fill_static if component.key in STATIC_IDS else _make_component
        yield f"component:{component.key}", partial(make, component)
    for book in content.lorebooks:
        text = (DEMO / book.file).read_text(encoding="utf-8")
        yield f"lorebook:{book.name}", partial(_make_book, book, text)
        edition = sha256(text.encode()).hexdigest()[:12]
        yield f"lorebook:{book.name}:{edition}", partial(_renew_book, book, text)
    for person in content.npcs:
        yield f"card:{person.card_name}", partial(_make_card, person)


def _of_wiki(wiki: Wiki) -> Iterator[tuple[str, Make]]:
    folder = wiki_folder(wiki)
    yield f"wiki:{wiki.key}", partial(make_wiki, folder, by=BY)
    yield f"wiki:{wiki.key}:{edition_of(folder)}", partial(renew_wiki, folder, by=BY)
    for npc in wiki.npcs:
        yield f"wiki:{wiki.key}:{npc}", partial(_bind_wiki, wiki.key, npc)
        yield f"search:{npc}", partial(_give_search, npc)


def _begin_evening(content: DemoContent) -> str:
    """Give rooms, exits and things their part in the evening, and make its clock."""
    for room in content.rooms:
        here = _tagged(f"room:{room.id}")
        _become(here, Place, at=dict(room.at), finding=room.finding)
        for way in room.exits:
            for made in (one for one in here.exits if one.key == way.key):
                _become(made, Way, bars=[(bar.lock, bar.text) for bar in way.bars])
                if way.bars:
                    made.locks.add("traverse:" + " and ".join(f"({bar.lock})" for bar in way.bars))
    for thing in content.objects:
        there = [one for one in _tagged(f"room:{thing.room}").contents if one.key == thing.key]
        for made in there:
            if thing.kind == "writing":
                _become(made, Writing, written_text=thing.written.strip(), form="book")
            else:
                _become(made, KINDS[thing.kind], finding=thing.finding)
    create_script(evening.Evening)
    evening.forget()
    evening.set_habits(content.evening[0])
    return f"the evening, in {len(content.evening)} parts"


def _become(made: Any, kind: type[Any], **attributes: Any) -> None:
    """Give an object this typeclass and these Attributes. Its description and locks stay."""
    made.swap_typeclass(kind, run_start_hooks=None, no_default=False)
    for name, value in attributes.items():
        made.attributes.add(name, value)


def _give_goals(person: Person) -> str:
    """Give an NPC its goals, its factions and its tools."""
    npc = _tagged(f"npc:{person.id}")
    for faction in person.factions:
        npc.tags.add(faction, category=FACTION)
    if person.tools:
        choose_tools(npc, [*settings_of(npc).tools, *person.tools], by=BY)
    if npc.attributes.has(GOALS):
        return ""
    npc.attributes.add(GOALS, list(person.goals))
    return f"goals of {npc.key}"


def _let_tick(person: Person) -> str:
    npc = _tagged(f"npc:{person.id}")
    if settings_of(npc).tick_seconds:
        return ""
    change_settings(npc, by=BY, tick_seconds=TICK_SECONDS)
    return f"{npc.key} does something every {TICK_SECONDS} seconds"


def _bind_wiki(key: str, npc: str) -> str:
    return bind_wiki(key, _tagged(f"npc:{npc}"), by=BY)


def _give_search(npc: str) -> str:
    return give_search(_tagged(f"npc:{npc}"), by=BY)


def _make_first_room(room: Room) -> str:
    """Make Evennia's first room the start of new characters, unless somebody has changed it."""
    limbo = ObjectDB.objects.get_id(settings.START_LOCATION)
    if not limbo or limbo.db.desc != LIMBO_DESC.strip():
        return _make_room(room)
    limbo.key = room.key
    limbo.aliases.add(list(room.aliases))
    limbo.db.desc = room.desc
    limbo.tags.batch_add(*_room_tags(room))
    limbo.locks.add(BUILDERS_MAY)
    for character in limbo.contents_get(content_type="character"):
        _send_away(character, limbo)
    return f"room {room.key}, where new characters start"


def _make_room(room: Room) -> str:
    create_object(
        settings.BASE_ROOM_TYPECLASS,
        key=room.key,
        aliases=list(room.aliases),
        tags=_room_tags(room),
        locks=BUILDERS_MAY,
        attributes=[("desc", room.desc)],
    )
    return f"room {room.key}"


def _room_tags(room: Room) -> list[tuple[str, str]]:
    return [(f"room:{room.id}", TAG), (ZONE, "zone")]


def _make_exit(room: Room, way: Exit) -> str:
    here, there = _tagged(f"room:{room.id}"), _tagged(f"room:{way.to}")
    create_object(
        settings.BASE_EXIT_TYPECLASS,
        key=way.key,
        aliases=list(way.aliases),
        location=here,
        destination=there,
        locks=BUILDERS_MAY,
    )
    return f"exit {way.key} from {here.key} to {there.key}"


def _make_thing(thing: Thing) -> str:
    _place(settings.BASE_OBJECT_TYPECLASS, thing)
    return f"object {thing.key}"


def _keep_thing(thing: Thing) -> str:
    """Set locks so that nobody takes a thing away, unless somebody has set other locks."""
    there = [one for one in _tagged(f"room:{thing.room}").contents if one.key == thing.key]
    loose = [one for one in there if one.locks.get("get") == ANYBODY_TAKES]
    for one in loose:
        one.locks.add(STAYS)
    return f"object {thing.key} stays where it is" if loose else ""


def _make_npc(person: Person) -> str:
    npc = _place(NPC_TYPECLASS, person)
    npc.fallback_line = person.fallback_line
    npc.tags.add(f"npc:{person.id}", category=TAG)
    return f"NPC {person.key} in {npc.location.key}"


def _place(typeclass: str, one: Person | Thing) -> Any:
    room = _tagged(f"room:{one.room}")
    return create_object(
        typeclass,
        key=one.key,
        aliases=list(one.aliases),
        location=room,
        home=room,
        locks=BUILDERS_MAY,
        attributes=[("desc", one.desc)],
    )


def _fill_static(component: PromptComponent) -> str:
    """Set the content of a static component, unless somebody has set one already."""
    if components.registry().get(component.key).content:
        return ""
    fields = {name: getattr(component, name) for name in _STATIC_FIELDS}
    components.update(component.key, by=BY, **fields)
    return f"content of component {component.key}"


def _make_component(component: PromptComponent) -> str:
    try:
        components.registry().get(component.key)
    except UnknownComponentError:
        components.create(component, by=BY)
        return f"component {component.key}"
    return ""


def _make_book(book: Book, text: str) -> str:
    if book.name in lorebooks.LOREBOOKS.list_keys():
        return ""
    lorebooks.save_book(book.name, text, by=BY, seen_revision=0)
    lorebooks.LOREBOOKS.assign(book.name, Scope(kind=book.scope, ref=book.ref), by=BY)
    return f"lorebook {book.name}"


def _renew_book(book: Book, text: str) -> str:
    """Replace the lorebook of an older demo by this one, if nobody has changed it."""
    changes = lorebooks.LOREBOOKS.revisions(book.name)
    is_ours = {one.changed_by for one in changes} == {BY.name}
    if book.name not in lorebooks.LOREBOOKS.list_keys() or not is_ours:
        return ""
    if lorebooks.get_book(book.name).source == text:
        return ""
    lorebooks.save_book(book.name, text, by=BY, seen_revision=changes[-1].number)
    return f"lorebook {book.name}, in a new edition"


def _make_card(person: Person) -> str:
    if person.card_name in cards.CARDS.list_keys():
        return ""
    text = (DEMO / person.card).read_text(encoding="utf-8")
    cards.save_card(person.card_name, text, by=BY)
    return f"card {person.card_name}"


def _assign_card(person: Person) -> str:
    ref = str(_tagged(f"npc:{person.id}").id)
    if cards.card_of(ref) is not None:
        return ""
    cards.CARDS.assign(person.card_name, of_npc(ref), by=BY)
    return f"card {person.card_name} for {person.key}"


def _make_note(note: Note) -> str:
    npc = _tagged(f"npc:{note.npc}")
    if notes.notes_for(str(npc.id)):
        return ""
    notes.set_note(
        str(npc.id),
        by=BY,
        content=note.content,
        depth=note.depth,
        role=note.role,
        every=note.every,
    )
    return f"author's note for {npc.key}"


def _refuse_accounts() -> str:
    raise DemoWorldError("the accounts have no passwords yet; start the game with `make play`")


def _make_account(
    login: tuple[str, str], character_name: str, permission: str, *, start: str
) -> str:
    name, password = login
    if AccountDB.objects.get_account_from_name(name):
        return ""
    kind = class_from_module(settings.BASE_ACCOUNT_TYPECLASS)
    account, errors = kind.create(username=name, password=password, permissions=permission)
    if errors:
        raise DemoWorldError(f"account '{name}': {' '.join(map(str, errors))}")
    character = account.characters.all()[0]
    character.key = character_name
    character.locks.add("teleport:perm(Builder)")  # In Evennia, these are the admins.
    character.home = room = _tagged(f"room:{start}")
    _send_away(character, room)
    return f"account {name} ({permission}), who plays {character_name}"


def _renew_passwords(logins: Logins) -> str:
    """Give the demo's own accounts the passwords of the current edition.

    An account is the demo's own if it has ever had a password of the demo. A tag says so, or a
    password that everybody knows. Somebody else's account with the same name is not changed.
    """
    renewed = []
    for name, password in (logins.superuser, logins.builder, logins.player):
        account = AccountDB.objects.get_account_from_name(name)
        if account is None:
            continue
        if not account.check_password(password):
            if not _is_the_demos(account):
                continue
            account.set_password(password)
            account.save()
            renewed.append(name)
        account.tags.add(OWN_ACCOUNT, category=TAG)
    return f"new passwords for {', '.join(renewed)}" if renewed else ""


def _is_the_demos(account: Any) -> bool:
    return bool(account.tags.has(OWN_ACCOUNT, category=TAG)) or any(
        account.check_password(one) for one in ONCE_PUBLIC
    )


def _send_away(character: Any, room: Any) -> None:
    """Remove `character` from its room until somebody plays it, as Evennia does at a logout."""
    if not character.sessions.count():
        character.db.prelogout_location = room
        character.location = None


def _tagged(name: str) -> Any:
    found = ObjectDB.objects.get_by_tag(name, category=TAG).first()
    if found is None:
        raise DemoWorldError(
            f"nothing has the tag '{name}' ({TAG}) any more;"
            f" give it to what should take its place: tag <object> = {name}:{TAG}"
        )
    return found
