/*
 * Spaces of a test's own, and what their programs would see. Before the kernel has a space: nobody
 * else uses page tables or areas. Addresses of structures are what the test hands back.
 */
#pragma once

#include "tests/lesson4/threads/thread_test.h"

#include "kernel/cpu/paging.h"
#include "mm/area.h"
#include "mm/fault.h"
#include "mm/page_alloc.h"
#include "mm/page_table.h"
#include "mm/space_layout.h"
#include "mm/user_copy.h"
#include "mm/zones.h"

#define TEST_SPACES 8

static struct space test_spaces[TEST_SPACES];
static uint32_t test_space_count;

/* A space without areas and entries: not even the page that all have. */
struct space *empty_space(void)
{
	struct space *space = &test_spaces[test_space_count++];

	quiet();
	space->directory = page_directory_create();
	return space;
}

/* The processor translates by its tables. Faults are not handled: copies just end. */
void load_space(const struct space *space)
{
	current->space = NULL;
	space_use(space);
}

/* The same; and faults are those of the current task's program. */
void run_space(struct space *space)
{
	current->space = space;
	space_use(space);
}

uint32_t count_free(void)
{
	return zones[ZONE_DMA].free + zones[ZONE_NORMAL].free;
}

/* A new page, whose words are all `word`. Its address. */
uint32_t *new_page(uint32_t word)
{
	uint32_t *page = page_alloc(0);

	for (uint32_t i = 0; page && i < PAGE_SIZE / sizeof(word); i++)
		page[i] = word;
	return page;
}

/* An entry by pte_of and pte_set, as the exercises that need page tables make it. 0: no memory. */
uint32_t *set_entry(struct space *space, uint32_t address, uint32_t value)
{
	uint32_t *pte = pte_of(space, address, true);

	if (!pte)
		return NULL;
	space->pages += !!value - !!*pte;
	pte_set(space, address, pte, value);
	return pte;
}

/* A new page full of its address at an address of a space. Its entry. */
uint32_t map_page(struct space *space, uint32_t address, uint32_t writable)
{
	uint32_t *page = new_page(address);
	uint32_t value = page ? pte_for(page_of(page), writable) : 0;

	return page && set_entry(space, address, value) ? value : 0;
}

/* Answers for each page whether its first word can be read, and the word. */
void read_pages(uint32_t address, uint32_t count)
{
	for (; count > 0; count--, address += PAGE_SIZE) {
		uint32_t word = 0;

		answer(copy_from_user(&word, address, sizeof(word)) == 0);
		answer(word);
	}
}

/* Answers for each page whether its first word could be written. */
void write_pages(uint32_t address, uint32_t count, uint32_t word)
{
	for (; count > 0; count--, address += PAGE_SIZE)
		answer(copy_to_user(address, &word, sizeof(word)) == 0);
}
