/*
 * A plugin of QEMU that counts the instructions which a guest executes: halted, it executes none,
 * so waiting for a drive costs nothing.
 *
 *	-plugin count.so,into=COUNTS[,kernel=ADDRESS][,at=ADDRESS...][,line=ADDRESS...][,halts=on]
 *
 * The guest marks a place by XCHG BX, BX, which no compiler makes and which changes nothing; each
 * time two counts are written to the file: of instructions, and of repetitions among them. With
 * kernel= they are followed by the instructions from this address on, and with each at= by how
 * often the one at this address was executed. There is such a line for each HLT, too, with
 * halts=on, and whenever the instruction of a line= is executed; then each line ends with what it
 * is for: mark, halt or the number of the line=, from 0 on. Addresses are as strtoull reads them.
 *
 * Blocks of instructions are counted as a whole when they begin; one that a page fault leaves in
 * its middle is counted once more.
 *
 * REP MOVSL that copies a page is one instruction for the counters of a processor. QEMU executes it
 * 1,024 times, and counts it so, as -icount does. The second and later times are repetitions: a
 * block of their own, because the instruction ends a block and jumps to itself.
 *
 * QEMU's interface for plugins, version 1, or a later one (-DVERSION=3 in QEMU 9.1, 7 in QEMU 11.1:
 * each knows those before its minimum no more): docs/devel/tcg-plugins.rst. It has no package with
 * its header, so what is used of it is declared here.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info_t;

enum { ADD_U64 };      /* qemu_plugin_op */
enum { NO_REGISTERS }; /* qemu_plugin_cb_flags */

void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *instruction,
					    void (*function)(unsigned int, void *), int flags,
					    void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *block);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *instruction);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *instruction);

#ifndef VERSION
#define VERSION 1
#endif
EXPORT int qemu_plugin_version = VERSION;

static void on_block(struct qemu_plugin_tb *block);

#if VERSION < 7

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t plugin,
					   void (*function)(uint64_t, struct qemu_plugin_tb *));

static void on_new_block(uint64_t plugin, struct qemu_plugin_tb *block)
{
	(void)plugin;
	on_block(block);
}

static void follow_blocks(uint64_t plugin)
{
	qemu_plugin_register_vcpu_tb_trans_cb(plugin, on_new_block);
}

#else

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t plugin,
					   void (*function)(struct qemu_plugin_tb *, void *),
					   void *data);

static void on_new_block(struct qemu_plugin_tb *block, void *data)
{
	(void)data;
	on_block(block);
}

static void follow_blocks(uint64_t plugin)
{
	qemu_plugin_register_vcpu_tb_trans_cb(plugin, on_new_block, NULL);
}

#endif

#define PLACES	  8
#define BYTES_MAX 16 /* of an instruction */

struct counts {
	uint64_t instructions, repetitions, in_kernel, times[PLACES];
};

/* ---- what the versions have in different ways: a count is said by its place in struct counts ----
 */

#if VERSION < 3

void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *block, int operation,
					      void *place, uint64_t value);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *instruction, int operation,
						void *place, uint64_t value);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *instruction);

static struct counts counts;

static void begin_counting(void)
{
}

static void count_block(struct qemu_plugin_tb *block, size_t place, uint64_t value)
{
	qemu_plugin_register_vcpu_tb_exec_inline(block, ADD_U64, (char *)&counts + place, value);
}

static void count_instruction(struct qemu_plugin_insn *instruction, size_t place)
{
	qemu_plugin_register_vcpu_insn_exec_inline(instruction, ADD_U64, (char *)&counts + place,
						   1);
}

static uint64_t counted(size_t place)
{
	return *(uint64_t *)((char *)&counts + place);
}

static void read_bytes(const struct qemu_plugin_insn *instruction, uint8_t *bytes, size_t size)
{
	memcpy(bytes, qemu_plugin_insn_data(instruction), size);
}

#else

/* The counts of each processor; the guest has one. */
struct entry { /* qemu_plugin_u64 */
	void *board;
	size_t place;
};

void *qemu_plugin_scoreboard_new(size_t size);
uint64_t qemu_plugin_u64_get(struct entry entry, unsigned int processor);
void qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(struct qemu_plugin_tb *block, int operation,
						       struct entry entry, uint64_t value);
void qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(struct qemu_plugin_insn *instruction,
							 int operation, struct entry entry,
							 uint64_t value);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *instruction, void *to, size_t size);

static void *board;

static void begin_counting(void)
{
	board = qemu_plugin_scoreboard_new(sizeof(struct counts));
}

static void count_block(struct qemu_plugin_tb *block, size_t place, uint64_t value)
{
	const struct entry entry = { board, place };

	qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(block, ADD_U64, entry, value);
}

static void count_instruction(struct qemu_plugin_insn *instruction, size_t place)
{
	const struct entry entry = { board, place };

	qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(instruction, ADD_U64, entry, 1);
}

