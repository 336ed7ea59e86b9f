/* Copy on write: for mm's own files. */
#pragma once

#include "mm/area.h"

struct page;

/* For a program that writes to a page (address: its start) where the area allows it and the entry
 * does not: makes the entry writable. Returns 0; -ENOMEM, or -EIO from the area's object: then
 * nothing has changed but the area's AREA_COPIED, which says that there may be copies. May sleep
 * if the area is shared, in its object. */
int copy_on_write(struct space *space, struct area *area, uint32_t address, uint32_t *pte);

/* A new page with the same contents, and one reference; NULL without memory. */
struct page *page_copy(const struct page *page);
