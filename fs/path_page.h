/* Pages for paths: each call that gets one from a program needs a page for a moment. */
#pragma once

/* A page for a path, and back; NULL without memory, which may be given back as well. */
char *path_page(void);
void path_page_free(char *page);
