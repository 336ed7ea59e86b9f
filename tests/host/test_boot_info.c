/* kernel/report/boot_info.c: the Multiboot data, where memory can lie at 3 GiB. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kernel/lib/multiboot.h"
#include "kernel/report/boot_info.h"
#include "kernel/cpu/memory_layout.h"
#include "tests/host/unit.h"

#ifdef __i386__

#define INFORMATION 0x1000u /* physical addresses */
#define MAP	    0x2000u
#define LINE	    0x3000u
#define LOW_MEMORY  0x4000u

static struct multiboot_info *information;

static void lay_out_memory(void)
{
	void *memory = mmap((void *)KERNEL_BASE, LOW_MEMORY, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	REQUIRE(memory == (void *)KERNEL_BASE, "no memory at 3 GiB in this process");
	information = direct_map(INFORMATION);
}

/* An entry with `extra` bytes behind it. Returns the address of the next one. */
static uint32_t put_entry(uint32_t at, uint32_t size, uint64_t base, uint32_t type)
{
	struct multiboot_mmap_entry *entry = direct_map(at);

	*entry = (struct multiboot_mmap_entry){ size, base, 0x1000, type };
	return at + size + 4;
}

static void read_information(void *magic)
{
	memset(&boot_info, 0, sizeof(boot_info));
	boot_info_read(*(uint32_t *)magic, INFORMATION);
}

static const char *read_panic(uint32_t magic)
{
	return unit_panic_of(read_information, &magic);
}

static void require_panic(uint32_t magic, const char *words)
{
	const char *message = read_panic(magic);

	REQUIRE(message && strstr(message, words), "the panic says '%s', not '%s'", message, words);
}

static void test_entries(void)
{
	uint32_t at = MAP;

	at = put_entry(at, 20, 0x5000, 2);
	at = put_entry(at, 24, 0x100000, 1); /* as BIOSes of ACPI 3.0 give them */
	at = put_entry(at, 20, 0xffffffff00000000, 3);
	*information = (struct multiboot_info){ .flags = MULTIBOOT_MEMORY_MAP | MULTIBOOT_MEMORY,
						.mem_upper = 1,
						.mmap_addr = MAP,
						.mmap_length = at - MAP };
	REQUIRE(!read_panic(MULTIBOOT_BOOTLOADER_MAGIC), "a panic");
	REQUIRE(boot_info.range_count == 3, "%u ranges", boot_info.range_count);
	REQUIRE(boot_info.ranges[1].base == 0x100000 && boot_info.ranges[1].type == 1, "range 1");
	REQUIRE(boot_info.ranges[2].base == 0xffffffff00000000 && boot_info.ranges[2].type == 3,
		"range 2");
	information->mmap_length--;
	REQUIRE(!read_panic(MULTIBOOT_BOOTLOADER_MAGIC), "a panic");
	REQUIRE(boot_info.range_count == 2, "a cut entry was believed");
}

/* A loader's map may be anything; reading it ends, and stays inside the array. */
static void test_strange_maps(void)
{
	static const uint32_t sizes[] = {
		0xfffffffc, 0xffffffff, 0xffffffe8, 0, 1, 16, 0x80000000
	};

	*information = (struct multiboot_info){ .flags = MULTIBOOT_MEMORY_MAP,
						.mmap_addr = MAP,
						.mmap_length = 0x1000 };
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		put_entry(MAP, sizes[i], 0x100000, 1);
		REQUIRE(!read_panic(MULTIBOOT_BOOTLOADER_MAGIC), "a panic");
		REQUIRE(boot_info.range_count >= 1 && boot_info.ranges[0].base == 0x100000,
			"size %#x: %u ranges", sizes[i], boot_info.range_count);
	}
	for (uint32_t at = MAP; at + 24 <= MAP + 0x1000;)
		at = put_entry(at, 20, at, 1);
	REQUIRE(!read_panic(MULTIBOOT_BOOTLOADER_MAGIC), "a panic");
	REQUIRE(boot_info.range_count == BOOT_MEMORY_RANGES, "%u ranges", boot_info.range_count);
}

static void test_texts(void)
{
	char *line = direct_map(LINE);

	memset(line, 'x', 0x1000);
	line[0xfff] = '\0';
	*information = (struct multiboot_info){ .flags = MULTIBOOT_MEMORY | MULTIBOOT_LOADER_NAME,
						.mem_upper = 0xffffffff,
						.boot_loader_name = LINE };
	REQUIRE(!read_panic(MULTIBOOT_BOOTLOADER_MAGIC), "a panic");
	REQUIRE(strlen(boot_info.loader) == sizeof(boot_info.loader) - 1, "the loader's name");
	REQUIRE(boot_info.range_count == 1 && boot_info.ranges[0].base == 0x100000 &&
		    boot_info.ranges[0].length == 0xffffffffull * 1024,
		"the memory that mem_upper tells");
}

static void test_read(struct random *random, uint32_t rounds)
{
	(void)random, (void)rounds;
	lay_out_memory();
	test_entries();
	test_strange_maps();
	test_texts();
	require_panic(0x12345678, "EAX was 0x12345678");
	information->flags = 0;
	require_panic(MULTIBOOT_BOOTLOADER_MAGIC, "describes no memory");
}

#endif

const struct unit_test boot_info_tests[] = {
#ifdef __i386__
	{ "boot_info_read", test_read },
#endif
	{ NULL, NULL },
};
