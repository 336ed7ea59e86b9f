/*
 * The PCI bus, by configuration mechanism 1 (PCI Local Bus Specification 2.2, 3.2.2.3.2).
 *
 * A function has a bus (0 to 255), a device on it (0 to 31) and a number (0 to 7). Writing all of
 * it to one port chooses 32 bits of its configuration space, which another port then shows:
 *
 *	31	  23	16 15	11 10	 8 7	  2
 *	enable	  bus	   device  function  offset
 *
 * 0x80000900 is bus 0, device 1, function 1, offset 0.
 *
 * Where nothing is, reads give all ones. A device with one function may answer for all eight; bit 7
 * of its header type says whether there are more. A bridge (header type 1) says up to which number
 * it leads to further buses; the firmware has numbered them. So the search is one loop, over as
 * many buses as the bridges so far have named.
 *
 * At boot, or with interrupts disabled: address and data are two accesses.
 */
#include "drivers/disk/pci.h"

#include "kernel/cpu/io.h"

#define ADDRESS 0xcf8
#define VALUE	0xcfc
#define ENABLE	0x80000000u

#define HEADER	    0x0c /* header type in bits 23:16 */
#define BUSES	    0x18 /* of a bridge: the last bus that it leads to, in bits 23:16 */
#define HAS_MORE    0x80 /* of the header type: functions 1 to 7 exist, too */
#define BRIDGE	    1
#define NONE	    0xffffffffu
#define DEVICE_BITS 11
#define BUS_BITS    16

uint32_t pci_read(uint32_t function, unsigned offset)
{
	out32(ADDRESS, ENABLE | function | offset);
	return in32(VALUE);
}

void pci_write(uint32_t function, unsigned offset, uint32_t value)
{
	out32(ADDRESS, ENABLE | function | offset);
	out32(VALUE, value);
}

static uint8_t pci_header(uint32_t function)
{
	return pci_read(function, HEADER) >> 16;
}

/* Looks at one device of a bus. */
static bool find_on(uint32_t device, uint16_t wanted, uint32_t *function, unsigned *last_bus)
{
	unsigned functions = pci_header(device) & HAS_MORE ? 8 : 1;

	for (unsigned i = 0; i < functions; i++) {
		uint32_t candidate = device | i << 8;

		if (pci_read(candidate, PCI_VENDOR) == NONE)
			continue;
		if (pci_read(candidate, PCI_CLASS) >> 16 == wanted) {
			*function = candidate;
			return true;
		}
		uint8_t last = pci_read(candidate, BUSES) >> 16;

		if ((pci_header(candidate) & ~HAS_MORE) == BRIDGE && last > *last_bus)
			*last_bus = last;
	}
	return false;
}

bool pci_find(uint16_t class_and_subclass, uint32_t *function)
{
	unsigned last_bus = 0;

	for (unsigned bus = 0; bus <= last_bus; bus++)
		for (unsigned i = 0; i < 32; i++) {
			uint32_t device = bus << BUS_BITS | i << DEVICE_BITS;

			if (pci_read(device, PCI_VENDOR) != NONE &&
			    find_on(device, class_and_subclass, function, &last_bus))
				return true;
		}
	return false;
}
