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

#define HEADER	 0x0c /* header type in bits 23:16 */
#define BUSES	 0x18 /* of a bridge: the last bus that it leads to, in bits 23:16 */
#define HAS_MORE 0x80 /* of the header type: functions 1 to 7 exist, too */
#define BRIDGE	 1
#define NONE	 0xffffffffu

/* How far the addresses of two of them are apart. */
#define FUNCTION (1u << 8)
#define DEVICE	 (1u << 11)
#define BUS	 (1u << 16)

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

/* Where the next one may be: a device that is not there, or has one function only, has no more. */
static uint32_t next_function(uint32_t function)
{
	uint32_t first = function & -DEVICE;
	bool has_more = pci_read(first, PCI_VENDOR) != NONE && pci_header(first) & HAS_MORE;

	return has_more ? function + FUNCTION : first + DEVICE;
}

bool pci_find(uint16_t class_and_subclass, uint32_t *function)
{
	uint32_t last_bus = 0;

	for (uint32_t at = 0; at / BUS <= last_bus; at = next_function(at)) {
		if (pci_read(at, PCI_VENDOR) == NONE)
			continue;
		if (pci_read(at, PCI_CLASS) >> 16 == class_and_subclass) {
			*function = at;
			return true;
		}
		uint8_t last = pci_read(at, BUSES) >> 16;

		if ((pci_header(at) & ~HAS_MORE) == BRIDGE && last > last_bus)
			last_bus = last;
	}
	return false;
}
