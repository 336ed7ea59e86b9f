/*
 * The second stage's 32-bit half: finds memory, reads the kernel from the disk, places its segments
 * and hands over as a Multiboot loader does (Multiboot 0.6.96, sections 3.2 and 3.3).
 *
 * It runs in protected mode without paging, with interrupts disabled: pointers are physical
 * addresses. Only the BIOS knows the disk and the memory, and it is 16-bit code that sees the first
 * MiB. So bios_call goes back to real mode for a moment, data arrives in a low buffer, and is
 * copied up:
 *
 *	0x00007c00	boot sector (done)
 *	0x00008000	this code, its data and its stack, up to 0xfff0
 *	0x00010000	BOUNCE: the BIOS reads up to 127 sectors here
 *	0x00100000	the kernel's segments, by their physical addresses
 *	...
 *	end - size	the kernel's file: as high as memory goes, out of the way of its segments
 *
 * Nothing is allocated and nothing returns: every failure prints a sentence and ends the run.
 */
#include <stdbool.h>

#include "boot/load_elf.h"
#include "kernel/lib/multiboot.h"
#include "kernel/cpu/io.h"
#include "kernel/cpu/machine.h"
#include "kernel/cpu/memory_layout.h"
#include "kernel/cpu/pc.h"

/* The build gives KERNEL_LBA and KERNEL_BYTES, where the kernel's ELF file is on the disk,
 * KERNEL_SUM, the sum of its 32-bit words, and SECTORS_PER_READ. */
#define KERNEL_SECTORS ((KERNEL_BYTES + 511u) / 512u)

#define BOUNCE		   0x10000u /* BIOS reads end here: one whole 64 KiB segment */
#define MEMORY_MAP_ENTRIES 64
#define SMAP		   0x534d4150u /* "SMAP": in the calls that ask for memory */

#define CARRY 1u

_Static_assert(SECTORS_PER_READ >= 1 && SECTORS_PER_READ <= 127,
	       "every BIOS reads 127 sectors in one call, and BOUNCE holds no more");

/* In and out of a BIOS call, as POPAD and POPF take them (boot/stage2.asm). */
struct bios_registers {
	uint32_t edi, esi, ebp, esp_ignored, ebx, edx, ecx, eax;
	uint16_t flags;
};

/* The packet of an extended read: Enhanced Disk Drive specification 3.0. */
struct disk_packet {
	uint8_t size;
	uint8_t zero;
	uint16_t count; /* the BIOS writes back how many sectors it read */
	uint16_t offset;
	uint16_t segment;
	uint64_t lba;
};

void bios_call(uint8_t vector, struct bios_registers *registers);
void jump_to_kernel(uint32_t entry, uint32_t magic, const void *information)
    __attribute__((noreturn));
void loader_main(uint32_t boot_drive);

/* Static rather than on the stack: the BIOS must be able to reach them, so they are below 64 KiB.
 */
static struct bios_registers registers;
static struct disk_packet packet;
static struct multiboot_info information;
static struct multiboot_mmap_entry memory_map[MEMORY_MAP_ENTRIES];
static uint32_t memory_map_entries;

/* --- messages, on the serial line and on the screen --- */

/* COM1, as the BIOS left it: a port that never becomes ready costs a bounded wait. And INT 10h,
 * function 0Eh: teletype output, in light grey. */
static void put(char character)
{
	for (unsigned tries = 0; tries < 0x10000 && !(in8(SERIAL_LINE_STATUS) & SERIAL_CAN_SEND);
	     tries++)
		;
	out8(SERIAL_PORT, character);
	registers = (struct bios_registers){ .eax = 0x0e00 | (uint8_t)character, .ebx = 7 };
	bios_call(0x10, &registers);
}

static void print(const char *text)
{
	for (; *text; text++) {
		if (*text == '\n')
			put('\r');
		put(*text);
	}
}

/* Decimal, built from the last digit to the first. */
static void print_number(uint32_t value)
{
	char digits[11];
	char *first = digits + sizeof(digits) - 1;

	*first = '\0';
	do
		*--first = '0' + value % 10;
	while (value /= 10);
	print(first);
}

/* Prints the reason, and ends the run. */
static void __attribute__((noreturn)) give_up(const char *reason)
{
	print("\nboot: ");
	print(reason);
	print("\nboot: stopped\n");
	machine_exit(EXIT_BOOT_FAILED);
}

/* --- the A20 gate ---
 *
 * The 8086 wrapped addresses above 1 MiB to 0, and programs relied on it. The AT got a gate on
 * address line 20, shut after power-on, which makes it wrap again. Most firmware has opened it by
 * now; otherwise the BIOS is asked to.
 */

/* A word of memory. The compiler must not know the address: it takes the first page for a null
 * pointer's. */
static volatile uint32_t *word_at(uint32_t address)
{
	__asm__("" : "+r"(address));
	return (volatile uint32_t *)address;
}

/* With the gate shut, address 1 MiB + x is x again. */
static bool a20_is_open(void)
{
	volatile uint32_t *low = word_at(0x500), *high = word_at(0x100500);
	uint32_t saved_low = *low, saved_high = *high;

	*low = 0x13579bdf;
	*high = 0x2468ace0;
	bool open = *low == 0x13579bdf;

	*high = saved_high;
	*low = saved_low;
	return open;
}

/* INT 15h, function 2401h. Firmware that does not know the function leaves the gate shut. */
static void open_a20(void)
{
	registers = (struct bios_registers){ .eax = 0x2401 };
	bios_call(0x15, &registers);
	if (!a20_is_open())
		give_up("the A20 gate stays shut: every second megabyte is out of reach");
}

