// What a file is that somebody drops: a disk that boots, a kernel, or another disk; and the names of
// a kernel's functions, where the file has them.

const SECTOR = 512, EXT_MAGIC = 1024 + 0x38, KERNEL_LBA = 64;	// KERNEL_LBA: Makefile
const MULTIBOOT = 0x1badb002, MULTIBOOT_BYTES = 8192, BY_ADDRESS = 1 << 16;
const FUNCTION = 2, SYMTAB = 2;
const latin = new TextDecoder("latin1");

function is_elf(bytes) {
	return bytes.byteLength >= 52 && new DataView(bytes).getUint32(0) === 0x7f454c46;
}

// { kind: "kernel", "boot" or "disk" }, or { kind: "bad", why: a key of words.toml }. A file without
// a boot sector's mark is taken for another disk if it has an ext file system or no code at all in
// its first sector.
export function recognise(bytes) {
	if (is_elf(bytes)) return problem_of_kernel(bytes) ?? { kind: "kernel" };
	if (bytes.byteLength < SECTOR) return { kind: "bad", why: "too_short" };
	const view = new DataView(bytes);
	if (view.getUint16(SECTOR - 2) === 0x55aa && view.getUint8(0)) return { kind: "boot" };
	const has_ext = bytes.byteLength > EXT_MAGIC + 1 && view.getUint16(EXT_MAGIC, true) === 0xef53;
	const is_empty = new Uint8Array(bytes, 0, SECTOR).every((byte) => byte === 0);
	return has_ext || is_empty ? { kind: "disk" } : { kind: "bad", why: "no_boot_mark" };
}

// A kernel that no loader would take; null if one would. v86 says nothing then.
function problem_of_kernel(bytes) {
	const view = new DataView(bytes);
	if (view.getUint8(4) !== 1 || view.getUint16(18, true) !== 3) return { kind: "bad", why: "not_i386" };
	let found = null;
	for (let at = 0; at + 12 <= bytes.byteLength && at + 12 <= MULTIBOOT_BYTES; at += 4) {
		const [magic, flags, sum] = [0, 4, 8].map((more) => view.getUint32(at + more, true));
		if (magic !== MULTIBOOT) continue;
		if ((magic + flags + sum) >>> 0) found = { kind: "bad", why: "bad_checksum" };
		else if (flags & BY_ADDRESS) found = { kind: "bad", why: "by_address" };
		else return null;
	}
	return found ?? { kind: "bad", why: "no_header" };
}

// The functions of a kernel, [address, name] in rising order: of its ELF file, by the symbol table or
// by the one that the kernel itself carries; of a boot disk, by the kernel on it. [] where none are.
export function symbols_of(bytes) {
	const start = KERNEL_LBA * SECTOR;
	const elf = is_elf(bytes) ? bytes : bytes.byteLength > start ? bytes.slice(start) : null;
	if (!elf || !is_elf(elf)) return [];
	try {
		const sections = sections_of(elf);
		const found = from_table(elf, sections) ?? from_kernel(elf, sections) ?? [];
		return found.sort((one, other) => one[0] - other[0]);
	} catch (error) {
		if (error instanceof RangeError) return [];	// the file ends before its tables do
		throw error;
	}
}

function sections_of(elf) {
	const view = new DataView(elf);
	const [table, size, count, names] = [view.getUint32(32, true), ...[46, 48, 50].map((at) => view.getUint16(at, true))];
	const sections = Array.from({ length: count }, (_, number) => {
		const word = (at) => view.getUint32(table + number * size + at, true);
		return { name: word(0), type: word(4), address: word(12), offset: word(16), size: word(20), link: word(24) };
	});
	for (const each of sections) each.name = string_at(elf, sections[names].offset + each.name);
	return sections;
}

function string_at(elf, offset) {
	const bytes = new Uint8Array(elf, offset, Math.min(80, elf.byteLength - offset));
	const end = bytes.indexOf(0);
	return latin.decode(bytes.subarray(0, end < 0 ? bytes.length : end));
}

function from_table(elf, sections) {
	const table = sections.find((each) => each.type === SYMTAB);
	if (!table) return null;
	const view = new DataView(elf), names = sections[table.link].offset, pairs = [];
	for (let at = table.offset; at < table.offset + table.size; at += 16) {
		const kind = view.getUint8(at + 12) & 0xf, section = view.getUint16(at + 14, true);
		const is_label = kind === 0 && /text/.test(sections[section]?.name ?? "");	// of assembly
		const name = string_at(elf, names + view.getUint32(at, true));
		if (name && section && (kind === FUNCTION || is_label)) pairs.push([view.getUint32(at + 4, true), name]);
	}
	return pairs;
}

// kernel/report/symbols.h: pairs of an address and a pointer to a name.
function from_kernel(elf, sections) {
	const table = sections.find((each) => each.name === ".symbols");
	if (!table) return null;
	const view = new DataView(elf), pairs = [];
	for (let at = table.offset; at + 8 <= table.offset + table.size; at += 8) {
		const [address, pointer] = [view.getUint32(at, true), view.getUint32(at + 4, true)];
		const home = sections.find((each) => each.address && each.address <= pointer && pointer < each.address + each.size);
		if (address && home) pairs.push([address, string_at(elf, home.offset + pointer - home.address)]);
	}
	return pairs;
}

// An address with the function that it is in: "0xc0103f7b kmain+0x6b". Where a call returns to is
// after it, which may be in the next function: is_return looks one byte before.
export function describe(address, symbols, is_return = false) {
	const hex = `0x${(address >>> 0).toString(16).padStart(8, "0")}`;
	const wanted = (address >>> 0) - (is_return ? 1 : 0);
	let first = 0, end = symbols.length;
	while (first < end) {
		const probe = (first + end) >> 1;
		if (symbols[probe][0] <= wanted) first = probe + 1;
		else end = probe;
	}
	if (!first || address - symbols[first - 1][0] > 0x10000) return hex;
	return `${hex} ${symbols[first - 1][1]}+0x${(address - symbols[first - 1][0]).toString(16)}`;
}
