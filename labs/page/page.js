// A lesson's page: its kernel at its prompt, a terminal, and words about what the machine does.
import { recognise, symbols_of } from "./images.js";
import { where_it_is, why_ended } from "./ends.js";
import { is_prompt, place, start, type } from "./machine.js";

const ROWS = 25, COLUMNS = 80;
const LOOKS = 12, BETWEEN_MS = 25;	// at the processor, when somebody asks where it is
const SILENT_S = 12;	// without a byte and without a prompt: then the page says so
const DISK_LIMIT = 256 << 20, DRIVES = ["hdb", "hdc", "hdd"];

const by_id = (id) => document.getElementById(id);
const { kernel: NAME, root: ROOT } = document.body.dataset;
const WORDS = JSON.parse(by_id("words").textContent);
const word = (key, values = {}) => WORDS[key].replace(/\{(\w+)\}/g, (_, name) => values[name] ?? `{${name}}`);
const word_list = by_id("report");

let emulator = null;
let said = "", symbols = null, last_byte = 0, watcher = 0, generation = 0;
let kernel = null, site = null, libraries = null;

// For those who measure and test: when things were first seen, in milliseconds of the page.
const times = (globalThis.times = {});
const note = (what) => { times[what] ??= Math.round(performance.mark(what).startTime); };

// ---- loading ----

// A file of the page's folder, kept: the network may go. Each caller has bytes of its own, since a
// machine writes to its disks.
const kept = new Map();

async function load(name) {
	if (!kept.has(name)) kept.set(name, fetched(name));
	try {
		return (await kept.get(name)).slice(0);
	} catch (error) {
		kept.delete(name);	// to try it again
		throw error;
	}
}

// What is packed is unpacked here, whatever the server knows of compression: one that knows .gz has
// done it already.
async function fetched(name) {
	try {
		const answer = await fetch(new URL(name, new URL(ROOT, location.href)));
		if (!answer.ok) throw new Error(String(answer.status));
		const bytes = new Uint8Array(await answer.arrayBuffer());
		if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes.buffer;
		const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
		return await new Response(stream).arrayBuffer();
	} catch (error) {
		throw new Error(word("no_network", { file: name, error: error.message }));
	}
}

async function load_module(name) {
	const url = URL.createObjectURL(new Blob([await load(name)], { type: "text/javascript" }));
	return import(url);
}

async function load_all(names) {
	const entries = Object.entries(names ?? {}).map(async ([name, file]) => [name, await load(file)]);
	return Object.fromEntries(await Promise.all(entries));
}

// What is needed when something ends, or is dropped, so that nothing more comes from the network.
async function keep_the_rest() {
	const files = ({ image, disks, files }) => [image, ...Object.values(disks ?? {}), ...Object.values(files ?? {})];
	const latest = Object.values(site.kernels.at(-1).files ?? {});
	await Promise.allSettled([...files(kernel), ...Object.values(site.firmware), ...latest].map(load));
	note("kept");
}

// ---- the terminal ----

function make_terminal(Terminal) {
	const terminal = new Terminal({ cols: COLUMNS, rows: ROWS, convertEol: true, screenReaderMode: true,
		fontFamily: "ui-monospace, 'DejaVu Sans Mono', monospace", fontSize: font_size(), theme: { background: "#000000" } });
	terminal.open(by_id("terminal"));
	terminal.onData((keys) => emulator && type(emulator, keys));
	terminal.attachCustomKeyEventHandler((event) => !leaves(event));
	addEventListener("resize", () => { terminal.options.fontSize = font_size(); });
	return terminal;
}

// Tab is the shell's. Shift+Tab, and Escape before Tab, are ways out for those who have no mouse.
let key_before = "";

function leaves(event) {
	const out = event.key === "Tab" && (event.shiftKey || key_before === "Escape");
	if (event.type === "keydown" && event.key !== "Shift" && !out) key_before = event.key;
	return out;
}

// So that 80 columns fit, down to what one can still read.
function font_size() {
	const width = by_id("terminal").parentElement.clientWidth - 16;
	return Math.max(7, Math.min(15, Math.floor(width / COLUMNS / 0.61)));
}

