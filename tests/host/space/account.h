/* The account of memory: whose is each frame? Every frame that is not free has an owner, and but
 * for pages that entries share, one. */
#pragma once

#include <stdint.h>

struct page;
struct space;

/* Begins to count. */
void account_begin(void);

/* A space (NULL: none): its directory, its tables, and a reference for each entry. Each table must
 * count its entries, and the space must. */
void account_space(const struct space *space);

/* A reference to a page that is neither an entry's nor an owner's whom account_space knows. */
void account_hold(const struct page *page);

/* Closes the account: each page has as many references as were counted. What is left are tables and
 * directories that are kept for later: few, and all zeros, which is looked at if `thorough`. */
void account_end(int thorough);
