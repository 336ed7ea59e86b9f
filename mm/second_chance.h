/* Which pages of files are given back. */
#pragma once

#include <stdint.h>

/* Frees up to `count` clean pages that were not used lately, of whatever cache. Returns how many.
 */
uint32_t page_cache_reclaim(uint32_t count);
