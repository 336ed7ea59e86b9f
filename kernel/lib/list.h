/* Doubly linked lists: a ring of links, one of which is the list's own head. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *next, *previous;
};

/* The structure that a link is a member of. */
#define list_entry(link, type, member) ((type *)((char *)(link) - offsetof(type, member)))

#define LIST_EMPTY(list) { &(list), &(list) }

static inline bool list_is_empty(const struct list *list)
{
	return list->next == list;
}

/* Inserts a link before another one; to insert before the head is to append to the list. */
static inline void list_insert(struct list *link, struct list *before)
{
	link->next = before;
	link->previous = before->previous;
	before->previous->next = link;
	before->previous = link;
}

static inline void list_append(struct list *list, struct list *link)
{
	list_insert(link, list);
}

static inline void list_remove(struct list *link)
{
	struct list at = *link;

	at.previous->next = at.next;
	at.next->previous = at.previous;
}
