// SPDX-License-Identifier: MIT
// Answer the kit's task `lore` with SillyTavern's own world info (sillytavern_page.mjs).
import { ROLES, app, load, refill, serve } from './sillytavern_page.mjs';

const PLACES = ['after_main', 'in_chat', 'before_main'];
const world = await load('world-info'), authors = await load('authors-note');

async function lore(given) {
    const { settings, author_note: own } = given, data = given.card.data, at = { global: [], character: [] };
    for (const book of given.books) {
        world.worldInfoCache.set(book.name, { entries: book.entries });
        (at[book.attach] ??= []).push(book.name);
    }
    world.updateWorldInfoSettings(Object.fromEntries(Object.entries(settings).map(([name, value]) => ['world_info_' + name, value])), at.global);
    data.extensions.world = at.character[0];
    world.world_info.charLore = [{ name: 'it', extraBooks: at.character.slice(1) }];
    app.power_user.persona_description_lorebook = at.persona?.[0];
    app.chat_metadata = {
        world_info: at.chat?.[0], note_prompt: own.content, note_interval: own.interval, note_depth: own.depth,
        note_position: PLACES.indexOf(own.position), note_role: ROLES.indexOf(own.role),
    };
    const chat = app.chat, turns = [];
    for (const count of given.turns) {
        Object.assign(app, { chat: chat.slice(0, count), note: own.content, extension_prompts: {} });
        for (const one of given.injections) {
            app.setExtensionPrompt(one.key, one.content, PLACES.indexOf(one.position), one.depth, one.scan, ROLES.indexOf(one.role));
        }
        refill();
        authors.setFloatingPrompt();
        const deep = data.extensions.depth_prompt?.prompt;
        if (deep) app.setExtensionPrompt('DEPTH_PROMPT', deep, 1, 4, own.scan, 0);
        turns.push(await turn(given));
    }
    return { turns };
}

// Scan one turn's messages as the application does before it sends a prompt.
async function turn({ settings, max_context, dry_run, kind }) {
    const said = app.chat.filter((m) => !m.is_system).map((m) => (settings.include_names ? `${m.name}: ${m.mes}` : m.mes));
    const { persona, description, personality, scenario, charDepthPrompt, creatorNotes } = app.getCharacterCardFieldsLazy();
    const made = await world.checkWorldInfo(said.reverse(), max_context, dry_run, {
        personaDescription: persona, characterDescription: description, characterPersonality: personality,
        characterDepthPrompt: charDepthPrompt, scenario, creatorNotes, trigger: kind,
    });
    const beside = (position) => made.EMEntries.filter((one) => one.position === position).map((one) => one.content);
    const times = app.chat_metadata.timedWorldInfo ?? {};
    const timed = (effect) => Object.keys(times[effect] ?? {}).map((name) => name.replace('.', '#')).sort();
    const due = authors.shouldWIAddPrompt;
    return {
        activated: [...made.allActivatedEntries].map((one) => `${one.world}#${one.uid}`),
        before: made.worldInfoBefore, after: made.worldInfoAfter, outlets: made.outletEntries,
        examples_before: beside(0).reverse(), examples_after: beside(1),
        depth: Object.fromEntries(made.WIDepthEntries.map((one) => [`${one.depth}/${ROLES[one.role]}`, one.entries])),
        note_is_due: due, note: due ? app.substituteParams(app.extension_prompts['2_floating_prompt'].value) : '',
        sticky: timed('sticky'), cooldown: timed('cooldown'),
    };
}

await serve({ lore });
