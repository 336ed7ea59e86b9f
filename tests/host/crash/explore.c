/*
 * Runs a workload, and judges what many power cuts leave of it.
 *
 * Each state is judged in a process of its own, forked from one that has the disk as it was at the
 * last flush before the cut, and a library that nothing was done with:
 *
 *	this one		disk up to the last flush
 *	  '-- a state		applies what else reached the disk; mounts; judges; unmounts; e2fsck
 *	  '-- a second session	applies the same; is for its states what this one is for the first
 *		'-- the session	mounts, judges, goes on working
 *		'-- a state	...
 *
 * So a crash of the library is a finding like others, and takes nobody with it.
 */
#include "tests/host/crash/explore.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kernel/lib/errno.h"
#include "kernel/lib/random.h"
#include "tests/host/crash/check.h"
#include "tests/host/crash/cut.h"
#include "tests/host/crash/judge.h"
#include "tests/host/ext/files.h"

#define ARENA_SIZE   ((size_t)1 << 30)
#define SECONDS_MAX  60 /* for one state, on a busy machine */
#define REQUESTS_MAX 400000u
#define STATE_SIZE   4096u

/* How many states of each kind there were, and how many were wrong. */
struct counts {
	uint32_t prefixes, subsets, torn, sessions, recovery, later, checked, wrong;
};

/* What children tell: shared memory. */
struct telling {
	struct counts counts;
	char problem[PROBLEM_SIZE];
	char failure[PROBLEM_SIZE]; /* what fail() said */
	uint32_t said;		    /* violations of this workload that were printed */
};

static struct arena *first_arena, *second_arena, *state_arena, *own_arena;
static struct telling *telling;

/* What is explored: a session, and how far its writes were applied to the disk of this process. */
struct exploration {
	const struct settings *settings;
	const char *workload;
	char prefix[STATE_SIZE]; /* of a state's name: "" or "17-14/files:" */
	const struct session *session;
	struct random random;
	uint32_t applied;
};

void explore_begin(void)
{
	first_arena = arena_make(ARENA_SIZE);
	second_arena = arena_make(ARENA_SIZE);
	state_arena = arena_make(ARENA_SIZE);
	own_arena = arena_make(1u << 16);
	telling = arena_take(own_arena, sizeof(*telling));
	fail_text = telling->failure;
}

static void report(const struct exploration *explored, const char *state)
{
	telling->counts.wrong++;
	if (telling->said++ < explored->settings->limit)
		printf("violation\t%s\t%s%s\t%s\n", explored->workload, explored->prefix, state,
		       telling->problem);
	fflush(stdout);
}

