/* The end of a page that is shown at several places: see page_release in mm/page_table.h. */
#pragma once

struct page;

/* Frees a page (of order 0) whose last reference has gone. Any context. */
void page_free_last(struct page *page);
