/* The two 8259A interrupt controllers: IRQ 0 to 15. */
#pragma once

/* Moves the IRQs to vectors 32 to 47, out of the way of the processor's exceptions, all masked. */
void pic_initialize(void);

/* Calls handler, with interrupts disabled, for each interrupt of this IRQ (0 to 15), and unmasks
 * it. */
void irq_register(unsigned irq, void (*handler)(void));
