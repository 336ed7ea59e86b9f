/* The interrupt descriptor table. */
#pragma once

#include <stdint.h>

/* Kinds of gates, with the present bit: Intel SDM volume 3, 6.11. */
#define GATE_TASK      0x85 /* the processor changes to the task state of the selector */
#define GATE_INTERRUPT 0x8e /* 32-bit; entering it disables interrupts */
#define GATE_TRAP      0x8f /* 32-bit; entering it leaves them as they are */

/* Sets gate `vector`: to this code (or task), for INT instructions of this ring (0 to 3) and below.
 */
void gate_set(unsigned vector, uint16_t selector, uintptr_t offset, uint8_t type, unsigned ring);

/* Points all gates at the stubs of kernel/cpu/trap_entry.asm, for ring 0 only, and loads the table.
 */
void gates_initialize(void);
