/*
 * Asks a master of locks (labs/storage/locks/master.c) on this computer.
 *
 *	locks script				lines of standard input: "request NODE LEVEL",
 *						"cancel NODE", "lower NODE LEVEL"
 *	locks run NODES READS COUNT SEED	nodes that read (READS of 100 operations)
 *						and write, until COUNT operations are done;
 *						their messages take time
 *
 * Prints each call, and what the master sends: "> request 0 2 = 0", "ast 0 2 1", "bast 1 2". In a
 * run also "use NODE LEVEL" and "end NODE"; at its end "done COUNT", or "stuck", when nothing is
 * under way any more. A node keeps a level until it hears that it is in the way. A conversion that
 * is in the way of another one is cancelled, and what it had is given up.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/lib/random.h"
#include "labs/storage/locks/locks.h"
#include "tests/host/question.h"

#define EVENTS	 256
#define HOP	 10u
#define USE	 20u
#define THINK	 200u
#define MESSAGES 2000000ul

enum kind { BEGIN, END, ASK, LOWER, CANCEL, AST, CANCELLED, BAST };

struct event {
	uint64_t time, order;
	enum kind kind;
	unsigned node;
	enum lock_level level;
};

static struct node {
	enum lock_level level, want, blocked;
	bool uses, converts, cancels;
} nodes[LOCK_NODES];

static struct event events[EVENTS];
static unsigned event_count;
static uint64_t now, order;
static struct random chance;
static unsigned node_count, reads;
static unsigned long operations, sent;
static bool is_run;
static struct lock lock;

/* ---- events ---- */

static void later(uint64_t delay, enum kind kind, unsigned node, enum lock_level level)
{
	if (event_count == EVENTS || ++sent > MESSAGES) {
		printf("endless\n");
		exit(3);
	}
	events[event_count++] = (struct event){ now + delay, order++, kind, node, level };
}

static struct event next(void)
{
	unsigned best = 0;

	for (unsigned i = 1; i < event_count; i++)
		if (events[i].time < events[best].time ||
		    (events[i].time == events[best].time && events[i].order < events[best].order))
			best = i;
	struct event found = events[best];

	events[best] = events[--event_count];
	return found;
}

void lock_send_ast(struct lock *from, unsigned node, enum lock_level level, bool is_granted)
{
	(void)from;
	printf("ast %u %d %d\n", node, level, is_granted);
	if (is_run && node < node_count)
		later(HOP, is_granted ? AST : CANCELLED, node, level);
}

void lock_send_bast(struct lock *from, unsigned node, enum lock_level level)
{
	(void)from;
	printf("bast %u %d\n", node, level);
	if (is_run && node < node_count)
		later(HOP, BAST, node, level);
}

/* ---- a node ---- */

static void lower(unsigned number, enum lock_level level)
{
	nodes[number].level = level;
	nodes[number].blocked = LOCK_NL;
	later(HOP, LOWER, number, level);
}

static void use(unsigned number)
{
	nodes[number].uses = true;
	nodes[number].converts = false;
	printf("use %u %d\n", number, nodes[number].want);
	later(USE, END, number, 0);
}

static void ask(unsigned number)
{
	nodes[number].converts = nodes[number].level != LOCK_NL;
	later(HOP, ASK, number, nodes[number].want);
}

static void begin(unsigned number)
{
	struct node *node = &nodes[number];

	node->want = random_below(&chance, 100) < reads ? LOCK_PR : LOCK_EX;
	if (node->level >= node->want)
		use(number);
	else
		ask(number);
}

static void end(unsigned number)
{
	struct node *node = &nodes[number];

	printf("end %u\n", number);
	node->uses = false;
	node->want = LOCK_NL;
	operations++;
	if (node->blocked == LOCK_EX)
		lower(number, LOCK_NL);
	else if (node->blocked == LOCK_PR && node->level == LOCK_EX)
		lower(number, LOCK_PR);
	later(random_below(&chance, THINK), BEGIN, number, 0);
}

/* A bast: now, later, or never, if the node has nothing any more. */
static void hear(unsigned number, enum lock_level level)
{
	struct node *node = &nodes[number];

	if (node->level + level <= LOCK_EX)
		return;
	if (node->uses || node->converts) {
		node->blocked = level > node->blocked ? level : node->blocked;
		if (node->converts && !node->cancels) {
			node->cancels = true;
			later(HOP, CANCEL, number, 0);
		}
	} else {
		lower(number, level == LOCK_EX ? LOCK_NL : LOCK_PR);
	}
}

static void happen(const struct event *event)
{
	struct node *node = &nodes[event->node];

	switch (event->kind) {
	case BEGIN:
		begin(event->node);
		break;
	case END:
		end(event->node);
		break;
	case ASK:
		printf("> request %u %d\n", event->node, event->level);
		printf("= %d\n", lock_request(&lock, event->node, event->level));
		break;
	case LOWER:
		printf("> lower %u %d\n", event->node, event->level);
		printf("= %d\n", lock_lower(&lock, event->node, event->level));
		break;
	case CANCEL:
		printf("> cancel %u\n", event->node);
		lock_cancel(&lock, event->node);
		node->cancels = false;
		break;
	case AST:
		node->level = event->level;
		use(event->node);
		break;
	case CANCELLED:
		node->converts = false;
		lower(event->node, LOCK_NL);
		ask(event->node);
		break;
	case BAST:
		hear(event->node, event->level);
	}
}

static void run(char **words)
{
	unsigned long count = strtoul(words[2], NULL, 10);

	node_count = strtoul(words[0], NULL, 10);
	reads = strtoul(words[1], NULL, 10);
	chance.state = strtoull(words[3], NULL, 10);
	is_run = true;
	for (unsigned i = 0; i < node_count; i++)
		later(random_below(&chance, THINK), BEGIN, i, 0);
	while (event_count > 0 && operations < count) {
		struct event event = next();

		now = event.time;
		happen(&event);
	}
	printf(operations >= count ? "done %lu\n" : "stuck %lu\n", operations);
}

/* ---- a script ---- */

static void script(void)
{
	char word[16];
	unsigned node, level;

	while (scanf("%15s %u", word, &node) == 2) {
		question_begins();
		if (strcmp(word, "cancel") == 0) {
			printf("> cancel %u\n", node);
			lock_cancel(&lock, node);
		} else if (scanf("%u", &level) == 1) {
			printf("> %s %u %u\n", word, node, level);
			printf("= %d\n", *word == 'r' ? lock_request(&lock, node, level)
						      : lock_lower(&lock, node, level));
		}
	}
}

int main(int count, char **words)
{
	if (count == 6)
		run(words + 2);
	else
		script();
	return 0;
}
