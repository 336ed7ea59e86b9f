// What the tests ask the browser's PC under Node: node node.mjs MODULES QUESTION ARGUMENT ..., where
// QUESTION is below. Prints JSON.
import fs from "node:fs";
import { engine, machine_of, talk } from "../../labs/page/state.mjs";
import { describe, recognise, symbols_of } from "../../labs/page/images.js";
import { is_prompt, place, PRIVATE, type } from "../../labs/page/machine.js";
import { where_it_is, why_ended } from "../../labs/page/ends.js";

const [modules, question, ...rest] = process.argv.slice(2);
const LIMIT = 60000;	// milliseconds of the machine
const word = (key, values = {}) => `${key} ${Object.values(values).join(" ")}`;
const buffer = (name) => { const b = fs.readFileSync(name); return b.buffer.slice(b.byteOffset, b.byteOffset + b.byteLength); };

async function machine(job) {
	const { V86, engine: bytes } = await engine(modules);
	return talk(V86, { ...machine_of(JSON.parse(fs.readFileSync(job))), engine: bytes });
}

const QUESTIONS = {
	// Types each line at the prompt, in one machine; what it said, how it ended, and what the page says.
	async types(job, image, ...lines) {
		const pc = await machine(job), symbols = symbols_of(buffer(image));
		const missing = PRIVATE.filter((name) => name.split(".").reduce((of, key) => of?.[key], pc.emulator.v86) === undefined);
		await pc.until(is_prompt, LIMIT);
		const answers = [];
		for (const line of lines) {
			const before = pc.said.length;
			type(pc.emulator, line + "\n");
			await pc.until((said) => said.length > before + line.length + 2 && is_prompt(said.slice(before)), LIMIT);
			answers.push(pc.said.slice(before));
		}
		const now = place(pc.emulator);
		const words = pc.ended ? why_ended(word, pc.ended, pc.said, now, symbols) : where_it_is(word, [now, now], symbols);
		return { said: pc.said, answers, ended: pc.ended && { kind: pc.ended.kind, status: pc.ended.status }, words, missing, ...now };
	},
	// What files are, and the names at some addresses of a kernel.
	async files(...names) {
		return names.map((name) => recognise(buffer(name)));
	},
	async names(image, ...addresses) {
		const symbols = symbols_of(buffer(image));
		return { count: symbols.length, names: addresses.map((each) => describe(Number(each), symbols)) };
	},
};

const answer = await QUESTIONS[question](...rest);
await new Promise((done) => process.stdout.write(JSON.stringify(answer), done));
process.exit(0);
