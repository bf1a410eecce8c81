// SPDX-License-Identifier: MIT
// Answer the kit's task `prompt` with SillyTavern's own prompt manager and chat completion. The
// steps between the scan and the messages, which belong to the page, are repeated in turn().
import { app, inside, load, refill, serve } from './sillytavern_page.mjs';
import { NOTE, attach, scan } from './sillytavern_scan.mjs';

const PERSONA = { in_prompt: 0, above_note: 2, below_note: 3, at_depth: 4, nowhere: 9 }, ROLE = { system: 0, user: 1, assistant: 2 };
const encoder = inside('tiktoken').encoding_for_model('gpt-4');
const tokens = (message) => Object.entries(JSON.parse(JSON.stringify(message))).reduce((sum, [key, value]) => sum + length(value) + (key === 'name'), 6);
const lengths = new Map(); // the encoder is slow, and every prompt is counted again
const length = (text) => lengths.get(text) ?? lengths.set(text, encoder.encode(text).length).get(text);
Object.assign(app, {
    countTokensOpenAIAsync: async (messages, full = false) => [messages].flat().reduce((sum, one) => sum + tokens(one), full ? 0 : -2),
    persona_description_positions: { IN_PROMPT: 0, AFTER_CHAR: 1, TOP_AN: 2, BOTTOM_AN: 3, AT_DEPTH: 4, NONE: 9 },
    system_message_types: { NARRATOR: 'narrator' }, getExtensionPromptMaxDepth: () => 10000, getGroupNames: () => [],
    substituteParamsExtended: (text, dynamicMacros) => app.substituteParams(text, { dynamicMacros }),
    ToolManager: { isToolCallingSupported: () => false, canPerformToolCalls: () => false },
    getExtensionPrompt: async (position = 0, depth, separator = '\n', role, wrap = true) => {
        const fits = (one) => one.position === position && one.value && [[depth, one.depth], [role, one.role]].every(([asked, own]) => asked === undefined || own === undefined || asked === own);
        const text = Object.keys(app.extension_prompts).sort().map((key) => app.extension_prompts[key]).filter(fits).map((one) => one.value.trim()).join(separator);
        return text && app.substituteParams(wrap ? separator + text + separator : text);
    },
});
const openai = await load('openai');
(await load('PromptManager')).PromptManager.prototype.render = () => {}; // there is no page to render to
openai.setupChatCompletionPromptManager(openai.oai_settings);
const defaults = structuredClone(openai.oai_settings);
const examples = (text) => (!text || text === '<START>' ? [] : (text.startsWith('<START>') ? text : '<START>\n' + text.trim()).split(/<START>/gi).slice(1).map((block) => `<START>\n${block.trim()}\n`));

async function prompt(given) {
    const { preset, persona } = given, settings = structuredClone({ ...defaults, ...preset });
    const changed = Object.fromEntries((preset.prompts ?? []).map((one) => [one.identifier, one]));
    const own = defaults.prompts.map((one) => ({ ...one, ...changed[one.identifier] })), known = new Set(own.map((one) => one.identifier));
    settings.prompts = structuredClone([...own, ...Object.values(changed).filter((one) => !known.has(one.identifier))]);
    settings.openai_max_context = preset.openai_max_context ?? 32000;
    settings.openai_max_tokens = preset.openai_max_tokens ?? 300;
    Object.assign(openai.oai_settings, settings);
    Object.assign(app.power_user, { persona_description_position: PERSONA[persona.position], pin_examples: given.pin_examples });
    attach(given);
    const budgeted = { ...given, max_context: settings.openai_max_context - settings.openai_max_tokens, dry_run: !given.live }, chat = app.chat, turns = [];
    for (const count of given.turns) turns.push(await turn(budgeted, chat.slice(0, count)));
    return { turns };
}

async function turn(given, whole) {
    const last = whole.findLastIndex((one) => !one.is_system);
    const chat = given.kind === 'swipe' ? whole.toSpliced(last, 1) : whole;
    const made = await scan(given, chat), { persona } = given, fields = app.getCharacterCardFieldsLazy();
    const blocks = examples(fields.mesExamples);
    for (const { position, content } of made.EMEntries) {
        const added = examples(app.substituteParams(content));
        position === 0 ? blocks.unshift(...added) : blocks.push(...added);
    }
    for (const key of Object.keys(app.extension_prompts)) if (/^customDepthWI|^customWIOutlet/.test(key)) delete app.extension_prompts[key];
    for (const one of made.WIDepthEntries) app.setExtensionPrompt(`customDepthWI_${one.depth}_${one.role}`, one.entries.join('\n'), 1, one.depth, false, one.role);
    for (const [name, texts] of Object.entries(made.outletEntries)) app.setExtensionPrompt('customWIOutlet_' + name, texts.join('\n'), -1, 0);
    app.setExtensionPrompt('PERSONA_DESCRIPTION', '', 0, 0);
    const where = PERSONA[persona.position], text = persona.description, note = app.extension_prompts[NOTE];
    if (text && made.due && (where === 2 || where === 3)) note.value = where === 2 ? `${text}\n${note.value}` : `${note.value}\n${text}`;
    if (text && where === 4) app.setExtensionPrompt('PERSONA_DESCRIPTION', text, 1, persona.depth, true, ROLE[persona.role]);
    refill();
    const said = chat.filter((one) => !one.is_system);
    const messages = openai.setOpenAIMessages(said.map((one) => ({ ...one, extra: one.role === 'system' ? { type: 'narrator' } : {} })));
    const [sent] = await openai.prepareOpenAIMessages({
        name2: app.name2, charDescription: fields.description, charPersonality: fields.personality, scenario: fields.scenario, bias: '', type: given.kind,
        worldInfoBefore: made.worldInfoBefore, worldInfoAfter: made.worldInfoAfter, extensionPrompts: app.extension_prompts, quietPrompt: given.quiet_prompt,
        cyclePrompt: given.kind === 'continue' ? said.at(-1).mes : '', systemPromptOverride: fields.system, jailbreakPromptOverride: fields.jailbreak,
        messages, messageExamples: openai.setOpenAIMessageExamples(blocks),
    }, !given.live);
    return { messages: sent.map(({ role, content, name }) => (name ? { role, content, name } : { role, content })) };
}

await serve({ prompt });
