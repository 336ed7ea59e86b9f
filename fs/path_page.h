/* Pages for paths: each call that gets one from a program needs a page for a moment. */
#pragma once

/* Allocate a page for a path, and free it. NULL without memory; freeing NULL is allowed. */
char *path_page(void);
void path_page_free(char *page);
