/* Pages for paths: a call that gets a path from a program needs a page for a short time. */
#pragma once

/* Allocate a page for a path, and free it. NULL without memory; freeing NULL is allowed. */
char *path_page(void);
void path_page_free(char *page);
