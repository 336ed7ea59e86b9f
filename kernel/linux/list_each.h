/*
 * Walks of lists (kernel/lib/list.h): over the structures that the links are members of, in order.
 *
 *	list_for_each(struct set, set, &sets, link)
 *		count += set->count;
 *
 * The list must not change meanwhile; list_for_each_safe allows to remove the structure itself.
 * After a loop without `break` the name is out of scope: return from within, or note what is found.
 */
#pragma once

#include "kernel/lib/list.h"

#define list_for_each(type, name, list, member)                                                    \
	for (type *name = list_entry((list)->next, type, member); &name->member != (list);         \
	     name = list_entry(name->member.next, type, member))

#define list_for_each_safe(type, name, list, member)                                               \
	for (type *name = list_entry((list)->next, type, member), *next;                           \
	     next = list_entry(name->member.next, type, member), &name->member != (list);          \
	     name = next)
