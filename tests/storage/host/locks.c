/*
 * A master of locks (labs/storage/locks/master.c), asked from outside (tests/storage/locks.py),
 * which also has the nodes.
 *
 *	next			gets the first call: "request NODE LEVEL", "cancel NODE" or "lower
 *				NODE LEVEL"; an empty line: that was all
 *	done RESULT MESSAGES	what a call returned, and what it has sent: "ast:NODE:LEVEL:GRANTED"
 *				and "bast:NODE:LEVEL", in their order; gets the next call
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "labs/storage/locks/locks.h"
#include "tests/host/question.h"
#include "tests/storage/host/asked.h"

#define MOST 4096 /* bytes of the messages of a call */

static struct lock lock;
static char sent[MOST];
static size_t length;

static void check_room(void)
{
	if (length > MOST - 32) {
		fprintf(stderr, "endless\n");
		exit(3);
	}
}

void lock_send_ast(struct lock *from, unsigned node, enum lock_level level, bool is_granted)
{
	(void)from;
	check_room();
	length += (size_t)sprintf(sent + length, " ast:%u:%d:%d", node, level, is_granted);
}

void lock_send_bast(struct lock *from, unsigned node, enum lock_level level)
{
	(void)from;
	check_room();
	length += (size_t)sprintf(sent + length, " bast:%u:%d", node, level);
}

/* Returns the next call. */
static const char *obey(const char *line)
{
	char word[16];
	unsigned node, level = 0;
	int result = 0;

	if (sscanf(line, "%15s %u %u", word, &node, &level) < 2)
		exit(2);
	length = 0;
	sent[0] = '\0';
	if (strcmp(word, "cancel") == 0)
		lock_cancel(&lock, node);
	else if (strcmp(word, "request") == 0)
		result = lock_request(&lock, node, (enum lock_level)level);
	else
		result = lock_lower(&lock, node, (enum lock_level)level);
	return ask("done %d%s", result, sent);
}

int main(void)
{
	const char *line = ask("next");

	while (*line != '\n') {
		question_begins();
		line = obey(line);
	}
	return 0;
}
