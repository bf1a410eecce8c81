"""The command `preset`: SillyTavern's presets, where they come from and where they are used.

The command only translates. `evennia_ai.formats.presets` reads and writes presets, and the store
keeps them. Without a switch the command only reads. An import changes nothing until a builder
approves it, and an approved preset may do only what was granted to it.
"""

import re
from typing import Final

from evennia_ai.commands.background_work import Steps, waits
from evennia_ai.commands.base import BUILDER_LOCK, CommandError, alike, counted
from evennia_ai.commands.folder import shown_path
from evennia_ai.commands.naming import PRESET_PLACES, place_named, scope_in_words
from evennia_ai.commands.setup.imported import may_in_words, size_in_words
from evennia_ai.commands.setup.preset.files import written
from evennia_ai.commands.setup.preset.imports import PresetImports
from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.prompt.components import GAME, Scope
from evennia_ai.formats.presets.preset import Preset, PresetPrompt
from evennia_ai.formats.presets.switches import find_prompt, switch_lines, switch_prompt
from evennia_ai.npc.views.presets import parsed_preset
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.authored import presets as store
from evennia_ai.store.authored.components import registry
from evennia_ai.store.authored.presets import assignments

_SWITCH: Final = "preset/switch <name> = <prompt> [on | off]"
_ON_OR_OFF: Final = re.compile(r"(.+?)\s+(on|off)", re.IGNORECASE)


