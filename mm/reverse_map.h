/* The reverse map: from pages of an object to the spaces that map them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct memory_object;
struct page;

/* Takes the pages from `first` up to the one before `end` out of every space, private copies of
 * them too, as Linux does for a file that is cut. */
void object_unmap(struct memory_object *object, uint32_t first, uint32_t end);

/* Takes this page of the object out of every space that maps it. Frees no page table, so entries
 * that somebody has from pte_of stay valid. */
void object_forget(struct memory_object *object, uint32_t index, struct page *page);

/* Takes the right to write, and the dirty bit, from every entry that maps this page of the object.
 */
void object_clean(struct memory_object *object, uint32_t index, const struct page *page);

/* How many entries map this page of the object. *was_used: did any of them have the
 * accessed bit? It is cleared. */
uint32_t object_shown(struct memory_object *object, uint32_t index, const struct page *page,
		      bool *was_used);
