// One PC: v86, with what this project's kernel wants from QEMU. For the page, and for Node.
//
// Of v86 0.5.462 this uses names that are not in its public interface (v86.d.ts): PRIVATE, below.
// The version is pinned in package.json, and a test looks for each of these names.

const PREFIX = "opt/org.apprentice/";	// labs/tools/machine/qemu_command.py
const EXIT_PORT = 0xf4, EXIT_FIRST = 0x10;	// kernel/cpu/machine.h
const TICK_MS = 1000;	// a machine that has ended asks no sooner for another turn
const text = new TextEncoder();

export const PRIVATE = ["cpu.option_roms", "cpu.io.register_write", "cpu.devices.ide", "cpu.main_loop",
	"cpu.reboot_internal", "cpu.instruction_pointer", "cpu.reg32", "cpu.cr", "cpu.in_hlt", "cpu.get_eflags"];

// The files that the kernel finds through fw_cfg, by name: texts or bytes. SeaBIOS would wait 2.5 s
// for a key that chooses what to boot.
function give_files(cpu, files) {
	const all = { "etc/show-boot-menu": new Uint8Array(2) };
	for (const [name, value] of Object.entries(files)) all[PREFIX + name] = value;
	for (const [name, value] of Object.entries(all))
		cpu.option_roms.push({ name, data: typeof value === "string" ? text.encode(value) : new Uint8Array(value) });
}

// hdc and hdd, for which v86 has no option: they take the place of its CD drive.
function give_drives(cpu, hdc, hdd) {
	const { primary, secondary } = cpu.devices.ide;
	const Drive = primary.master.constructor, Disk = primary.master.buffer.constructor;
	secondary.master = new Drive(secondary, 0, hdc && new Disk(hdc), false);
	secondary.slave = new Drive(secondary, 1, hdd && new Disk(hdd), false);
	secondary.current_interface = secondary.master;
}

// Two faults of v86's drives. Word 49 of IDENTIFY does not say that they have DMA. And WRITE MULTIPLE
// goes on sector by sector after its first block: that is an interrupt in the middle of the kernel's
// REP OUTSW, and v86 then loses its place (a write of more than 16 + 1 sectors).
function mend_drives(cpu) {
	const { ide } = cpu.devices;
	if (!ide.primary) return;
	const drive = ide.primary.master.constructor.prototype;
	if (drive.is_mended) return;
	const { create_identify_packet, write_end } = drive;
	const WRITE_MULTIPLE = [0xc5, 0x39], READY_WANTS_DATA = 0x58;
	drive.is_mended = true;
	drive.create_identify_packet = function () {
		create_identify_packet.call(this);
		if (!this.is_atapi) this.data[49 * 2 + 1] |= 1;
	};
	drive.write_end = function () {
		if (!WRITE_MULTIPLE.includes(this.current_command) || this.data_pointer >= this.data_length)
			return write_end.call(this);
		this.status_reg = READY_WANTS_DATA;
		this.data_end = Math.min(this.data_end + this.sectors_per_drq * 512, this.data_length);
		return this.push_irq();
	};
}