class CmdPreset(PresetImports):
    """
    Import SillyTavern's presets, switch their prompts, and choose where to use
    them

    Usage:
      preset
      preset <name>
      preset/import [<file> [= <name>]]
      preset/report <name>[/<number>]
      preset/approve <name>[/<number>] [= <grant>, <grant>...]
      preset/reject <name>
      preset/grant <name> [= <grant>, <grant>...]
      preset/revoke <name> = <grant>, <grant>...
      preset/assign <name> = <place>
      preset/unassign <name> = <place>
      preset/switch <name> = <prompt> [on | off]
      preset/export <name>[/<number>]
      preset/revisions <name> [= <number>]
      preset/revert <name> = <number>
      preset/remove <name>

    Switches:
      import    - read a preset for chat completion from a file of the game's
                  preset folder and show a report on it. The preset waits for
                  approval and has the name of its file unless you give another.
                  Without a file: list the files
      report    - show the report of an import or of any revision again
      approve   - approve an import, with the grants that you name and no others
      reject    - reject all waiting imports of this name; write the whole word
      grant     - grant the preset more; without a value: list all grants, and
                  who gave them
      revoke    - take grants from the preset
      assign    - use an approved preset in a place, instead of the one used there
      unassign  - use no preset in a place
      switch    - switch one of its prompts on or off, by its name, its number
                  in the list or its identifier; without on or off: change it
      export    - write it into a new file of the preset folder, with its
                  switches and with your components that replace its prompts
      revisions - show who changed it, and when; with a number: show what that
                  revision changed
      revert    - go back to an earlier revision with its grants and switches;
                  you see what would change and are asked first
      remove    - remove the preset, if it is used nowhere; write the whole word;
                  revert brings it back

    Examples:
      preset/import
      preset/import quay.json
      preset/approve quay = system_prompt, fields, after_history, roles
      preset/assign quay = game
      preset/assign quay = oren
      preset quay
      preset/switch quay = Second person on
      preset/switch quay = 2
      preset/revisions quay
      preset/export quay

    Places: game, zone:<tag>, here, room:<room>, npc:<name>, or just the name of
    an NPC. If several places with a preset apply to an NPC, the narrowest counts.

    A preset is a list of prompts that its author switches on and off. The
    game's own rules stay above all of them. A component of yours that has the
    key of a prompt replaces that prompt. An imported preset may do little at
    first: all its texts stay inside the conversation, as if a user had said
    them. Grants allow it more. You answer for what you grant, so read the
    report first. If you import another file of the same name, it waits, and the
    grants and switches of the approved preset are not given to it.

    Grants: system_prompt, fields, after_history, positions, roles and regex;
    preset/grant <name> says what each allows. help regex is about its scripts.
    """

    key = "preset"
    locks = BUILDER_LOCK.format(key="preset")
    help_category = "Building"
    auto_help = True
    whole_words = frozenset({"remove", "reject"})
    without_value = frozenset({"", "report", "reject", "export", "remove"})
    thing = "preset"
    verbs = {
        "": "look",
        "import": "import_file",
        **alike(
            "report approve reject grant revoke assign unassign switch export "
            "revisions revert remove"
        ),
    }

    @waits
    def look(self) -> Steps:
        """List the presets, or show one: who approved it, its grants and its prompts."""
        if not self.lhs:
            self.show(self.listed())
            return
        stored = self.thing_named(self.plain_name(self.lhs, "preset <name>"))
        lines = yield self.worked(
            f"Reading preset {stored.name}", lambda _progress: switch_lines(parsed_preset(stored))
        )
        self.saw_file(stored.name, stored.sha256)
        how = f"preset/switch {stored.name} = <number or name> [on | off]"
        facts = [f"  {self.counts_in_words(stored.name)}"]
        if stored.switches:
            facts.append(f"  {counted(len(stored.switches), 'prompt')} switched in the game")
        self.show([*self.state(stored, facts=facts), "", *lines, "", how])

    @waits
    def assign(self) -> Steps:
        """Use a preset in a place. The preset is read first, so an unreadable one is refused."""
        name, scope = self._preset_and_place("assign")
        stored = store.get_preset(name)
        yield self.worked(f"Reading preset {name}", lambda _progress: parsed_preset(stored))
        before = assignments().get(scope)
        after = store.PRESETS.assign(name, scope, by=self.actor)
        instead = f", no longer {before}" if before and before != name else ""
        self.say(
            f"Preset {name} (revision {after.revision}, {may_in_words(after.grants)}) is used in"
            f" {scope_in_words(scope)} from the next turn on{instead}."
        )

    def unassign(self) -> None:
        name, scope = self._preset_and_place("unassign")
        before = assignments().get(scope)
        if before != name:
            where = scope_in_words(scope)
            used = f"preset {before} is" if before else "no preset is"
            raise CommandError(
                f"Preset {name} is not used in {where}; {used} used there. Nothing was changed.",
                instead=f"preset/unassign {before} = {self.rhs}" if before else "",
            )
        store.PRESETS.unassign(scope, by=self.actor)
        self.say(
            f"Preset {name} is no longer used in {scope_in_words(scope)}; it"
            f" {self.counts_in_words(name)}."
        )

    def _preset_and_place(self, switch: str) -> tuple[str, Scope]:
        """Return the name of the typed preset and the place after "="."""
        usage = f"preset/{switch} <name> = <place>"
        typed, place = self.both(usage)
        presets = set(store.PRESETS.list_keys())
        known_name = store.PRESETS.known_name
        if known_name(typed) not in presets and known_name(place) in presets:
            raise self.turned_round(switch)
        name = self.thing_named(self.plain_name(typed, usage)).name
        known = assignments()
        return name, place_named(
            self.caller, place, kinds=PRESET_PLACES, known=known, what="a preset"
        )

    def line_for_value(self) -> str:
        return f"preset/assign {self.lhs} = {self.rhs}"

    def names_something(self, text: str) -> bool:
        return store.PRESETS.known_name(text.partition("/")[0]) in store.PRESETS.list_keys()

    @waits
    def switch(self) -> Steps:
        """Switch one prompt of a preset on or off, as a new revision."""
        stored = self.typed_thing(_SWITCH)
        if not self.rhs:
            raise CommandError(f"Usage: {_SWITCH}; preset {stored.name} lists its prompts.")
        preset = yield self.worked(
            f"Reading preset {stored.name}", lambda _progress: parsed_preset(stored)
        )
        prompt, on = _typed(preset, self.rhs)
        if switch_prompt(preset, prompt.identifier, on) == preset:
            self.say(
                f"'{_called(prompt)}' of preset {stored.name} is {_word(on)} already; nothing was"
                " changed."
            )
            return
        after = store.switch(stored, {prompt.identifier: on}, by=self.actor)
        yield self.ahead(parsed_preset, after)
        self.say(
            f"'{_called(prompt)}' of preset {after.name} is {_word(on)} from the next turn on;"
            f" this is revision {after.revision}. It {self.counts_in_words(after.name)}."
        )

    @waits
    def export(self) -> Steps:
        usage = "preset/export <name>[/<number>]"
        text = self.wanted(usage)
        named, folder = self.numbered(text), conf().preset_folder
        if named.number is None:
            stored = self.thing_named(named.name)
        else:
            stored = store.PRESETS.then(named.name, named.number)
        own = [one for one in registry() if one.scope == GAME and not one.is_static]
        path, size_bytes, changed = yield self.worked(
            f"Writing preset {stored.name}",
            lambda progress: written(stored, folder, own=own, progress=progress),
        )
        with_own = f", with your components {', '.join(changed)} in it" if changed else ""
        self.say(
            f"Wrote preset {stored.name}, revision {stored.revision}, to {path.name} in"
            f" {shown_path(folder)} ({size_in_words(size_bytes)}){with_own}."
        )


def _typed(preset: Preset, text: str) -> tuple[PresetPrompt, bool]:
    """Return the typed prompt, and whether to switch it on. Without "on" or "off" it is toggled.

    The name of a prompt may end in "on" or "off", so the whole text is tried as a name first.
    """
    try:
        prompt = _prompt(preset, text)
    except FormatError:
        found = _ON_OR_OFF.fullmatch(text)
        if found is None:
            raise
        return _prompt(preset, found[1]), found[2].lower() == "on"
    return prompt, not preset.is_on(prompt.identifier)


def _prompt(preset: Preset, text: str) -> PresetPrompt:
    """Return the prompt with this identifier or name, else the one with this number in the list."""
    try:
        return find_prompt(preset, text)
    except FormatError:
        number = int(text) if re.fullmatch(r"[0-9]{1,6}", text) else 0
        if not 1 <= number <= len(preset.order):
            raise
        return preset.by_identifier[preset.order[number - 1].identifier]


def _called(prompt: PresetPrompt) -> str:
    return prompt.name or prompt.identifier


def _word(on: bool) -> str:
    return "on" if on else "off"
