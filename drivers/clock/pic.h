/* The two 8259 interrupt controllers: sixteen lines, IRQ 0 to 15. */
#pragma once

/* Moves the lines to vectors 32 to 47, out of the way of the processor's exceptions, all masked. */
void pic_initialize(void);

/* Calls handler, with interrupts off, for each interrupt on the line (0 to 15), and unmasks it. */
void irq_register(unsigned line, void (*handler)(void));
