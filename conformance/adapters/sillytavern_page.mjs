// SPDX-License-Identifier: MIT
// Load SillyTavern's own modules from its npm package and replace the page that they belong to:
// the character, the chat, the settings and jQuery. Shared by the adapters sillytavern_*.mjs.
//     npm install sillytavern@1.19.0 --omit=dev --ignore-scripts
//     export SILLYTAVERN=node_modules/sillytavern
import { readFileSync } from 'node:fs';
import { createRequire, register } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { serve as answer } from './loop.mjs';

const folder = resolve(process.env.SILLYTAVERN ?? 'node_modules/sillytavern');
const root = pathToFileURL(folder + '/public/').href;
export const inside = createRequire(folder + '/package.json');
const Clock = Date, random = Math.random;
export const ROLES = ['system', 'user', 'assistant'];

// A value that can be called, read and iterated; the stub for everything that no case needs.
const anything = new Proxy(function () {}, {
    get: (_, name) => (name === 'then' ? undefined : { [Symbol.toPrimitive]: () => '', [Symbol.iterator]: function* () {} }[name] ?? anything),
    apply: () => anything, construct: () => anything,
});
const libraries = ['chevrotain', 'moment', 'droll', 'seedrandom', 'lodash'];
export const app = Object.fromEntries(libraries.map((name) => [name, inside(name)])); // what stubs export
const fills = [];
globalThis.app = { get: (name) => (name in app ? app[name] : anything), fills };
export const refill = () => fills.forEach((fill) => fill()); // the stubs export the values of `app` again
const page = new Proxy({ querySelector: () => ({ value: app.input }) }, { get: (own, name) => own[name] ?? anything });
globalThis.$ = (query) => (query === '#extension_floating_prompt' ? { val: () => app.note } : anything);
Object.assign(globalThis, { document: page, window: globalThis, toastr: anything, jQuery: globalThis.$ });
for (const name of ['debug', 'log', 'info', 'warn', 'error']) console[name] = () => {};

const filled = (text) => (text ? app.substituteParams(String(text).trim(), { replaceCharacterCard: false }) : '');
const field = (read) => ({ enumerable: true, get: () => read(app.characters[0].data) });
Object.assign(app, {
    this_chid: 0, user_avatar: 'me.png', main_api: 'openai', t: String.raw, getCurrentChatId: () => 'chat',
    event_types: { WORLD_INFO_ACTIVATED: 'active' }, eventSource: { emit: async () => {}, on() {} },
    extension_prompt_types: { NONE: -1, IN_PROMPT: 0, IN_CHAT: 1, BEFORE_PROMPT: 2 }, extension_prompt_roles: { SYSTEM: 0, USER: 1, ASSISTANT: 2 },
    getTokenCountAsync: async (text) => Math.ceil(Buffer.byteLength(text) / 3.35), getRegexedString: (text) => text, regex_placement: {},
    getExtensionPromptByName: async (key) => app.substituteParams(app.extension_prompts[key].value),
    setExtensionPrompt: (key, value, position, depth, scan, role) => { app.extension_prompts[key] = { value, position, depth, scan, role }; },
    getContext: () => ({ chat: app.chat, characters: app.characters, characterId: 0, extensionPrompts: app.extension_prompts, setExtensionPrompt: app.setExtensionPrompt, tagMap: {} }),
    substituteParams: (content, options = {}) => content && macros.engine.evaluate(content, macros.envBuilder.buildFromRawEnv({ content, replaceCharacterCard: true, ...options })),
    getMaxContextTokens: () => app.given.context_tokens, getMaxResponseTokens: () => app.given.reply_tokens,
    getMaxPromptTokens: () => app.given.context_tokens - app.given.reply_tokens, getGeneratingModel: () => app.given.model,
    getCharacterCardFieldsLazy: () => Object.defineProperties({}, {
        persona: field(() => filled(app.power_user.persona_description)), system: field((d) => filled(d.system_prompt)), jailbreak: field((d) => filled(d.post_history_instructions)),
        version: field((d) => d.character_version), charDepthPrompt: field((d) => filled(d.extensions.depth_prompt?.prompt)), creatorNotes: field((d) => filled(d.creator_notes)),
        description: field((d) => filled(d.description)), personality: field((d) => filled(d.personality)), scenario: field((d) => filled(d.scenario)),
        mesExamples: field((d) => filled(d.mes_example)), firstMessage: field((d) => filled(d.first_mes)), alternateGreetings: field((d) => d.alternate_greetings.map(filled)),
    }),
});

function setUp(given) {
    const data = given.card.data, variables = given.variables ?? { local: {}, global: {} };
    data.scenario = given.scenario_override ?? data.scenario;
    const chat = given.history.map((m) => ({ ...m, is_user: m.role === 'user', is_system: m.hidden ?? false, mes: m.content }));
    Object.assign(app, { given, chat, name1: given.user, name2: data.name, characters: [{ ...data, data, avatar: 'it.png' }], extension_prompts: {}, note: '', input: given.input ?? '' });
    app.power_user = { persona_description: given.persona.description, prefer_character_prompt: true, prefer_character_jailbreak: true };
    app.extension_settings = { note: { allowWIScan: given.author_note?.scan ?? false, chara: [] }, variables: { global: variables.global } };
    app.chat_metadata = { variables: variables.local };
    app.selected_group = null;
    Math.random = given.random === null ? random : () => given.random;
    const now = given.now && Clock.parse(given.now);
    globalThis.Date = now ? class extends Clock { constructor(...at) { super(...(at.length ? at : [now])); } static now() { return now; } } : Clock;
    process.env.TZ = given.timezone ?? 'UTC';
    refill();
}

register('./sillytavern_hooks.mjs', import.meta.url, { data: { root } });
export const load = (name) => import(`${root}scripts/${name}.js`);
const { macros, initRegisterMacros } = await load('macros/macro-system'), kept = await load('variables');
const operations = { get: 'get', set: 'set', del: 'delete', add: 'add', inc: 'increment', dec: 'decrement', has: 'exists' };
const acting = (kind) => Object.fromEntries(Object.entries(operations).map(([short, long]) => [short, kept[long + kind + 'Variable']]));
globalThis.SillyTavern = { getContext: () => ({ ...app.getContext(), variables: { local: acting('Local'), global: acting('Global') } }) };
initRegisterMacros();

const { version } = JSON.parse(readFileSync(folder + '/package.json', 'utf8'));
export const serve = (tasks) => answer('SillyTavern', version, tasks, setUp);
