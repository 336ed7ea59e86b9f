/* Options on the command line, as POSIX's getopt reads them. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

char *optarg;
int optind = 1, opterr = 1, optopt;

static const char *rest; /* of a word with several letters */

static int refuse(const char *program, const char *why, int answer)
{
	if (opterr)
		fprintf(stderr, "%s: %s -- %c\n", program, why, optopt);
	return answer;
}

/* An option's argument: the rest of its word, or the next one. Returns -1 without. */
static int take_argument(int count, char *const arguments[])
{
	if (*rest)
		optarg = (char *)rest;
	else if (optind < count)
		optarg = arguments[optind++];
	else
		return -1;
	rest = NULL;
	return 0;
}

int getopt(int count, char *const arguments[], const char *options)
{
	if (!rest || !*rest) {
		if (optind >= count || arguments[optind][0] != '-' || !arguments[optind][1])
			return -1;
		rest = arguments[optind++] + 1;
		if (strcmp(rest, "-") == 0) {
			rest = NULL;
			return -1;
		}
	}
	optopt = *rest++;
	const char *known = optopt == ':' ? NULL : strchr(options, optopt);

	if (!known)
		return refuse(arguments[0], "unknown option", '?');
	if (known[1] == ':' && take_argument(count, arguments) < 0)
		return refuse(arguments[0], "option requires an argument",
			      *options == ':' ? ':' : '?');
	return optopt;
}