static uint64_t counted(size_t place)
{
	return qemu_plugin_u64_get((struct entry){ board, place }, 0);
}

static void read_bytes(const struct qemu_plugin_insn *instruction, uint8_t *bytes, size_t size)
{
	qemu_plugin_insn_data(instruction, bytes, size);
}

#endif

/* ---- marks ---- */

static uint64_t kernel;
static uint64_t places[PLACES], lines[PLACES];
static unsigned places_count, lines_count;
static bool has_halts;
static FILE *file;

#define COUNT(member) offsetof(struct counts, member)

static unsigned long long number_of(size_t place)
{
	return counted(place);
}

/* `what` is "mark", "halt" or a number. */
static void on_mark(unsigned int processor, void *what)
{
	(void)processor;
	fprintf(file, "%llu %llu", number_of(COUNT(instructions)), number_of(COUNT(repetitions)));
	if (kernel)
		fprintf(file, " %llu", number_of(COUNT(in_kernel)));
	for (unsigned i = 0; i < places_count; i++)
		fprintf(file, " %llu", number_of(COUNT(times[i])));
	fprintf(file, has_halts || lines_count ? " %s\n" : "\n", (const char *)what);
	fflush(file);
}

/* REP or REPNE before MOVS, CMPS, STOS, LODS, SCAS, INS, OUTS. */
static int is_string_instruction(const struct qemu_plugin_insn *instruction)
{
	size_t size = qemu_plugin_insn_size(instruction);
	uint8_t bytes[BYTES_MAX];

	read_bytes(instruction, bytes, size);
	uint8_t code = size <= 3 ? bytes[size - 1] & 0xfe : 0;

	return (bytes[0] == 0xf3 || bytes[0] == 0xf2) && (size == 2 || bytes[1] == 0x66) &&
	       (code == 0x6c || code == 0x6e || (code >= 0xa4 && code <= 0xae && code != 0xa8));
}

static char numbers[PLACES][2] = { "0", "1", "2", "3", "4", "5", "6", "7" };

static bool is_instruction(const struct qemu_plugin_insn *instruction, const void *bytes,
			   size_t size)
{
	uint8_t seen[BYTES_MAX];

	if (qemu_plugin_insn_size(instruction) != size)
		return false;
	read_bytes(instruction, seen, size);
	return memcmp(seen, bytes, size) == 0;
}

static void on_instruction(struct qemu_plugin_insn *instruction)
{
	static const uint8_t mark[] = { 0x66, 0x87, 0xdb };

	if (is_instruction(instruction, mark, sizeof(mark)))
		qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_mark, NO_REGISTERS, "mark");
	if (has_halts && is_instruction(instruction, "\xf4", 1))
		qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_mark, NO_REGISTERS, "halt");
	for (unsigned i = 0; i < lines_count; i++)
		if (qemu_plugin_insn_vaddr(instruction) == lines[i])
			qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_mark, NO_REGISTERS,
							       numbers[i]);
	for (unsigned i = 0; i < places_count; i++)
		if (qemu_plugin_insn_vaddr(instruction) == places[i])
			count_instruction(instruction, COUNT(times[i]));
}

static void on_block(struct qemu_plugin_tb *block)
{
	size_t length = qemu_plugin_tb_n_insns(block);

	count_block(block, COUNT(instructions), length);
	if (kernel && qemu_plugin_tb_vaddr(block) >= kernel)
		count_block(block, COUNT(in_kernel), length);
	if (length == 1 && is_string_instruction(qemu_plugin_tb_get_insn(block, 0)))
		count_block(block, COUNT(repetitions), 1);
	for (size_t i = 0; i < length; i++)
		on_instruction(qemu_plugin_tb_get_insn(block, i));
}

/* One of the words after the plugin's name: false if it is wrong, or unknown. */
static bool take(const char *word)
{
	if (strncmp(word, "into=", 5) == 0)
		return (file = fopen(word + 5, "w"));
	if (strncmp(word, "kernel=", 7) == 0)
		return (kernel = strtoull(word + 7, NULL, 0)) > 0;
	if (strncmp(word, "at=", 3) == 0 && places_count < PLACES)
		return (places[places_count++] = strtoull(word + 3, NULL, 0)) > 0;
	if (strncmp(word, "line=", 5) == 0 && lines_count < PLACES)
		return (lines[lines_count++] = strtoull(word + 5, NULL, 0)) > 0;
	return has_halts = strcmp(word, "halts=on") == 0;
}

EXPORT int qemu_plugin_install(uint64_t plugin, const struct qemu_info_t *info, int words_count,
			       char **words)
{
	(void)info;
	for (int i = 0; i < words_count; i++)
		if (!take(words[i]))
			return -1;
	if (!file)
		return -1;
	begin_counting();
	follow_blocks(plugin);
	return 0;
}
