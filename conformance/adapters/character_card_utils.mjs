// SPDX-License-Identifier: MIT
// Answer the kit's task `card` with character-card-utils, a library on npm:
//     npm install character-card-utils
//     export CARD_UTILS=node_modules/character-card-utils
// It reads cards of the versions 1 and 2 that are parsed already, and converts both to version 2.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { serve } from './loop.mjs';

const folder = resolve(process.env.CARD_UTILS ?? 'node_modules/character-card-utils');
const library = createRequire(folder + '/package.json')(folder);

function card(given) {
    if ('base64' in given) return 'the library reads no files';
    const value = 'card' in given ? given.card : parsed(given.card_text);
    if (value?.spec === 'chara_card_v3') return 'the library reads cards of the versions 1 and 2';
    const { success, data, error } = library.safeParseToV2(value);
    return success ? { written: data } : { error: String(error) };
}

// Text that is no JSON is handed over as a text, which is no card.
function parsed(text) {
    try {
        return JSON.parse(text);
    } catch {
        return text;
    }
}

const { version } = JSON.parse(readFileSync(folder + '/package.json', 'utf8'));
await serve('character-card-utils', version, { card });