/* Runs something in a process of its own. Returns whether there is no problem. */
static bool apart(void (*run)(void *context), void *context)
{
	int status;
	pid_t child;

	telling->problem[0] = telling->failure[0] = '\0';
	fflush(stdout);
	child = fork();
	if (child == 0) {
		alarm(SECONDS_MAX);
		disk.budget = REQUESTS_MAX;
		run(context);
		fflush(stdout);
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		fail("no process for a state");
	if (WIFSIGNALED(status))
		snprintf(telling->problem, PROBLEM_SIZE, "ended by signal %d (%s): %.600s",
			 WTERMSIG(status), strsignal(WTERMSIG(status)), telling->failure);
	else if (status != 0)
		snprintf(telling->problem, PROBLEM_SIZE, "ended with status 0x%x", status);
	return telling->problem[0] == '\0';
}

/* One state to judge. */
struct state {
	const struct exploration *explored;
	const struct cut *cut;
	bool checked; /* by e2fsck, too */
};

static void complain(const char *what, int error)
{
	snprintf(telling->problem, PROBLEM_SIZE, "%s: %s", what, errno_name(-error));
}

/* In a process of its own. */
static void judge_state(void *context)
{
	const struct state *state = context;
	const struct exploration *explored = state->explored;
	struct model *tree;
	int error;

	cut_apply(state->cut, &explored->session->record, explored->applied);
	if (state->checked && !check_replay(telling->problem))
		return;
	error = files_mount(&explored->settings->options);
	if (error) {
		complain("mount", error);
		return;
	}
	arena_reset(state_arena);
	tree = tree_read(state_arena, telling->problem);
	if (tree == NULL ||
	    judge(explored->session, state->cut->position, tree, telling->problem) < 0)
		return;
	error = files_unmount();
	if (error)
		complain("unmount", error);
	else if (state->checked)
		check_clean(telling->problem);
}

static void
try
	(struct exploration *explored, const struct cut *cut)
	{
		uint32_t percent = explored->settings->fsck;
		struct state state = { explored, cut,
				       random_below(&explored->random, 100) < percent };
		char name[STATE_SIZE];

		telling->counts.checked += state.checked;
		if (apart(judge_state, &state))
			return;
		cut_print(cut, name, sizeof(name));
		report(explored, name);
	}

/* A second session that begins with a state. */
struct beginning {
	const struct exploration *explored;
	const struct cut *cut;
	struct session *session;
};

static void run_second(void *context)
{
	const struct beginning *beginning = context;
	const struct exploration *explored = beginning->explored;
	struct session *session = beginning->session;
	const struct ext_options *options = &explored->settings->options;

	if (!session_begin(session, options)) {
		strcpy(telling->problem, session->problem);
		return;
	}
	if (judge(explored->session, beginning->cut->position, session->trees[0],
		  telling->problem) < 0)
		return;
	if (!session_operate(session, options))
		snprintf(telling->problem, PROBLEM_SIZE, "second session: %.900s",
			 session->problem);
}

/* The disk up to the last flush before a position; positions only grow. */
static void advance(struct exploration *explored, uint32_t position)
{
	uint32_t end = cut_epoch(&explored->session->record, position);
	struct cut all = { .position = end, .torn = NOT_TORN };

	cut_apply(&all, &explored->session->record, explored->applied);
	explored->applied = end;
}

static int compare_numbers(const void *one, const void *other)
{
	uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;

	return a < b ? -1 : a > b;
}

#define CUTS_MAX 64u

/* Cuts in the second session, half of them in its recovery, if that wrote anything. */
static void cut_second(struct exploration *explored)
{
	const struct session *session = explored->session;
	uint32_t recovery = (uint32_t)session->ends[0], all = (uint32_t)session->record.count;
	uint32_t count = explored->settings->cuts, places[CUTS_MAX];

	if (count > CUTS_MAX)
		count = CUTS_MAX;
	for (uint32_t i = 0; i < count; i++)
		places[i] = i % 2 == 0 ? (uint32_t)random_below(&explored->random, recovery + 1)
				       : (uint32_t)random_below(&explored->random, all + 1);
	qsort(places, count, sizeof(places[0]), compare_numbers);
	for (uint32_t i = 0; i < count; i++) {
		struct cut cut = { .position = places[i], .torn = NOT_TORN };
		uint32_t way = (uint32_t)random_below(&explored->random, 3);

		advance(explored, places[i]);
		if (way == 1)
			cut_subset(&cut, &session->record, places[i], &explored->random);
		if (way == 2 && !cut_torn(&cut, &session->record, places[i], &explored->random))
			cut = (struct cut){ .position = places[i], .torn = NOT_TORN };
		if (places[i] <= recovery)
			telling->counts.recovery++;
		else
			telling->counts.later++;
		try
			(explored, &cut);
	}
}

/* Makes the exploration of a second session, whose name follows that of the cut. */
static void name_second(struct exploration *inner, const struct exploration *explored,
			const struct cut *cut, const struct script *script)
{
	size_t length;

	*inner = *explored;
	inner->applied = 0;
	cut_print(cut, inner->prefix, sizeof(inner->prefix));
	length = strlen(inner->prefix);
	snprintf(inner->prefix + length, sizeof(inner->prefix) - length, "/%s:", script->name);
}

/* What a process does that has a state's disk and tries a second session on it. */
struct seconds {
	struct exploration *explored;
	const struct cut *cut;
	const struct script *script;
	const char *only; /* one cut of it; NULL: as the settings say */
};

static void explore_second(void *context)
{
	const struct seconds *seconds = context;
	const struct exploration *explored = seconds->explored;
	struct exploration inner;
	struct beginning beginning = { explored, seconds->cut, NULL };

	alarm(0);
	cut_apply(seconds->cut, &explored->session->record, explored->applied);
	arena_reset(second_arena);
	beginning.session = session_make(second_arena, seconds->script);
	name_second(&inner, explored, seconds->cut, seconds->script);
	inner.session = beginning.session;
	if (!apart(run_second, &beginning)) {
		report(&inner, "");
	} else if (seconds->only == NULL) {
		cut_second(&inner);
	} else {
		struct cut cut;

		cut_parse(&cut, seconds->only);
		advance(&inner, cut.position);
		try
			(&inner, &cut);
	}
	telling->problem[0] = '\0'; /* it was said */
}

static void try_second(struct exploration *explored, const struct cut *cut)
{
	const struct settings *settings = explored->settings;
	uint32_t chosen = (uint32_t)random_below(&explored->random, settings->script_count);
	struct seconds seconds = { explored, cut, &settings->scripts[chosen], NULL };

	telling->counts.sessions++;
	random_next(&explored->random);
	if (!apart(explore_second, &seconds))
		report(explored, "second session");
}

/* How many of `all` states are at one of `places`, on average, by chance. */
static uint32_t share(struct random *random, uint32_t all, uint32_t places)
{
	uint32_t rest = (uint32_t)random_below(random, places) < all % places;

	return all / places + rest;
}

static void explore_position(struct exploration *explored, uint32_t position, uint32_t places)
{
	const struct settings *settings = explored->settings;
	const struct disk_record *record = &explored->session->record;
	struct random *random = &explored->random;
	struct cut cut = { .position = position, .torn = NOT_TORN };

	advance(explored, position);
	if (settings->prefixes > 0 && random_below(random, settings->prefixes) == 0) {
		telling->counts.prefixes++;
		try
			(explored, &cut);
	}
	for (uint32_t i = share(random, settings->subsets, places); i > 0; i--)
		if (cut_subset(&cut, record, position, random)) {
			telling->counts.subsets++;
			try
				(explored, &cut);
		}
	for (uint32_t i = share(random, settings->torn, places); i > 0; i--)
		if (cut_torn(&cut, record, position, random)) {
			telling->counts.torn++;
			try
				(explored, &cut);
		}
	if (settings->script_count == 0)
		return;
	for (uint32_t i = share(random, settings->second, places); i > 0; i--) {
		if (random_below(random, 2) == 0 || !cut_subset(&cut, record, position, random))
			cut = (struct cut){ .position = position, .torn = NOT_TORN };
		try_second(explored, &cut);
	}
}

/* A flush changes nothing: the cut after it is that before it. */
static bool is_place(const struct disk_record *record, uint32_t position)
{
	return position == 0 || record->entries[position - 1].sectors > 0;
}

static void explore_all(struct exploration *explored)
{
	const struct session *session = explored->session;
	uint32_t first = (uint32_t)session->ends[session->script->quiet];
	uint32_t last = (uint32_t)session->record.count, places = 0;

	if (session->script->quiet == 0)
		first = 0;
	for (uint32_t position = first; position <= last; position++)
		places += is_place(&session->record, position);
	for (uint32_t position = first; position <= last; position++)
		if (is_place(&session->record, position))
			explore_position(explored, position, places);
}

static void explore_only(struct exploration *explored, const char *text)
{
	const struct settings *settings = explored->settings;
	struct cut cut;
	char *only;

	text = cut_parse(&cut, text);
	advance(explored, cut.position);
	if (*text != '/') {
		try
			(explored, &cut);
		return;
	}
	text++;
	only = strchr(text, ':');
	for (uint32_t i = 0; i < settings->script_count; i++) {
		const struct script *script = &settings->scripts[i];
		size_t length = strlen(script->name);
		struct seconds seconds = { explored, &cut, script, only != NULL ? only + 1 : NULL };

		if (strncmp(script->name, text, length) == 0 && text[length] <= ':')
			apart(explore_second, &seconds);
	}
}

struct run {
	struct session *session;
	const struct settings *settings;
};

static void run_first(void *context)
{
	const struct run *run = context;
	const struct settings *settings = run->settings;

	if (settings->log != NULL) {
		if (!session_load(run->session, &settings->options, settings->log))
			strcpy(telling->problem, run->session->problem);
		return;
	}
	if (!session_begin(run->session, &settings->options) ||
	    !session_operate(run->session, &settings->options))
		strcpy(telling->problem, run->session->problem);
}

static uint64_t milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void print_counts(const struct exploration *explored, uint64_t started)
{
	const struct counts *counts = &telling->counts;
	const struct session *session = explored->session;

	printf("workload\t%s\t%u\t%zu\t%u\t%u\t%u\t%u\t%u\t%u\t%u\t%u\t%ju\n", explored->workload,
	       session->done, session->record.count, counts->prefixes, counts->subsets,
	       counts->torn, counts->sessions, counts->recovery, counts->later, counts->checked,
	       counts->wrong, milliseconds() - started);
	fflush(stdout);
}

/* The disk of this process must not change: what is applied is in a child. */
static void explore_apart(void *context)
{
	struct exploration *explored = context;

	alarm(0);
	if (explored->settings->only != NULL)
		explore_only(explored, explored->settings->only);
	else
		explore_all(explored);
	telling->problem[0] = '\0';
}

/* And how many requests there were after the mount, and after each operation. */
static void save_record(const struct session *session, const char *path)
{
	record_save(&session->record, path);
	printf("ends\t");
	for (uint32_t i = 0; i <= session->done; i++)
		printf("%ju ", session->ends[i]);
	printf("\n");
}

void explore(const struct settings *settings, const struct script *script)
{
	struct exploration explored = { .settings = settings, .workload = script->name };
	uint64_t started = milliseconds();
	struct run run = { NULL, settings };

	telling->counts = (struct counts){ 0 };
	telling->said = 0;
	explored.random.state = settings->seed;
	for (const char *at = script->name; *at != '\0'; at++)
		explored.random.state = explored.random.state * 31 + (uint8_t)*at;
	arena_reset(first_arena);
	explored.session = run.session = session_make(first_arena, script);
	if (!apart(run_first, &run))
		report(&explored, "no cut");
	if (settings->save != NULL)
		save_record(run.session, settings->save);
	if (run.session->trees[0] != NULL && !apart(explore_apart, &explored))
		report(&explored, "all");
	print_counts(&explored, started);
}
