// SPDX-License-Identifier: MIT
// Answer the kit's task `card` with the server of SillyTavern: import a file, export it as PNG.
//     npm install sillytavern@1.19.0 --omit=dev --ignore-scripts
//     export SILLYTAVERN=node_modules/sillytavern
// The routes of characters are the application's own; the adapter stands for its web server.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { serve } from './loop.mjs';

const folder = resolve(process.env.SILLYTAVERN ?? 'node_modules/sillytavern');
const module = (path) => import(pathToFileURL(join(folder, path)).href);
for (const name of ['debug', 'log', 'info', 'warn', 'error']) console[name] = () => {};
const home = mkdtempSync(join(tmpdir(), 'kit-')), characters = join(home, 'characters');
process.on('exit', () => rmSync(home, { recursive: true }));
mkdirSync(characters);
globalThis.DATA_ROOT = home;
process.chdir(folder); // the default picture is found from there
(await module('src/util.js')).setConfigFilePath(join(folder, 'default/config.yaml'));
const { router } = await module('src/endpoints/characters.js');
const extract = createRequire(join(folder, 'package.json'))('png-chunks-extract');
const directories = new Proxy({ characters, root: home }, { get: (own, name) => own[name] ?? join(home, String(name)) });

// Call a route of the server and return what it sends.
function call(url, body, file) {
    return new Promise((done, fail) => {
        const request = { method: 'POST', url, body, file, user: { directories, profile: { handle: 'kit' } }, headers: {}, query: {} };
        const response = { setHeader() {}, type: () => response, status: () => response, send: done, json: done, sendStatus: (code) => fail(Error(`status ${code}`)) };
        router.handle(request, response, (error) => fail(error ?? Error('no such route')));
    });
}

async function card(given) {
    const content = 'base64' in given ? Buffer.from(given.base64, 'base64') : Buffer.from(given.card_text ?? JSON.stringify(given.card));
    const type = content.subarray(1, 4).toString() === 'PNG' ? 'png' : content.subarray(0, 2).toString() === 'PK' ? 'charx' : 'json';
    const filename = 'upload';
    writeFileSync(join(home, filename), content);
    try {
        const { file_name, error } = await call('/import', { file_type: type }, { destination: home, filename, path: join(home, filename) });
        if (error || !file_name) return { error: 'the file is not imported' };
        const picture = await call('/export', { format: 'png', avatar_url: `${file_name}.png` });
        const chunks = extract(new Uint8Array(picture)).filter((one) => one.name === 'tEXt').map((one) => Buffer.from(one.data).toString('latin1').split('\0'));
        const read = (keyword) => JSON.parse(Buffer.from(Object.fromEntries(chunks)[keyword], 'base64').toString());
        return { written: read('ccv3'), v2: read('chara') };
    } catch (error) {
        if (!/status|JSON/.test(error.message)) throw error;
        return { error: error.message };
    }
}

const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
await serve('SillyTavern', version, { card });