/* --- memory --- */

/* INT 15h, E820: one entry for each call. EBX says which, 0 for the first, and is 0 again after the
 * last one. */
static void find_memory(void)
{
	uint32_t next = 0;

	do {
		struct multiboot_mmap_entry *entry = &memory_map[memory_map_entries];

		registers = (struct bios_registers){ .eax = 0xe820,
						     .ebx = next,
						     .ecx = 20,
						     .edx = SMAP,
						     .edi = (uint32_t)&entry->base };
		bios_call(0x15, &registers);
		if ((registers.flags & CARRY) || registers.eax != SMAP)
			break;
		entry->size = sizeof(*entry) - sizeof(entry->size);
		next = registers.ebx;
	} while (++memory_map_entries < MEMORY_MAP_ENTRIES && next != 0);
	if (memory_map_entries == 0)
		give_up("the BIOS does not tell where memory is (INT 15h, E820)");
}

/* The end of the usable range that contains 1 MiB: the kernel and its file must fit into it. */
static uint32_t end_of_memory(void)
{
	for (unsigned i = 0; i < memory_map_entries; i++) {
		struct multiboot_mmap_entry *entry = &memory_map[i];
		uint64_t end = entry->base + entry->length;

		if (entry->type == MULTIBOOT_MEMORY_AVAILABLE && entry->base <= LOAD_ADDRESS &&
		    end > LOAD_ADDRESS)
			return end > 0xfffff000u ? 0xfffff000u : (uint32_t)end;
	}
	give_up("there is no memory at 1 MiB");
}

/* --- the disk --- */

/* Reads count sectors to BOUNCE, or gives up: INT 13h, function 42h. A BIOS that reads less than it
 * was asked for may still clear the carry flag. There is no second try: the boot sector has read
 * from this drive, so it is ready. */
static void read_sectors(uint8_t drive, uint32_t lba, uint16_t count)
{
	packet = (struct disk_packet){
		.size = sizeof(packet), .count = count, .segment = BOUNCE >> 4, .lba = lba
	};
	registers =
	    (struct bios_registers){ .eax = 0x4200, .edx = drive, .esi = (uint32_t)&packet };
	bios_call(0x13, &registers);
	if (!(registers.flags & CARRY) && packet.count == count)
		return;
	print("\nboot: reading the kernel, at LBA ");
	print_number(lba);
	give_up("the disk ends too early or cannot be read; make the image again");
}

/* Four bytes at a time: sectors and both buffers are multiples of four. noipa: it is measured with
 * many SECTORS_PER_READ, and a compiler would make another loop for some of these constants. */
static __attribute__((noipa)) void copy(uint32_t *to, const uint32_t *from, uint32_t words)
{
	while (words--)
		*to++ = *from++;
}

static void read_file(uint8_t drive, uint32_t lba, uint32_t sectors, uint8_t *to)
{
	while (sectors > 0) {
		uint16_t count = sectors < SECTORS_PER_READ ? sectors : SECTORS_PER_READ;

		read_sectors(drive, lba, count);
		copy((uint32_t *)to, (uint32_t *)BOUNCE, count * 128u);
		lba += count;
		sectors -= count;
		to += count * 512u;
	}
}

static uint32_t sum_of_words(const uint32_t *words, uint32_t count)
{
	uint32_t sum = 0;

	while (count--)
		sum += *words++;
	return sum;
}

/* Reads the kernel's file to the end of memory, out of the way of its own segments. */
static uint8_t *read_kernel(uint8_t drive, uint32_t memory_end)
{
	uint32_t size = KERNEL_SECTORS * 512u;

	if (memory_end - LOAD_ADDRESS < 2 * size)
		give_up("there is not enough memory for the kernel");
	uint8_t *file = (uint8_t *)((memory_end - size) & ~(PAGE_SIZE - 1));

	read_file(drive, KERNEL_LBA, KERNEL_SECTORS, file);
	if (sum_of_words((uint32_t *)file, KERNEL_SECTORS * 128u) != KERNEL_SUM)
		give_up("the kernel on this disk is damaged or cut short (its sum is wrong); "
			"make the image again");
	return file;
}

/* --- the hand-over --- */

/* The order matters: above 1 MiB nothing is reliable until A20 is open, and where the file may go
 * is known only after the memory is. The kernel is told the memory map, which says more than
 * mem_lower and mem_upper do. */
void loader_main(uint32_t boot_drive)
{
	static const char name[] = "Apprentice boot";
	uint32_t entry = 0;

	print("Apprentice boot: kernel of ");
	print_number(KERNEL_BYTES);
	print(" bytes at LBA ");
	print_number(KERNEL_LBA);
	print("\n");
	open_a20();
	find_memory();
	uint8_t *file = read_kernel(boot_drive, end_of_memory());
	struct load_area area = { .start = LOAD_ADDRESS, .end = (uint32_t)file };
	const char *wrong = load_elf(file, KERNEL_BYTES, &area, &entry);

	if (wrong || !entry)
		give_up(wrong ? wrong : "load_elf gave no entry point");
	information = (struct multiboot_info){
		.flags = MULTIBOOT_MEMORY_MAP | MULTIBOOT_LOADER_NAME,
		.mmap_length = memory_map_entries * sizeof(memory_map[0]),
		.mmap_addr = (uint32_t)memory_map,
		.boot_loader_name = (uint32_t)name,
	};
	jump_to_kernel(entry, MULTIBOOT_BOOTLOADER_MAGIC, &information);
}
