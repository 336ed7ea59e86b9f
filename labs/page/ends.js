// Why a machine has ended, or does not go on, in words: functions of what was seen, without a page.
import { describe } from "./images.js";

const PANIC_STATUS = 63;	// kernel/cpu/machine.h
const ONE_MIB = 0x100000;
const UNWRITTEN = /exercise (S?\d+(?:\.\d+)?) is not written yet[^\r\n]*/;

// The paragraphs for an end: { kind, status } of machine.js, what was said, the place of machine.js.
export function why_ended(word, { kind, status }, said, place, symbols) {
	const unwritten = UNWRITTEN.exec(said);
	if (unwritten) return [word("unwritten", { line: unwritten[0], exercise: unwritten[1] })];
	if (kind === "fault") return why_fault(word, place, symbols);
	if (kind === "reset") return [word("reset")];
	const panics = [...said.matchAll(/^PANIC: ([^\r\n]*)/gm)];
	if (status === PANIC_STATUS || (status !== 0 && panics.length))
		return [word("panic", { line: panics.at(-1)?.[1] ?? "?" })];
	return [status === 0 ? word("exit_0") : word("exit", { status })];
}

function why_fault(word, place, symbols) {
	const hex = (number) => `0x${number.toString(16).padStart(8, "0")}`;
	const lines = [word("fault", { place: describe(place.eip, symbols) }),
		word("fault_control", { cr2: hex(place.cr2), cr3: hex(place.cr3) }), ...trace(word, place, symbols)];
	return [...lines, word(place.eip < ONE_MIB ? "fault_boot" : "fault_causes"), ...no_symbols(word, place, symbols)];
}

function trace(word, { callers }, symbols) {
	return callers.length ? [`${word("callers")} ${callers.map((each) => describe(each, symbols, true)).join(", ")}`] : [];
}

function no_symbols(word, place, symbols) {
	return symbols.length || place.eip < ONE_MIB ? [] : [word("no_symbols")];
}

// What the processor does, by several looks at it (places of machine.js, the last one last).
export function where_it_is(word, places, symbols) {
	const last = places.at(-1);
	const at = describe(last.eip, symbols);
	const more = [...trace(word, last, symbols), ...no_symbols(word, last, symbols)];
	if (places.every((each) => each.halted))
		return [word(last.interrupts ? "idle" : "halted", { place: at }), ...more];
	const names = [...new Set(places.filter((each) => !each.halted).map((each) => describe(each.eip, symbols)))];
	return [word("loops", { places: names.slice(0, 8).join(", ") }), ...more];
}