function hear(byte) {
	libraries.terminal.write(Uint8Array.of(byte));
	said = (said + String.fromCharCode(byte)).slice(-20000);
	last_byte = performance.now();
	if (is_prompt(said)) note("prompt");
}

// ---- what the page says ----

function say(sentence, kind = "") {
	by_id("status").textContent = sentence;
	by_id("status").className = kind;
}

function report(paragraphs) {
	word_list.replaceChildren(...paragraphs.map((text) => Object.assign(document.createElement("p"), { textContent: text })));
	word_list.hidden = !paragraphs.length;
}

// The names of functions: those of the page's own kernel are loaded when they are first needed. An
// end has its words without them, too.
async function names() {
	try {
		symbols ??= symbols_of(await load(kernel.image));
	} catch {
		return [];
	}
	return symbols;
}

async function ended(how) {
	clearInterval(watcher);
	const now = place(emulator), mine = emulator;
	const [first, ...rest] = why_ended(word, how, said, now, await names());
	if (mine !== emulator) return;
	say(first, how.kind === "exit" && how.status === 0 ? "" : "bad");
	report(rest);
	note("ended");
}

// Looks at the processor a few times, while it runs.
async function where() {
	const mine = emulator, places = [];
	if (!mine?.is_running()) return;
	const functions = await names();
	for (let i = 0; i < LOOKS; i++) {
		places.push(place(mine));
		await new Promise((done) => setTimeout(done, BETWEEN_MS));
	}
	if (mine !== emulator) return;
	const [first, ...rest] = where_it_is(word, places, functions);
	say(first, "bad");
	report(rest);
	note("where");
}

// A machine that says nothing and has no prompt: halted for good is seen at once.
function watch() {
	clearInterval(watcher);
	watcher = setInterval(() => {
		const silent = (performance.now() - last_byte) / 1000;
		if (!emulator?.is_running() || is_prompt(said) || silent < 2) return;
		const now = place(emulator);
		if (now.halted && !now.interrupts) {
			clearInterval(watcher);
			where();
		} else if (silent > SILENT_S && said) {
			clearInterval(watcher);
			say(word("silent", { seconds: SILENT_S }), "bad");
			note("silent");
		}
	}, 1000);
}

// ---- starting ----

async function run(options, what, before = "") {
	const mine = ++generation;
	if (emulator) {
		const old = emulator;
		emulator = null;
		await old.destroy();
	}
	for (const key of Object.keys(times)) if (key !== "ready") delete times[key];
	libraries.terminal.reset();
	report([]);
	said = before;
	last_byte = performance.now();
	if (mine !== generation) return;
	await start(libraries.V86, { memory: site.memory, engine: libraries.engine, screen: by_id("screen"), ...options }, {
		ready: (machine) => {
			emulator = globalThis.emulator = machine;
			if (before) libraries.terminal.write(before, () => note("prompt"));
		},
		said: hear, ended: (how) => { ended(how).catch(failed); },
	});
	say(word("running", { what }));
	note("started");
	watch();
}

const settings = () => ({ seed: "2010", rows: String(ROWS), columns: String(COLUMNS) });

async function from_prompt() {
	say(word("loading", { what: word("this_kernel") }));
	symbols = null;
	if (!kernel.state) {
		await from_power_on();
		return;
	}
	const sizes = Object.fromEntries(Object.entries(kernel.sizes).map(([name, size]) => [name, new ArrayBuffer(size)]));
	await run({ ...sizes, state: await load(kernel.state) }, word("this_kernel"), kernel.said);
}

async function from_power_on() {
	const [image, firmware, disks, files] = await Promise.all([load(kernel.image), load_all(site.firmware),
		load_all(kernel.disks), load_all(kernel.files)]);
	symbols = symbols_of(image);
	await run({ hda: image, ...firmware, ...disks, files: { ...settings(), ...files } }, word("this_kernel"));
	if (!kernel.state) report([word("no_prompt")]);
}

