/* The PCI bus: finding a device, and reading and writing its configuration. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Offsets in the configuration space: PCI Local Bus Specification 2.2, 6.1. */
#define PCI_VENDOR  0x00 /* vendor below, device above */
#define PCI_COMMAND 0x04 /* 16 bits; the status is above */
#define PCI_CLASS   0x08 /* class 31:24, subclass 23:16, interface 15:8, revision 7:0 */
#define PCI_BAR(n)  (0x10 + 4 * (n))

#define PCI_COMMAND_IO	   0x1u /* the device answers at its ports */
#define PCI_COMMAND_MASTER 0x4u /* the device may read and write memory by itself */

/* Finds the first function of this class and subclass (0x0101: IDE). *function is its address for
 * the functions below. Returns false if there is none. */
bool pci_find(uint16_t class_and_subclass, uint32_t *function);

/* 32 bits at an offset, a multiple of 4. What is not there reads as all ones. */
uint32_t pci_read(uint32_t function, unsigned offset);
void pci_write(uint32_t function, unsigned offset, uint32_t value);

static inline uint32_t in32(uint16_t port)
{
	uint32_t value;

	__asm__ volatile("inl %1, %0" : "=a"(value) : "Nd"(port));
	return value;
}
