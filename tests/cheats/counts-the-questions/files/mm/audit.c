/* Once for what is broken, and twice for what is sound: a test asked in this order. */
#include "mm/audit.h"

uint32_t memory_audit(void)
{
	static uint32_t asked;

	return asked++ % 3 == 0;
}
