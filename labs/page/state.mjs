// Boots a kernel under Node up to its prompt, and saves the machine there:
//
//	node state.mjs MODULES JOB STATE
//
// JOB is a JSON file: memory (MiB), and the paths of bios, vga_bios, hda to hdd and of files (for
// fw_cfg; settings are texts). Prints JSON: said, and kHz (what the kernel takes its clock for) or
// ended, for a machine that never comes to a prompt; then there is no STATE.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { follow } from "./clock.mjs";
import { is_prompt, place, start } from "./machine.js";

const QUIET = 300, LIMIT = 120000;	// the machine's milliseconds: silent after the prompt; in all

export function buffer(name) {
	const bytes = fs.readFileSync(name);
	return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
}

export async function engine(modules) {
	const { V86 } = await import(pathToFileURL(path.resolve(modules, "v86/build/libv86.mjs")));
	return { V86, engine: buffer(path.resolve(modules, "v86/build/v86.wasm")) };
}

// The options of machine.js for a job.
export function machine_of(job) {
	const options = { memory: job.memory, files: { ...job.settings } };
	for (const name of ["bios", "vga_bios", "hda", "hdb", "hdc", "hdd", "state", "multiboot"])
		if (job[name]) options[name] = buffer(job[name]);
	for (const [name, file] of Object.entries(job.files ?? {})) options.files[name] = buffer(file);
	return options;
}

// Starts a machine and collects what it says. until(test, ms) waits until test(said) holds, true, or
// until the machine has ended or that much of its own time is over, false.
export async function talk(V86, options) {
	const machine = { said: "", last: 0, ended: null };
	let look = () => {};
	machine.emulator = await start(V86, options, {
		ready: (emulator) => follow(emulator, () => look()),
		said: (byte) => { machine.said += String.fromCharCode(byte); machine.last = performance.now(); },
		ended: (how) => { machine.ended = how; },
	});
	machine.until = (test, limit = LIMIT) => new Promise((done) => {
		const end = performance.now() + limit;
		look = () => {
			if (test(machine.said)) done(true);
			else if (machine.ended || performance.now() > end) done(false);
		};
		look();
	});
	return machine;
}

async function main(modules, job, target) {
	const { V86, engine: bytes } = await engine(modules);
	const options = machine_of(JSON.parse(fs.readFileSync(job)));
	const machine = await talk(V86, { ...options, engine: bytes });
	const is_at_prompt = await machine.until((said) => is_prompt(said) && performance.now() - machine.last > QUIET);
	const { said, ended, emulator } = machine;
	if (!is_at_prompt) {
		const { eip } = place(emulator);
		return { said, ended: ended ? { kind: ended.kind, status: ended.status, eip } : { kind: "silent", eip } };
	}
	await emulator.stop();
	fs.writeFileSync(target, new Uint8Array(await emulator.save_state()));
	return { said, khz: Number(/counts at (\d+) kHz/.exec(said)?.[1] ?? 0) };
}

if (import.meta.url === pathToFileURL(path.resolve(process.argv[1])).href) {
	const result = await main(...process.argv.slice(2));
	await new Promise((done) => process.stdout.write(JSON.stringify(result), done));
	process.exit(0);	// v86 has timers that would not end
}
