// A machine under Node counts its own time: import this before v86.
//
// v86 takes its time from performance.now(). Here an instruction takes NS nanoseconds, and a
// halted processor waits no longer than its next timer needs: what a machine does then depends on
// nothing that this computer does besides, and each run is the same.
const NS = 10, WRAP = 2 ** 32;
const LEAST = 0.1;	// milliseconds that a halted processor waits at a time: v86 may say 0
const BASE = Date.UTC(2026, 0, 1);	// labs/tools/machine/qemu_command.py: RTC_BASE

let cpu = null, last = 0, milliseconds = 0;

function now() {
	if (cpu) {
		const count = cpu.instruction_counter[0] >>> 0;
		milliseconds += ((count - last + WRAP) % WRAP) * NS / 1e6;
		last = count;
	}
	return milliseconds;
}

performance.now = now;
Date.now = () => BASE + Math.floor(now());

// The machine whose instructions count from now on; after each of its turns, turned() is called.
export function follow(emulator, turned) {
	cpu = emulator.v86.cpu;
	last = cpu.instruction_counter[0] >>> 0;
	const { main_loop } = cpu;
	cpu.main_loop = () => {
		const wait = main_loop();	// now() is called in it
		milliseconds += cpu.in_hlt[0] ? Math.max(wait, LEAST) : wait;
		turned();
		return 0;
	};
}
