/*
 * The reverse map: from a page of an object to the entries that map it.
 *
 * Nothing is stored for each page. An area knows which pages of its object it maps and where; so
 * the place of a page in an area is a sum, and the entry there says whether it is mapped. A private
 * area may map a copy in its place: that is another page, and left alone.
 */
#include "mm/reverse_map.h"

#include "mm/area.h"
#include "mm/page_table.h"
#include "mm/space_layout.h"

/* Where pages `first` to `end` - 1 of its object are in an area: [*from, *to). False: nowhere. */
static bool find_part(const struct area *area, uint32_t first, uint32_t end, uint32_t *from,
		      uint32_t *to)
{
	uint32_t last = area_index(area, area->end);

	first = first > area->index ? first : area->index;
	end = end < last ? end : last;
	*from = area_start(area) + ((first - area->index) << PAGE_SHIFT);
	*to = area_start(area) + ((end - area->index) << PAGE_SHIFT);
	return first < end;
}

void object_unmap(struct memory_object *object, uint32_t first, uint32_t end)
{
	uint32_t from, to;

	for (struct list *link = object->areas.next; link != &object->areas; link = link->next) {
		struct area *area = list_entry(link, struct area, in_object);

		if (find_part(area, first, end, &from, &to))
			page_unmap_range(area->space, from, to);
	}
}

/* The entry with which an area maps this page of its object, and its address; NULL: it does not.
 */
static uint32_t *entry_of_copy(const struct area *area, uint32_t index, const struct page *page,
			       uint32_t *address)
{
	uint32_t end;

	if (!find_part(area, index, index + 1, address, &end))
		return NULL;
	uint32_t *pte = pte_of(area->space, *address, false);

	return pte && *pte && pte_page(*pte) == page ? pte : NULL;
}

/* Takes `lost` away from each entry that maps the page, and says how many those are, and which
 * bits any of them had. */
static uint32_t change_entries(struct memory_object *object, uint32_t index,
			       const struct page *page, uint32_t lost, uint32_t *had)
{
	uint32_t address, shown = 0;

	for (struct list *link = object->areas.next; link != &object->areas; link = link->next) {
		struct area *area = list_entry(link, struct area, in_object);
		uint32_t *pte = entry_of_copy(area, index, page, &address);

		if (!pte)
			continue;
		*had |= *pte;
		space_note_most(area->space);
		pte_set(area->space, address, pte, *pte & ~lost);
		area->space->pages -= !*pte;
		shown++;
	}
	return shown;
}

void object_forget(struct memory_object *object, uint32_t index, struct page *page)
{
	uint32_t had = 0, shown = change_entries(object, index, page, UINT32_MAX, &had);

	while (shown-- > 0)
		page_release(page);
}

void object_clean(struct memory_object *object, uint32_t index, const struct page *page)
{
	uint32_t had = 0;

	change_entries(object, index, page, PTE_WRITE | PTE_DIRTY, &had);
}

uint32_t object_shown(struct memory_object *object, uint32_t index, const struct page *page,
		      bool *was_used)
{
	uint32_t had = 0, shown = change_entries(object, index, page, PTE_ACCESSED, &had);

	*was_used = had & PTE_ACCESSED;
	return shown;
}
