/*
 * The interrupt descriptor table: 256 gates, and the register that says where they are.
 *
 * The processor takes a vector, reads gate `vector` and continues at its selector and offset. For
 * vector 14:
 *
 *	idt + 14 * 8	offset_low	selector	zero	type	offset_high
 *			0x1234		0x0008		0	0x8e	0xc010
 *
 * The privilege level in the type only restricts INT instructions: user mode that executes INT 14
 * gets a general protection fault instead. Exceptions and interrupts do not look at it (Intel SDM
 * volume 3, 6.12.1).
 */
#include "kernel/cpu/gates.h"

#include "kernel/cpu/descriptors.h"
#include "kernel/cpu/trap.h"

extern const uintptr_t trap_stubs[VECTORS];

/* Intel SDM volume 3, figure 6-2. */
struct gate {
	uint16_t offset_low;
	uint16_t selector;
	uint8_t zero;
	uint8_t type;
	uint16_t offset_high;
} __attribute__((packed));

static struct gate idt[VECTORS];

/* EXERCISE 2.3 (interrupts, part 1): the table that says where each vector enters the kernel (Intel
   SDM volume 3, figure 6-2).
   gate_set: fills one gate. type has the present bit already; ring, 0 to 3, is the gate's DPL, bits
   5 and 6 of the type byte.
   gates_initialize: every vector gets an interrupt gate to its stub (trap_stubs), in the kernel's
   code segment, with DPL 0. Then LIDT loads the table.
   Pitfalls: a limit is the offset of the last byte. The gates for exceptions and those for
   interrupts are in the same table. */
/* SOLUTION 2.3 { */
void gate_set(unsigned vector, uint16_t selector, uintptr_t offset, uint8_t type, unsigned ring)
{
	idt[vector] = (struct gate){ .offset_low = offset & 0xffff,
				     .selector = selector,
				     .type = type | ring << 5,
				     .offset_high = offset >> 16 };
}

void gates_initialize(void)
{
	struct table_pointer pointer = { sizeof(idt) - 1, (uintptr_t)idt };

	for (unsigned vector = 0; vector < VECTORS; vector++)
		gate_set(vector, KERNEL_CODE, trap_stubs[vector], GATE_INTERRUPT, 0);
	__asm__ volatile("lidt %0" : : "m"(pointer));
}
/* } SOLUTION 2.3 */
