/* The page allocator of the first lessons; its functions are declared in mm/page_alloc.h. */
#pragma once

/* Takes the usable memory of the memory map that the kernel sees and does not fill itself. */
void early_initialize(void);
