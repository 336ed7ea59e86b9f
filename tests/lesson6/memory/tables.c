/* Exercise 6.1: page tables. */
#include "tests/lesson6/memory/spaces.h"

static uint32_t watched; /* the first of the pages that are being unmapped, or 0 */

/* Answers what happens to a page that nobody shows any more: its frame, and whether the processor
 * still sees its page, `watched` bytes from address 0 on in the order of the frames. */
void record_end(struct page *page)
{
	uint32_t word = 0;
	bool seen = watched && copy_from_user(&word, watched, sizeof(word)) == 0;

	answer(frame_of(page));
	answer(seen);
	watched += watched ? PAGE_SIZE : 0;
}

void watch(uint32_t address)
{
	watched = address;
}

/* pte_of, as a program would see the entry. */
uint32_t *entry_of(const struct space *space, uint32_t address, uint32_t make)
{
	return pte_of(space, address, make);
}

/* pte_set of an entry that is there. */
void change_entry(struct space *space, uint32_t address, uint32_t value)
{
	uint32_t *pte = pte_of(space, address, false);

	if (pte)
		pte_set(space, address, pte, value);
}

/* As pte_set alone is called. */
void set_only(struct space *space, uint32_t address, uint32_t value)
{
	pte_set(space, address, pte_of(space, address, true), value);
}
