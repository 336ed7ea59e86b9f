/* Bugs that the processor or a device takes part in. */
#include "drivers/disk/block.h"
#include "kernel/cpu/memory_layout.h"
#include "kernel/cpu/boot_memory.h"
#include "mm/page_alloc.h"
#include "tests/debugger/bugs/bug.h"

#define PLACE	       0xfc000000u /* where the kernel maps nothing */
#define WRITABLE       3u	   /* a present page that the kernel may write to */
#define DIRECTORY      (PLACE >> 22)
#define PHYSICAL(page) ((uintptr_t)(page) - KERNEL_BASE)

static uint32_t *view_table;
static uint32_t *view_of_page = (uint32_t *)PLACE;

static void map(void *page)
{
	if (!view_table) {
		view_table = page_alloc(0);
		for (unsigned i = 0; i < 1024; i++)
			view_table[i] = 0;
	}
	view_table[0] = PHYSICAL(page) | WRITABLE;
	kernel_page_directory[DIRECTORY] = PHYSICAL(view_table) | WRITABLE;
}

/* tlb: a page view_table's entry changes, and the processor still knows the old one. */
static CALLED void move_page(void *page)
{
	view_table[0] = PHYSICAL(page) | WRITABLE;
}

static void bug_tlb(void)
{
	uint32_t *old = page_alloc(0), *new = page_alloc(0);

	map(old);
	*old = 1;
	*new = 2;
	if (*(volatile uint32_t *)view_of_page != 1)
		panic("not mapped");
	move_page(new);
	bug_work();
	if (*(volatile uint32_t *)view_of_page != 2)
		panic("the old page is still seen");
	panic("the TLB was flushed by chance");
}

/* alias: a page is written through another address. */
static uint32_t *page_of_two;

static CALLED void write_through_view(void)
{
	view_of_page[3] = 9;
}

static void bug_alias(void)
{
	page_of_two = page_alloc(0);
	page_of_two[3] = 1;
	map(page_of_two);
	__asm__ volatile("invlpg (%0)" : : "r"(view_of_page) : "memory");
	write_through_view();
	bug_work();
	if (page_of_two[3] != 1)
		panic("the page has %u", page_of_two[3]);
}

/* dma: a drive gets the address of a page that belongs to somebody else. */
static uint32_t *names_page, *sector_buffer;

static CALLED void read_sector(void)
{
	block_read(block_first(), 0, 1, sector_buffer - 1024, BLOCK_DATA);
}

static void bug_dma(void)
{
	names_page = page_alloc(1);
	sector_buffer = names_page + 1024;
	names_page[0] = 0x11111111;
	read_sector();
	bug_work();
	if (names_page[0] != 0x11111111)
		panic("the names_page are %#x", names_page[0]);
}

/* stack: a stack of its own is too small_stack, and grows into the data below it. */
static struct {
	uint32_t magic[4];
	uint32_t stack[96];
} small_stack __attribute__((aligned(16)));

static CALLED uint32_t recurse(uint32_t depth)
{
	volatile uint32_t copy[4] = { depth, depth, depth, depth };

	return depth ? recurse(depth - 1) + copy[0] : 0;
}

static CALLED void run_on(uint32_t *top)
{
	__asm__ volatile("movl %%esp, %%ebx\n\tmovl %0, %%esp\n\tpushl $9\n\tcall *%1\n\t"
			 "movl %%ebx, %%esp"
			 :
			 : "r"(top), "r"(recurse)
			 : "ebx", "eax", "ecx", "edx", "memory", "cc");
}

static void bug_stack(void)
{
	small_stack.magic[3] = 0xfeed;
	run_on(small_stack.stack + 96 - 4);
	bug_work();
	if (small_stack.magic[3] != 0xfeed)
		panic("the magic is %#x", small_stack.magic[3]);
}

/* pointer: a view_table of functions is overwritten; the call goes nowhere. */
static struct {
	uint32_t options[2];
	void (*run)(void);
} odd_driver;

static CALLED void configure(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		*((volatile uint32_t *)odd_driver.options + i) = 0x20;
}

static CALLED void start_driver(void)
{
	odd_driver.run = bug_work;
}

static void bug_pointer(void)
{
	start_driver();
	configure(3);
	bug_work();
	odd_driver.run();
}

/* null: a pointer was cleared while it was still needed. */
static struct {
	uint32_t *registers;
} gone_card;

static CALLED void unplug(void)
{
	gone_card.registers = NULL;
}

static void bug_null(void)
{
	static uint32_t values[4];

	gone_card.registers = values;
	unplug();
	bug_work();
	((volatile uint32_t *)gone_card.registers)[0x40] = 1;
}

/* triple: the descriptor view_table that exceptions need becomes empty. */
static struct {
	uint16_t limit;
	uint32_t base;
} __attribute__((packed)) odd_interrupts;

static CALLED void shrink(void)
{
	odd_interrupts.limit = 0;
}

static void bug_triple(void)
{
	__asm__ volatile("sidt %0" : "=m"(odd_interrupts));
	shrink();
	bug_work();
	__asm__ volatile("lidt %0\n\tud2" : : "m"(odd_interrupts));
}

const struct bug bugs_of_hardware[] = {
	{ "tlb", bug_tlb },	    { "alias", bug_alias },
	{ "dma", bug_dma },	    { "stack", bug_stack },
	{ "pointer", bug_pointer }, { "null", bug_null },
	{ "triple", bug_triple },   { NULL, NULL },
};
