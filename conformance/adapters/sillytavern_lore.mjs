// SPDX-License-Identifier: MIT
// Answer the kit's task `lore` with SillyTavern's own world info (sillytavern_scan.mjs).
import { ROLES, app, serve } from './sillytavern_page.mjs';
import { NOTE, attach, scan } from './sillytavern_scan.mjs';

async function lore(given) {
    attach(given);
    const chat = app.chat, turns = [];
    for (const count of given.turns) {
        app.extension_prompts = {};
        turns.push(shown(await scan(given, chat.slice(0, count))));
    }
    return { turns };
}

function shown(made) {
    const beside = (position) => made.EMEntries.filter((one) => one.position === position).map((one) => one.content);
    const times = app.chat_metadata.timedWorldInfo ?? {};
    const timed = (effect) => Object.keys(times[effect] ?? {}).map((name) => name.replace('.', '#')).sort();
    return {
        activated: [...made.allActivatedEntries].map((one) => `${one.world}#${one.uid}`),
        before: made.worldInfoBefore, after: made.worldInfoAfter, outlets: made.outletEntries,
        examples_before: beside(0).reverse(), examples_after: beside(1),
        depth: Object.fromEntries(made.WIDepthEntries.map((one) => [`${one.depth}/${ROLES[one.role]}`, one.entries])),
        note_is_due: made.due, note: made.due ? app.substituteParams(app.extension_prompts[NOTE].value) : '',
        sticky: timed('sticky'), cooldown: timed('cooldown'),
    };
}

await serve({ lore });
