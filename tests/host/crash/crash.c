/*
 * The crash laboratory on the host: workloads from stdin run on an image, with all their requests
 * recorded, and then the power is cut at each of them.
 *
 *	crash IMAGE [NAME=VALUE...]	seed, subsets, torn, second, cuts, fsck, data, barriers,
 *					only, save, limit (see `settings`)
 *
 *	second NAME			a list of operations for a second session, up to "end"
 *	workload NAME			one to be cut; a line "quiet" ends what is not cut
 *	create /a			an operation of tests/host/ext/files.h, or "again"
 *	end
 *
 * A state is named by its cut (cut.h), and, after a second session on it, that one's name and cut:
 * "17-14/files:5". For each workload there is a line "workload NAME ..." with counts, and for each
 * state that is wrong "violation NAME STATE REASON", parted by tabs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/cache/bcache.h"
#include "tests/host/crash/check.h"
#include "tests/host/crash/explore.h"
#include "tests/host/crash/judge.h"
#include "tests/host/ext/shim.h"

#define BUFFERS	    512u
#define LINES_MAX   2048u
#define SECONDS_MAX 16u

static struct settings settings = { .seed = 1, .fsck = 10, .limit = 5 };

static const struct {
	const char *name;
	uint32_t *value;
} numbers[] = {
	{ "subsets", &settings.subsets },   /* states with a part of the epoch, of a workload */
	{ "torn", &settings.torn },	    /* with a write of which some sectors are missing */
	{ "second", &settings.second },	    /* with a second session after recovery */
	{ "cuts", &settings.cuts },	    /* power cuts in each of those */
	{ "fsck", &settings.fsck },	    /* percent of the states that e2fsck sees */
	{ "limit", &settings.limit },	    /* violations of a workload that are said */
	{ "prefixes", &settings.prefixes }, /* every this many positions; 1: all */
};

static void set_data(const char *mode)
{
	if (strcmp(mode, "journal") == 0)
		settings.options.data = EXT_DATA_JOURNAL;
	else if (strcmp(mode, "writeback") == 0)
		settings.options.data = EXT_DATA_WRITEBACK;
	else if (strcmp(mode, "ordered") != 0)
		fail("data=%s: ordered, journal or writeback", mode);
	judge_data = settings.options.data;
}

static void set(char *argument)
{
	char *value = strchr(argument, '=');

	if (value == NULL)
		fail("%s: NAME=VALUE is wanted", argument);
	*value++ = '\0';
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (strcmp(argument, numbers[i].name) == 0) {
			*numbers[i].value = (uint32_t)strtoul(value, NULL, 0);
			return;
		}
	if (strcmp(argument, "seed") == 0)
		settings.seed = strtoull(value, NULL, 0);
	else if (strcmp(argument, "only") == 0)
		settings.only = value;
	else if (strcmp(argument, "log") == 0)
		settings.log = value;
	else if (strcmp(argument, "weak") == 0)
		judge_weakly = strcmp(value, "yes") == 0;
	else if (strcmp(argument, "save") == 0)
		settings.save = value;
	else if (strcmp(argument, "folder") == 0)
		check_folder = value;
	else if (strcmp(argument, "data") == 0)
		set_data(value);
	else if (strcmp(argument, "barriers") == 0)
		settings.options.no_barriers = strcmp(value, "no") == 0;
	else
		fail("no setting '%s'", argument);
}

/* Reads the lines of a script up to "end". */
static void read_script(struct script *script, const char *name)
{
	char line[1024];

	*script = (struct script){ .name = strdup(name) };
	script->lines = calloc(LINES_MAX, sizeof(*script->lines));
	while (fgets(line, sizeof(line), stdin) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (strcmp(line, "end") == 0)
			return;
		if (script->count == LINES_MAX)
			fail("%s has more than %u lines", name, LINES_MAX);
		if (strcmp(line, "quiet") == 0)
			script->quiet = script->count;
		else
			script->lines[script->count++] = strdup(line);
	}
	fail("%s has no end", name);
}

static void free_script(struct script *script)
{
	for (uint32_t i = 0; i < script->count; i++)
		free((char *)script->lines[i]);
	free(script->lines);
	free((char *)script->name);
}

static void read_all(void)
{
	static struct script seconds[SECONDS_MAX];
	char line[256];

	settings.scripts = seconds;
	while (fgets(line, sizeof(line), stdin) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "second ", 7) == 0 && settings.script_count < SECONDS_MAX) {
			read_script(&seconds[settings.script_count++], line + 7);
		} else if (strncmp(line, "workload ", 9) == 0) {
			struct script script;

			read_script(&script, line + 9);
			explore(&settings, &script);
			free_script(&script);
		} else {
			fail("no line '%s'", line);
		}
	}
}

int main(int count, char **arguments)
{
	if (count < 2)
		fail("usage: crash IMAGE [NAME=VALUE...] <WORKLOADS");
	settings.options.now = clock_count;
	settings.prefixes = 1;
	for (int i = 2; i < count; i++)
		set(arguments[i]);
	console_on = settings.only != NULL;
	disk_open(arguments[1], "hdc", DISK_PRIVATE);
	if (bcache_init(BUFFERS) != BUFFERS)
		fail("no memory for the cache");
	explore_begin();
	read_all();
	return 0;
}
