/* A line as a tree: lists of pipelines of commands. */
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/sh/sh.h"

#define DEPTH_MAX 16 /* of parentheses */

/* Memory for one line's tree: what is allocated, in a list to be freed with it. */
struct chunk {
	struct chunk *next;
	char memory[];
};

static struct chunk *chunks;

static const char *place; /* what is still to be read */
static const char *complaint;
static int depth;

static void *allocate(size_t size)
{
	struct chunk *chunk = calloc(1, sizeof(*chunk) + size);

	if (!chunk) {
		fprintf(stderr, "sh: no memory left\n");
		exit(STATUS_USAGE);
	}
	chunk->next = chunks;
	chunks = chunk;
	return chunk->memory;
}

static char *copy(const char *start, const char *end)
{
	return memcpy(allocate(end - start + 1), start, end - start);
}

void parse_forget(void)
{
	while (chunks) {
		struct chunk *next = chunks->next;

		free(chunks);
		chunks = next;
	}
}

static void skip_blanks(void)
{
	while (isspace(*place))
		place++;
	if (*place == '#')
		place += strlen(place);
}

/* Reads an operator, if it is the next thing. */
static bool accept(const char *operator)
{
	size_t length = strlen(operator);

	skip_blanks();
	if (strncmp(place, operator, length) != 0)
		return false;
	place += length;
	return true;
}

static bool at_end_of_command(void)
{
	skip_blanks();
	return !*place || strchr(";&|)", *place);
}

static char *read_word(void)
{
	skip_blanks();
	const char *start = place, *end = word_end(place);

	if (!end)
		complaint = "a quote is not closed";
	else if (end == start)
		complaint = "a word is missing";
	place = end ? end : start + strlen(start);
	return copy(start, place);
}

/* The digit directly before < or >, or otherwise. */
static int read_descriptor(int otherwise)
{
	return isdigit(*place) ? *place++ - '0' : otherwise;
}

static bool is_redirection(void)
{
	skip_blanks();
	const char *sign = place + (isdigit(*place) ? 1 : 0);

	return *sign == '<' || *sign == '>';
}

static struct redirection *read_redirection(void)
{
	struct redirection *redirection = allocate(sizeof(*redirection));
	bool input = place[isdigit(*place) ? 1 : 0] == '<';

	redirection->descriptor = read_descriptor(input ? 0 : 1);
	if (accept(">>"))
		redirection->flags = O_WRONLY | O_CREAT | O_APPEND;
	else if (accept(">&") || accept("<&"))
		redirection->flags = COPY;
	else if (accept(">"))
		redirection->flags = O_WRONLY | O_CREAT | O_TRUNC;
	else if (accept("<<"))
		complaint = "here-documents are not for this shell";
	else if (accept("<"))
		redirection->flags = O_RDONLY;
	redirection->word = read_word();
	return redirection;
}

static struct list *read_lists(void);

static struct list *read_group(void)
{
	struct list *group = NULL;

	if (++depth > DEPTH_MAX)
		complaint = "too many parentheses";
	else
		group = read_lists();
	depth--;
	if (!accept(")"))
		complaint = "a ) is missing";
	return group;
}

static struct command *read_command(void)
{
	struct command *command = allocate(sizeof(*command));
	struct redirection **last = &command->redirections;

	if (accept("("))
		command->group = read_group();
	while (!complaint && !at_end_of_command()) {
		if (is_redirection()) {
			*last = read_redirection();
			last = &(*last)->next;
		} else if (command->group || command->count == WORDS_MAX) {
			complaint = "too many words";
		} else {
			command->words[command->count++] = read_word();
		}
	}
	if (!command->group && command->count == 0 && !command->redirections)
		complaint = "a command is missing";
	return command;
}

static struct pipeline *read_pipeline(enum condition condition)
{
	struct pipeline *pipeline = allocate(sizeof(*pipeline));
	struct command **last = &pipeline->first;

	pipeline->condition = condition;
	pipeline->negated = accept("! ");
	for (int count = 1;; count++) {
		*last = read_command();
		last = &(*last)->next;
		if (complaint || strncmp(place, "||", 2) == 0 || !accept("|"))
			return pipeline;
		if (count == PROCESSES_MAX)
			complaint = "the pipe is too long";
	}
}

static struct list *read_list(void)
{
	struct list *list = allocate(sizeof(*list));
	struct pipeline **last = &list->first;
	enum condition condition = ALWAYS;

	skip_blanks();
	const char *start = place;

	do {
		*last = read_pipeline(condition);
		last = &(*last)->next;
		condition = accept("&&") ? AFTER_SUCCESS : accept("||") ? AFTER_FAILURE : ALWAYS;
	} while (!complaint && condition != ALWAYS);
	list->text = copy(start, place);
	list->background = accept("&");
	if (!list->background)
		accept(";");
	return list;
}

static struct list *read_lists(void)
{
	struct list *first = NULL, **last = &first;

	for (skip_blanks(); !complaint && *place && *place != ')'; skip_blanks()) {
		*last = read_list();
		last = &(*last)->next;
	}
	return first;
}

struct list *parse(const char *line, bool *wrong)
{
	place = line;
	complaint = NULL;
	depth = 0;
	struct list *lists = read_lists();

	if (!complaint && *place)
		complaint = "a ) without its (";
	*wrong = complaint;
	if (complaint)
		fprintf(stderr, "sh: %s\n", complaint);
	return complaint ? NULL : lists;
}
