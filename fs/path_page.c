/*
 * Pages for paths. One is kept back, so that most calls need not ask the allocator.
 *
 * For the current task; nothing here sleeps.
 */
#include "fs/path_page.h"

#include "mm/page_alloc.h"

static char *spare;

char *path_page(void)
{
	char *page = spare;

	spare = NULL;
	return page ? page : page_alloc(0);
}

void path_page_free(char *page)
{
	if (spare)
		page_free(spare, 0);
	spare = page;
}
