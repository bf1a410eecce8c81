"""The command `regex`: the regex scripts of the game, of cards and of presets."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from evennia_ai.commands.background_work import CardWork, Steps, waits
from evennia_ai.commands.base import (
    BUILDER_LOCK,
    CommandError,
    Run,
    alike,
    counted,
    revision_in_words,
    titled,
)
from evennia_ai.commands.folder import PRESETS, bytes_of, new_file, offered, path_in, shown_path
from evennia_ai.commands.naming import whole_number
from evennia_ai.commands.screens import diffed
from evennia_ai.engine.errors import ComponentValueError, NotStoredError
from evennia_ai.engine.text.columns import WIDTH, clip_text, escape_controls, wrap_text
from evennia_ai.engine.text.differences import diff_members
from evennia_ai.formats.regex_scripts import (
    FIELDS,
    MOST_CHARACTERS,
    MOST_SCRIPTS,
    ReadScript,
    counted_scripts,
    describe_script,
    dump_script,
    field_word,
    find_problem,
    lint_script,
    new_script,
    read_script_file,
    read_scripts,
    with_field,
)
from evennia_ai.npc.mind.regex_scripts import (
    RawChange,
    ScriptList,
    all_scripts,
    card_change,
    change_preset,
    replace_at,
    save_game_script,
    scripts_of,
    try_script,
)
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.authored.cards import CARDS, StoredCard
from evennia_ai.store.authored.life_cycle import ImportedKind
from evennia_ai.store.authored.presets import PRESETS as STORED_PRESETS
from evennia_ai.store.authored.presets import StoredPreset
from evennia_ai.store.authored.regex_scripts import SCRIPTS, save_script

_NAMED: Final = "[card <card>/ | preset <preset>/]<script>"
_HOLDERS: Final = ("card", "preset")
_KINDS: Final[Mapping[str, ImportedKind[Any]]] = {"card": CARDS, "preset": STORED_PRESETS}
_MOST_FILE_BYTES: Final = 4 * MOST_CHARACTERS * 8


class _Named(NamedTuple):
    """What a builder typed: the list of a script, the script, and one of its fields."""

    where: ScriptList
    script: ReadScript | None
    field: str = ""


class CmdRegex(CardWork):
    """
    Show and edit regex scripts, which change words in prompts and on screens

    Usage:
      regex
      regex [card <card>/ | preset <preset>/]<script>
      regex card <card>
      regex preset <preset>
      regex/create <script> [= <regular expression>]
      regex/edit [card <card>/ | preset <preset>/]<script>/<field> = <value>
      regex/<switch> [card <card>/ | preset <preset>/]<script> [= <value>]
      regex/import [<file> [= card <card> | preset <preset> | <name>]]

    Switches:
      create - create a script of the game; it runs only in prompts, in what NPCs
               said, until you edit it
      edit   - write one field: name, find, replace, trim, placement,
               prompt_only, display_only, disabled, run_on_edit, macros,
               min_depth or max_depth
      on     - let a script run
      off    - keep a script, but do not run it
      test   - <text>: show what the script makes of a text
      import - read a script, or a list of scripts, from a file of the game's
               preset folder; without a place they become scripts of the game.
               Without a file: list the files
      export - write a script into a new file of the preset folder
      remove - remove a script; write the whole word
      revisions - show who changed a script of the game; with a number: show
               what that revision changed
      revert - <number>: make a script of the game what it was; you see what
               would change and are asked first

    Examples:
      regex
      regex/create cut thoughts = /<think>[^<]*<\\/think>/g
      regex/edit cut thoughts/placement = ai_output, user_input
      regex/edit cut thoughts/min_depth = 4
      regex/test cut thoughts = <think>who is it?</think>Good evening.
      regex/revisions cut thoughts
      regex/export cut thoughts
      regex/off cut thoughts
      regex/import regex-cut-thoughts.json = card oren
      regex card oren
      regex card oren/1
      regex/edit card oren/cut thoughts/trim = ...
      regex/remove card oren/1

    A script replaces what its regular expression finds. SillyTavern wrote most
    scripts that you meet in cards and presets; without the grant regex they do
    not run: card/grant mira = regex, preset/grant nemo = regex. The game's own
    scripts run first, then those of the preset, then those of the card.

    Scripts never change what is recorded. One with prompt_only changes what the
    model reads, one with display_only what players see of an NPC's words, and
    one with neither changes both. A script with a depth changes old messages
    again as they grow older, so a provider can reuse less of the last prompt.
    ai/why <npc> = regex:game/<script> shows what a script changed.
    """

    key = "regex"
    locks = BUILDER_LOCK.format(key="regex")
    help_category = "Building"
    auto_help = True
    whole_words = frozenset({"remove"})
    without_value = frozenset({"", "on", "off", "export", "remove"})
    verbs = {
        "": "look",
        **alike("create edit"),
        "on": "switch_on",
        "off": "switch_off",
        "test": "test",
        "import": "import_file",
        **alike("export remove revisions revert"),
    }

    def names_something(self, text: str) -> bool:
        try:
            return self._named(text).script is not None
        except (NotStoredError, CommandError):
            return False

    def look(self) -> None:
        """List all scripts, or the scripts of one place, or show one script."""
        if not self.lhs:
            self.show(_overview(all_scripts()))
            return
        named = self._named(self.lhs)
        if named.script is None:
            self.show(_listed(named.where))
        else:
            self.show(_shown(named.where, named.script))

    def create(self) -> None:
        usage = "regex/create <script> [= <regular expression>]"
        name = " ".join(self.wanted(usage).split())
        if SCRIPTS.current(name) is not None:
            raise CommandError(f"The game has a script '{name}' already. Nothing was created.")
        raw = new_script(name)
        if self.rhs:
            raw = with_field(raw, "find", self.rhs)
        saved = self._saved_new(name, dump_script(raw))
        more = "" if self.rhs else f" It searches nothing yet: regex/edit {name}/find = /.../g."
        self.say(f"Created script {name} of the game, revision {saved}.{more}")

    @waits
    def edit(self) -> Steps:
        """Write one field of a script, and show what is different."""
        usage = f"regex/edit {_NAMED}/<field> = <value>"
        typed, value = self.wanted(usage), self.rhs
        named = None if value is None else self._named(typed)
        if value is None or named is None or named.script is None or not named.field:
            raise CommandError(f"Usage: {usage}. The fields are {', '.join(FIELDS)}.")
        if named.field == "name" and named.where.kind == "game":
            raise CommandError(
                "A script of the game keeps its name; export it and import it under another one."
                " Nothing was changed."
            )
        yield from self._changed(named, lambda raw: with_field(raw, named.field, value))

    @waits
    def switch_on(self) -> Steps:
        yield from self._switched(on=True)

    @waits
    def switch_off(self) -> Steps:
        yield from self._switched(on=False)

    def test(self) -> None:
        """Show what a script makes of a text."""
        typed, text = self.both(f"regex/test {_NAMED} = <text>")
        script = self._script(typed).script
        assert script is not None
        if problem := find_problem(script.file.find, script.file.replacement):
            raise CommandError(f"It cannot run: its regular expression {problem}.")
        made, told = try_script(script, text, char="Oren", user="Anna")
        self.show([*wrap_text(told.capitalize() + ".", WIDTH), "", *wrap_text(made, WIDTH)])

    @waits
    def import_file(self) -> Steps:
        """Import the scripts of a file into the game, a card or a preset."""
        folder = conf().preset_folder
        if not self.lhs:
            self.show(offered(folder, kind=PRESETS))
            return
        path = path_in(folder, self.lhs, command="regex/import", kind=PRESETS)
        content = bytes_of(path, most=_MOST_FILE_BYTES)
        if len(content) > _MOST_FILE_BYTES:
            raise CommandError(
                f"{path.name} has more than {_MOST_FILE_BYTES} bytes. Nothing was imported."
            )
        raws = read_script_file(content, where=path.name)
        target = (self.rhs or "").strip()
        if target.partition(" ")[0].lower() in _HOLDERS:
            where = self._named(target).where
            if len(where.scripts) + len(raws) > MOST_SCRIPTS:
                raise CommandError(f"The {where} would have more than {MOST_SCRIPTS} scripts.")
            yield from self._save(where, lambda listed: [*listed, *raws])
            what = f"{where.kind} {where.name}"
        else:
            names = self._imported(raws, content, target)
            what = f"the game: {', '.join(names)}"
        lines = [f"Imported {counted(len(raws), 'regex script')} into {what}."]
        for script in read_scripts(raws):
            lines += _findings(script)
        self.show([row for line in lines for row in wrap_text(line, WIDTH)])

    def _imported(self, raws: Sequence[dict[str, Any]], content: bytes, name: str) -> list[str]:
        """Save the scripts of a file as scripts of the game, and return their names."""
        if name and len(raws) > 1:
            raise CommandError(
                f"The file has {len(raws)} scripts, so one name is not enough. Nothing was"
                " imported."
            )
        names = [name or one.name.replace("/", "-") for one in read_scripts(raws)]
        for one in names:
            if SCRIPTS.current(one) is not None:
                raise CommandError(
                    f"The game has a script '{one}' already; remove it first, or give another"
                    " name. Nothing was imported."
                )
        # The file of a single script is kept as it is, so an export gives the same bytes.
        whole = content.decode("utf-8-sig")
        is_one_script = whole.lstrip().startswith("{")
        texts = [whole] if is_one_script else [*map(dump_script, raws)]
        for one, text in zip(names, texts, strict=True):
            self._saved_new(one, text)
        return names

    def export(self) -> None:
        named = self._script(self.wanted(f"regex/export {_NAMED}"))
        script, folder = named.script, conf().preset_folder
        assert script is not None
        text = dump_script(script.raw)
        if named.where.kind == "game":
            text = SCRIPTS.existing(script.name).source
        path = new_file(folder, f"regex-{script.name}", text.encode(), kind=PRESETS)
        self.say(f"Wrote script {script.name} to {path.name} in {shown_path(folder)}.")

    @waits
    def remove(self) -> Steps:
        named = self._script(self.wanted(f"regex/remove {_NAMED}"))
        where, script = named.where, named.script
        assert script is not None
        if where.kind == "game":
            number = SCRIPTS.existing(script.name).revision
            SCRIPTS.remove(script.name, by=self.actor)
            back = f"regex/revert {script.name} = {number} brings it back."
        else:
            yield from self._save(where, lambda listed: replace_at(listed, script, []))
            back = f"{where.kind}/revert {where.name} goes back to an earlier revision."
        self.say(f"Removed script {script.name} of the {where}. {back}")

    def revisions(self) -> None:
        name, changes = self._changes("regex/revisions <script> [= <revision>]")
        if self.rhs is None:
            head = [f"Revisions of script {name}:"]
            self.show(
                [clip_text(line, WIDTH) for line in (*head, *map(revision_in_words, changes))]
            )
            return
        number = whole_number(self.rhs, what="revision")
        then = SCRIPTS.revision(name, number)
        before = SCRIPTS.revision_before(name, number)
        raw = {} if before is None else before.value.raw
        told = list(diff_members(raw, then.value.raw)) or ["Nothing is different."]
        head = [f"Script {name}, revision {revision_in_words(then).strip()}:"]
        self.show(diffed([*head, *told]))

    def revert(self) -> Run:
        usage = "regex/revert <script> = <revision>"
        self.both(usage)
        name, changes = self._changes(usage)
        number = whole_number(self.rhs, what="revision")
        return self._revert_after_yes(name, number, seen=changes[-1].number)

    def _revert_after_yes(self, name: str, number: int, *, seen: int) -> Generator[str, Any, None]:
        then, now = SCRIPTS.then(name, number), SCRIPTS.current(name)
        changes = [*diff_members({} if now is None else now.raw, then.raw)]
        if not (yield from self.goes_back(f"script {name}", number, changes=changes)):
            return
        SCRIPTS.revert(name, number, by=self.actor, seen_revision=seen)
        self.say(f"Script {name} is what it was at revision {number}.")

    def _changes(self, usage: str) -> tuple[str, Sequence[Any]]:
        """Return the name and the revisions of a script of the game, which may be removed."""
        typed = self.wanted(usage)
        if typed.partition(" ")[0].lower() in _HOLDERS and SCRIPTS.current(typed) is None:
            kind = typed.partition(" ")[0].lower()
            raise CommandError(
                f"Scripts of a {kind} are changed with the {kind}; {kind}/revisions lists the"
                " changes."
            )
        known = next((one for one in SCRIPTS.list_keys() if one.lower() == typed.lower()), typed)
        changes = SCRIPTS.revisions(known)
        if not changes:
            raise NotStoredError("regex script of the game", typed, SCRIPTS.list_keys())
        return known, changes

    def _switched(self, *, on: bool) -> Steps:
        named = self._script(self.wanted(f"regex/{'on' if on else 'off'} {_NAMED}"))
        word = "off" if on else "on"
        yield from self._changed(named, lambda raw: with_field(raw, "disabled", word))

    def _changed(self, named: _Named, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Steps:
        """Change a script and show what is different."""
        where, script = named.where, named.script
        assert script is not None
        is_own = where.kind == "game"
        raw = SCRIPTS.existing(script.name).raw if is_own else dict(script.raw)
        after = change(raw)
        if after == raw:
            self.say(f"Script {script.name} has this value already; nothing was changed.")
            return
        if is_own:
            save_game_script(script, after, by=self.actor)
        else:
            yield from self._save(where, lambda listed: replace_at(listed, script, [after]))
        told = diff_members(raw, after)
        head = f"Script {script.name} of the {where}:"
        [read] = read_scripts([after])
        rows = [row for line in _findings(read) for row in wrap_text(line, WIDTH)]
        self.show(diffed([clip_text(escape_controls(head), WIDTH), *told, *rows]))

    def _save(self, where: ScriptList, change: RawChange) -> Steps:
        """Save other scripts of a card or a preset, as a new revision of it."""
        if isinstance(where.stored, StoredCard):
            yield self.edited(where.stored, card_change(change), by=self.actor)
        elif isinstance(where.stored, StoredPreset):
            change_preset(where.stored, change, by=self.actor)

    def _saved_new(self, name: str, source: str) -> int:
        try:
            return save_script(name, source, by=self.actor, seen_revision=0).revision
        except ComponentValueError as error:
            raise CommandError(f"{error}. Nothing was saved.") from error

    def _script(self, typed: str) -> _Named:
        """Return a script. CommandError if none is named."""
        named = self._named(typed)
        if named.script is None:
            raise CommandError(f"Name a script: {named.where}/<script>. Nothing was changed.")
        return named

    def _named(self, typed: str) -> _Named:
        """Return the place, the script and the field that a text names."""
        word, _, rest = typed.strip().partition(" ")
        kind = word.lower()
        if not rest or kind not in _HOLDERS:
            return _in_list(scripts_of("game"), typed)
        # The name of a card may contain a slash, so the longest name that is known counts.
        parts = rest.strip().split("/")
        known = {name.casefold() for name in _KINDS[kind].list_keys()}
        for count in range(len(parts), 0, -1):
            name = "/".join(parts[:count]).strip()
            if name.casefold() in known or count == 1:
                break
        where = scripts_of("card" if kind == "card" else "preset", name)
        script = "/".join(parts[count:]).strip()
        return _in_list(where, script) if script else _Named(where, None)


def _in_list(where: ScriptList, typed: str) -> _Named:
    """Return the script that a text names, and the field after its last slash."""
    base, slash, word = typed.rpartition("/")
    field = field_word(word)
    if slash and field in FIELDS:
        return _Named(where, where.scripts[where.index(base)], field)
    return _Named(where, where.scripts[where.index(typed)])


def _overview(lists: Sequence[ScriptList]) -> Iterator[str]:
    for where in lists:
        yield from _listed(where)
    if len(lists) == 1:
        yield "No card and no preset has regex scripts."


def _listed(where: ScriptList) -> Iterator[str]:
    title = f"{str(where).capitalize()}: {counted_scripts(where.scripts)}"
    yield clip_text(escape_controls(title), WIDTH)
    for number, script in enumerate(where.scripts, start=1):
        mark = "[ ]" if script.file.disabled else "[x]"
        line = f"  {number:3} {mark} {script.name}: {describe_script(script)}"
        yield clip_text(escape_controls(line), WIDTH)
    if where.notice:
        yield from wrap_text(f"  {where.notice}", WIDTH)


def _shown(where: ScriptList, script: ReadScript) -> Iterator[str]:
    yield clip_text(escape_controls(f"Script {script.name} of the {where}"), WIDTH)
    yield from titled("runs", describe_script(script))
    yield from titled("find", script.file.find or "nothing")
    yield from titled("replace", script.file.replacement or "nothing: what is found is removed")
    if script.file.trim:
        yield from titled("trim", ", ".join(script.file.trim))
    yield from titled("macros", "in find, expanded" if script.file.fills_find else "not in find")
    for line in _findings(script):
        yield from wrap_text(line, WIDTH)
    if where.notice:
        yield from wrap_text(where.notice, WIDTH)


def _findings(script: ReadScript) -> Iterator[str]:
    for finding in lint_script(script):
        yield f"  {script.name}: {finding.text}."
