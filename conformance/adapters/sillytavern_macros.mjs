// SPDX-License-Identifier: MIT
// Answer the kit's task `macro` with SillyTavern's newer macro engine (sillytavern_page.mjs).
import { app, serve } from './sillytavern_page.mjs';

// Marks that the application takes out of every text that it shows.
const MARKS = /\n*\{\{trim\}\}\n*|\x00\x1fELSE\x1f\x00|\\(?=[{}])/g;

function macro(given) {
    if (given.engine !== '2.0') return 'the adapter loads the newer macro engine only';
    for (const [name, value] of Object.entries(given.outlets ?? {})) app.extension_prompts['customWIOutlet_' + name] = { value };
    const output = app.substituteParams(given.text, { original: given.original, groupOverride: given.group });
    const text = (value) => (typeof value === 'string' ? value : JSON.stringify(value)).replace(MARKS, '');
    const shown = (found) => Object.fromEntries(Object.entries(found).map(([name, value]) => [name, text(value)]));
    return { output, variables: { local: shown(app.chat_metadata.variables), global: shown(app.extension_settings.variables.global) } };
}

await serve({ macro });
