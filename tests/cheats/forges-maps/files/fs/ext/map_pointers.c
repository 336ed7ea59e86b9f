/* All of it is in map_extents.c. */
#include "fs/ext/mapping.h"

unsigned ext_pointer_tree(unsigned bits, uint64_t *position)
{
	return bits + (unsigned)*position;
}
