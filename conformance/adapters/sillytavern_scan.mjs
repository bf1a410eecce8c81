// SPDX-License-Identifier: MIT
// Scan a chat with SillyTavern's own world info, as the page does before it sends a prompt.
// Shared by sillytavern_lore.mjs and sillytavern_prompts.mjs.
import { ROLES, app, load, refill } from './sillytavern_page.mjs';

export const NOTE = '2_floating_prompt', PLACES = ['after_main', 'in_chat', 'before_main'];
const world = await load('world-info'), authors = await load('authors-note');

// Attach the books of a case and set its settings and its author's note.
export function attach({ books, settings, author_note: own, card: { data } }) {
    const at = { global: [], character: [] };
    for (const book of books) {
        world.worldInfoCache.set(book.name, { entries: book.entries });
        (at[book.attach] ??= []).push(book.name);
    }
    world.updateWorldInfoSettings(Object.fromEntries(Object.entries(settings).map(([name, value]) => ['world_info_' + name, value])), at.global);
    data.extensions.world = at.character[0];
    world.world_info.charLore = [{ name: 'it', extraBooks: at.character.slice(1) }];
    app.power_user.persona_description_lorebook = at.persona?.[0];
    Object.assign(app.chat_metadata, {
        world_info: at.chat?.[0], note_prompt: own.content, note_interval: own.interval, note_depth: own.depth,
        note_position: PLACES.indexOf(own.position), note_role: ROLES.indexOf(own.role),
    });
}

// Set the texts of a turn that are injected, then scan its messages.
export async function scan({ settings, max_context, dry_run, kind, author_note: own, injections, card, quiet_prompt }, chat) {
    Object.assign(app, { chat, note: own.content });
    for (const one of injections) {
        app.setExtensionPrompt(one.key, one.content, PLACES.indexOf(one.position), one.depth, one.scan, ROLES.indexOf(one.role));
    }
    refill();
    const deep = card.data.extensions.depth_prompt;
    const fields = app.getCharacterCardFieldsLazy();
    app.setExtensionPrompt('DEPTH_PROMPT', fields.charDepthPrompt, 1, deep?.depth ?? 4, own.scan, Math.max(0, ROLES.indexOf(deep?.role)));
    authors.setFloatingPrompt();
    app.setExtensionPrompt('QUIET_PROMPT', quiet_prompt ?? '', 0, 0, true);
    const said = chat.filter((m) => !m.is_system).map((m) => (settings.include_names ? `${m.name}: ${m.mes}` : m.mes));
    const made = await world.checkWorldInfo(said.reverse(), max_context, dry_run, {
        personaDescription: fields.persona, characterDescription: fields.description, characterPersonality: fields.personality,
        characterDepthPrompt: fields.charDepthPrompt, scenario: fields.scenario, creatorNotes: fields.creatorNotes, trigger: kind,
    });
    app.setExtensionPrompt('QUIET_PROMPT', '', 0, 0, true);
    return { ...made, due: authors.shouldWIAddPrompt };
}
