/* The variables of the page array, which mm/page_array.c makes. */
#include "mm/page.h"

struct page *page_array;
uint32_t page_frames;
