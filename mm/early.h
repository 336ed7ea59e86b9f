/* The page allocator of the first lessons; its functions are declared in mm/page_alloc.h. */
#pragma once

/* Takes the memory map's usable memory, as far as the kernel sees it and does not occupy it. */
void early_initialize(void);
