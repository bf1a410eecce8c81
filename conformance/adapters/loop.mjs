// SPDX-License-Identifier: MIT
// Read requests from standard input and write answers: what every adapter in JavaScript shares.
import { createInterface } from 'node:readline';

// Answer requests until the input ends. A function of `tasks` gets the input of a case and returns
// the output, or a text that says why the program cannot do what the case asks.
export async function serve(name, version, tasks, prepare = () => {}) {
    for await (const line of createInterface({ input: process.stdin })) {
        const { id, task, input } = JSON.parse(line);
        let answer = { name, version, tasks: Object.keys(tasks) };
        if (task !== 'hello') {
            try {
                prepare(input);
                const output = await tasks[task](input);
                answer = typeof output === 'string' ? { unsupported: output } : { output };
            } catch (error) {
                answer = { error: String(error) };
            }
        }
        process.stdout.write(JSON.stringify({ id, ...answer }) + '\n');
    }
}