// Files that were dropped: a boot disk or a kernel, names for it, drives. Without a kernel among them
// the page's own gets the drives.
async function own(list) {
	const notes = [], drives = {};
	const chosen = { boot: null, kernel: null };
	for (const file of list) {
		const say_of = (key, more = {}) => notes.push(word(key, { file: file.name, ...more }));
		if (file.size > DISK_LIMIT) {
			say_of("too_large", { size: file.size >> 20, limit: DISK_LIMIT >> 20 });
			continue;
		}
		const bytes = await file.arrayBuffer();
		const found = recognise(bytes);
		if (found.kind === "bad") say_of(found.why);
		else if (found.kind !== "disk") chosen[found.kind] = { name: file.name, bytes };
		else {
			const drive = DRIVES.find((name) => !drives[name]);
			if (drive) drives[drive] = bytes;
			say_of(drive ? "drive" : "too_many", { drive });
		}
	}
	if (!chosen.boot && !chosen.kernel && !Object.keys(drives).length) {
		say(notes[0], "bad");
		report(notes.slice(1));
		note("refused");
		return;
	}
	await run_own(chosen, drives);
	report(notes);
}

async function run_own({ boot, kernel: elf }, drives) {
	const what = (boot ?? elf)?.name ?? word("this_kernel");
	say(word("loading", { what }));
	const latest = site.kernels.at(-1);
	const [firmware, files, disks] = await Promise.all([load_all(site.firmware), load_all(latest.files), load_all(kernel.disks)]);
	const named = elf ?? boot;
	symbols = named ? symbols_of(named.bytes) : null;
	const first = boot ? { hda: boot.bytes } : elf ? { multiboot: elf.bytes } : { hda: await load(kernel.image) };
	await run({ ...firmware, ...disks, ...drives, ...first, files: { ...settings(), ...files } }, what);
}

// ---- the page itself ----

const failed = (error) => { say(error.message, "bad"); note("failed"); };
const on = (id, event, action) => by_id(id).addEventListener(event, (happened) => Promise.resolve(action(happened)).catch(failed));

function prepare_text() {
	for (const line of document.querySelectorAll("#text [data-command]"))
		line.addEventListener("click", () => {
			if (!emulator) return;
			type(emulator, line.dataset.command + "\n");
			libraries.terminal.focus();
			by_id("terminal").scrollIntoView({ block: "nearest" });	// what is not seen is not drawn
		});
}

// A handout or a deck is loaded when it is opened.
function prepare_books() {
	for (const each of document.querySelectorAll(".book"))
		each.addEventListener("toggle", () => {
			if (each.open && !each.querySelector("iframe"))
				each.append(Object.assign(document.createElement("iframe"), { src: each.dataset.src, title: each.dataset.title }));
		});
}

function prepare_drop() {
	addEventListener("dragover", (event) => { event.preventDefault(); document.body.classList.add("drop"); });
	addEventListener("dragleave", () => document.body.classList.remove("drop"));
	addEventListener("drop", (event) => {
		event.preventDefault();
		document.body.classList.remove("drop");
		if (event.dataTransfer.files.length) own([...event.dataTransfer.files]).catch(failed);
	});
}

async function main() {
	const [description, engine, v86, xterm] = await Promise.all([load("site.json"), load("lib/v86.wasm.gz"),
		load_module("lib/libv86.mjs.gz"), load_module("lib/xterm.mjs.gz")]);
	site = JSON.parse(new TextDecoder().decode(description));
	kernel = site.kernels.find((each) => each.name === NAME);
	libraries = { V86: v86.V86, engine, terminal: make_terminal(xterm.Terminal) };
	prepare_text();
	prepare_books();
	prepare_drop();
	on("again", "click", from_prompt);
	on("power", "click", from_power_on);
	on("where", "click", where);
	on("own", "change", (event) => own([...event.target.files]));
	on("screen", "focus", () => emulator?.keyboard_set_enabled(true));
	by_id("screen").addEventListener("keydown", (event) => leaves(event) && emulator?.keyboard_set_enabled(false), true);
	on("screen", "blur", () => emulator?.keyboard_set_enabled(false));
	note("ready");
	await from_prompt();
	await new Promise((shown) => libraries.terminal.write("", shown));	// the prompt is first
	await keep_the_rest();
}

main().catch(failed);
