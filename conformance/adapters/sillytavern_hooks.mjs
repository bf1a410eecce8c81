// SPDX-License-Identifier: MIT
// Load SillyTavern's own modules outside a browser: those in REAL as they are, every other as a
// stub whose exports are read from `globalThis.app` (sillytavern_page.mjs).
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const REAL = /\/scripts\/(world-info|openai|PromptManager|utils|constants|authors-note|variables|util\/\w+|macros\/\w+\/[\w-]+|macros\/macro-system)\.js$/;
let root;

export function initialize(data) {
    root = data.root; // the URL of the folder `public/` in the package
}

export function resolve(specifier, context, next) {
    const parent = context.parentURL ?? '';
    if (!parent.startsWith(root) || !/^[./]/.test(specifier)) return next(specifier, context);
    const url = new URL(specifier.startsWith('/') ? root + specifier.slice(1) : specifier, parent).href;
    if (REAL.test(url) && !url.includes('MacroBrowser')) return { url, format: 'module', shortCircuit: true };
    return { url: `stub:${encodeURIComponent(parent)}|${specifier}`, format: 'module', shortCircuit: true };
}

export function load(url, context, next) {
    if (url.startsWith(root)) {
        return { format: 'module', shortCircuit: true, source: readFileSync(fileURLToPath(url), 'utf8') };
    }
    if (!url.startsWith('stub:')) return next(url, context);
    const [parent, specifier] = url.slice(5).split('|');
    const text = readFileSync(fileURLToPath(decodeURIComponent(parent)), 'utf8');
    const names = [...text.matchAll(/^import\s*\{([^}]*)\}\s*from\s*'([^']+)'/gm)]
        .filter((found) => found[2] === specifier)
        .flatMap((found) => found[1].split(',').map((name) => name.trim().split(' as ')[0]))
        .filter(Boolean);
    const values = names.map((name) => `${name} = app.get('${name}');`).join(' ');
    const source = `export let ${names.join(', ') || 'nothing'};\nfunction fill() { ${values} }\nfill(); app.fills.push(fill);`;
    return { format: 'module', shortCircuit: true, source };
}