// Starts a machine, and returns v86's emulator.
//
// options: engine (v86.wasm's bytes), memory (MiB), bios, vga_bios, hda to hdd, multiboot, state
// (ArrayBuffers; all but engine and memory may be missing), files (for fw_cfg), screen (an element).
// A state brings the contents of its drives: hda to hdd only say how large they are.
// events: ready(emulator), before its first instruction; said(byte); ended({ kind, status }), once at most. kind is "exit", with the status that the
// kernel gave, "reset", or "fault": an exception could not be delivered.
export async function start(V86, options, events) {
	const disk = (bytes) => bytes && { buffer: bytes };
	const emulator = new V86({
		wasm_fn: async (imports) => (await WebAssembly.instantiate(options.engine, imports)).instance.exports,
		memory_size: options.memory << 20, vga_memory_size: 1 << 20,
		bios: disk(options.bios), vga_bios: disk(options.vga_bios),
		hda: disk(options.hda), hdb: disk(options.hdb), multiboot: disk(options.multiboot),
		screen: { container: options.screen ?? null },
		disable_mouse: true, disable_speaker: true, disable_keyboard: !options.screen,
	});
	await new Promise((done) => emulator.add_listener("emulator-loaded", done));
	emulator.add_listener("serial0-output-byte", events.said);
	if (options.screen) emulator.keyboard_set_enabled(false);

	const { cpu } = emulator.v86;
	let is_over = false;
	const end = (how) => {
		if (is_over) return;
		is_over = true;
		emulator.stop();
		events.ended(how);
	};
	const { main_loop } = cpu;
	// v86 has no triple fault: it calls itself until JavaScript gives up.
	cpu.main_loop = () => {
		try {
			return is_over ? TICK_MS : main_loop();
		} catch (error) {
			end({ kind: "fault", error });
			return TICK_MS;
		}
	};
	cpu.reboot_internal = () => end({ kind: "reset" });
	cpu.io.register_write(EXIT_PORT, null, (value) => end({ kind: "exit", status: value - EXIT_FIRST }));
	give_files(cpu, options.files ?? {});
	if (options.hdc) give_drives(cpu, options.hdc, options.hdd);
	mend_drives(cpu);
	if (options.state) await emulator.restore_state(options.state);
	events.ready?.(emulator);
	emulator.run();
	return emulator;
}

// Keys, for the serial line.
export function type(emulator, keys) {
	emulator.serial_send_bytes(0, text.encode(keys));
}

// Does what was said end with a prompt? The shell asks where the cursor is after its own.
export function is_prompt(said) {
	return /[#>] (\x1b\[6n)?$/.test(said);
}

// ---- where the processor is -----------------------------------------------------------------

const PAGING = 0x80000000, PRESENT = 1, LARGE = 0x80, INTERRUPTS = 0x200, EBP = 5, FRAMES = 12;

// The physical address of a linear one, by the page tables; -1 where no page is.
function physical(emulator, address) {
	const { cr } = emulator.v86.cpu;
	if (!(cr[0] & PAGING)) return address;
	const entry_of = (table, number) => word_at(emulator, (table & ~0xfff) + 4 * number);
	const directory = entry_of(cr[3], address >>> 22);
	if (!(directory & PRESENT)) return -1;
	if (directory & LARGE) return ((directory & 0xffc00000) | (address & 0x3fffff)) >>> 0;
	const page = entry_of(directory, (address >>> 12) & 0x3ff);
	return page & PRESENT ? ((page & ~0xfff) | (address & 0xfff)) >>> 0 : -1;
}

// A word of physical memory; 0 where there is none.
function word_at(emulator, address) {
	const bytes = emulator.read_memory(address >>> 0, 4);
	return bytes?.length === 4 ? new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true) : 0;
}

// Where the processor is: eip, cr2, cr3, halted, interrupts (can one come?), and the addresses to
// which its callers return, by the chain of saved EBP, innermost first.
export function place(emulator) {
	const { cpu } = emulator.v86;
	const callers = [];
	for (let frame = cpu.reg32[EBP] >>> 0; frame && callers.length < FRAMES;) {
		const [saved, back] = [physical(emulator, frame), physical(emulator, frame + 4)];
		if (saved < 0 || back < 0) break;
		const [above, caller] = [word_at(emulator, saved), word_at(emulator, back)];
		if (!caller) break;
		callers.push(caller);
		if (above <= frame) break;
		frame = above;
	}
	return { eip: cpu.instruction_pointer[0] >>> 0, cr2: cpu.cr[2] >>> 0, cr3: cpu.cr[3] >>> 0, callers,
		halted: Boolean(cpu.in_hlt[0]), interrupts: Boolean(cpu.get_eflags() & INTERRUPTS) };
}
