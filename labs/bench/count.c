/*
 * A plugin of QEMU that counts the instructions which a guest executes: halted, it executes none,
 * so waiting for a drive costs nothing.
 *
 *	-plugin count.so,into=COUNTS
 *
 * The guest marks a place by XCHG BX, BX, which no compiler makes and which changes nothing; each
 * time two counts are written to the file: of instructions, and of repetitions among them. Blocks
 * of instructions are counted as a whole when they begin; one that a page fault leaves in its
 * middle is counted once more.
 *
 * REP MOVSL that copies a page is one instruction for the counters of a processor. QEMU executes it
 * 1,024 times, and counts it so, as -icount does. The second and later times are repetitions: a
 * block of their own, because the instruction ends a block and jumps to itself.
 *
 * QEMU's interface for plugins, version 1: docs/devel/tcg-plugins.rst. It has no package with its
 * header, so what is used of it is declared here.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info_t;

enum { ADD_U64 };      /* qemu_plugin_op */
enum { NO_REGISTERS }; /* qemu_plugin_cb_flags */

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t plugin,
					   void (*function)(uint64_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *block, int operation,
					      void *place, uint64_t value);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *instruction,
					    void (*function)(unsigned int, void *), int flags,
					    void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *instruction);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *instruction);

EXPORT int qemu_plugin_version = 1;

static uint64_t count, repetitions;
static FILE *file;

static void on_mark(unsigned int processor, void *data)
{
	(void)processor, (void)data;
	fprintf(file, "%llu %llu\n", (unsigned long long)count, (unsigned long long)repetitions);
	fflush(file);
}

/* REP or REPNE before MOVS, CMPS, STOS, LODS, SCAS, INS, OUTS. */
static int is_string_instruction(const struct qemu_plugin_insn *instruction)
{
	const uint8_t *bytes = qemu_plugin_insn_data(instruction);
	size_t size = qemu_plugin_insn_size(instruction);
	uint8_t code = size <= 3 ? bytes[size - 1] & 0xfe : 0;

	return (bytes[0] == 0xf3 || bytes[0] == 0xf2) && (size == 2 || bytes[1] == 0x66) &&
	       (code == 0x6c || code == 0x6e || (code >= 0xa4 && code <= 0xae && code != 0xa8));
}

static void on_block(uint64_t plugin, struct qemu_plugin_tb *block)
{
	static const uint8_t mark[] = { 0x66, 0x87, 0xdb };
	size_t length = qemu_plugin_tb_n_insns(block);

	(void)plugin;
	qemu_plugin_register_vcpu_tb_exec_inline(block, ADD_U64, &count, length);
	if (length == 1 && is_string_instruction(qemu_plugin_tb_get_insn(block, 0)))
		qemu_plugin_register_vcpu_tb_exec_inline(block, ADD_U64, &repetitions, 1);
	for (size_t i = 0; i < length; i++) {
		struct qemu_plugin_insn *each = qemu_plugin_tb_get_insn(block, i);

		if (qemu_plugin_insn_size(each) == sizeof(mark) &&
		    memcmp(qemu_plugin_insn_data(each), mark, sizeof(mark)) == 0)
			qemu_plugin_register_vcpu_insn_exec_cb(each, on_mark, NO_REGISTERS, NULL);
	}
}

EXPORT int qemu_plugin_install(uint64_t plugin, const struct qemu_info_t *info, int words_count,
			       char **words)
{
	(void)info;
	if (words_count < 1 || strncmp(words[0], "into=", 5) != 0)
		return -1;
	file = fopen(words[0] + 5, "w");
	if (!file)
		return -1;
	qemu_plugin_register_vcpu_tb_trans_cb(plugin, on_block);
	return 0;
}
