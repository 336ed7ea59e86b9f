/* Words: where they end, and their expansion. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/sh/sh.h"

int last_status;
pid_t last_background;
char **positional;

/* What a word has become so far. */
struct text {
	char *characters;
	size_t length, room;
};

static void append(struct text *text, char character)
{
	if (text->length + 1 >= text->room) {
		text->room = text->room * 2 + 32;
		text->characters = realloc(text->characters, text->room);
		if (!text->characters) {
			fprintf(stderr, "sh: no memory left\n");
			exit(STATUS_USAGE);
		}
	}
	text->characters[text->length++] = character;
	text->characters[text->length] = '\0';
}

const char *word_end(const char *text)
{
	char quote = 0;

	for (; *text; text++) {
		if (*text == '\\' && quote != '\'' && text[1])
			text++;
		else if (quote)
			quote = *text == quote ? 0 : quote;
		else if (*text == '\'' || *text == '"')
			quote = *text;
		else if (isspace(*text) || strchr(";&|()<>", *text))
			break;
	}
	return quote ? NULL : text;
}

/* ---- variables ---- */

/* Those that are not exported: NAME=value, as in the environment. */
static char *own[32];

static size_t name_length(const char *text)
{
	size_t length = 0;

	while (isalnum(text[length]) || text[length] == '_')
		length++;
	return isdigit(*text) ? 0 : length;
}

bool word_is_assignment(const char *word)
{
	size_t length = name_length(word);

	return length > 0 && word[length] == '=';
}

/* The place of a variable, or one for it; NULL when there is none left. */
static char **find_own(const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (!own[i] || (strncmp(own[i], name, length) == 0 && own[i][length] == '='))
			return &own[i];
	return NULL;
}

void variable_assign(const char *assignment, bool exported)
{
	size_t length = name_length(assignment);
	char *name = strndup(assignment, length), **place = find_own(assignment, length);

	if (exported || getenv(name)) {
		setenv(name, assignment + length + 1, 1);
	} else if (place) {
		free(*place);
		*place = strdup(assignment);
	} else {
		fprintf(stderr, "sh: too many variables\n");
	}
	free(name);
}

static const char *value_of(const char *name, size_t length)
{
	char **place = find_own(name, length), *copy = strndup(name, length);
	const char *value = getenv(copy);

	free(copy);
	if (!value && place && *place)
		value = *place + length + 1;
	return value;
}

static const char *positional_at(int index)
{
	int count = 0;

	while (positional[count])
		count++;
	return index < count ? positional[index] : NULL;
}

static void append_text(struct text *text, const char *value)
{
	for (; value && *value; value++)
		append(text, *value);
}

static void append_number(struct text *text, int value)
{
	char digits[16];

	snprintf(digits, sizeof(digits), "%d", value);
	append_text(text, digits);
}

/* Replaces what follows a '$'. Returns the place after it. */
static const char *append_variable(struct text *text, const char *place)
{
	bool braces = *place == '{';
	size_t length = name_length(place += braces);

	if (length > 0)
		append_text(text, value_of(place, length));
	else if (*place == '?')
		append_number(text, last_status);
	else if (*place == '$')
		append_number(text, getpid());
	else if (*place == '!')
		append_number(text, last_background);
	else if (isdigit(*place))
		append_text(text, positional_at(*place - '0'));
	else
		append(text, '$');
	if (length == 0 && (isdigit(*place) || (*place && strchr("?$!", *place))))
		length = 1;
	place += length;
	return braces && *place == '}' ? place + 1 : place;
}

/* What a backslash does between double quotes: it is itself, but before these. */
static bool is_escape(const char *place, char quote)
{
	return *place == '\\' && place[1] && (!quote || strchr("\\\"$`", place[1]));
}

char *word_expand(const char *word)
{
	struct text text = { 0 };
	bool was_quoted = false;
	char quote = 0;

	while (*word) {
		if (quote != '\'' && is_escape(word, quote)) {
			append(&text, word[1]);
			word += 2;
		} else if (quote != '\'' && *word == '$') {
			word = append_variable(&text, word + 1);
		} else if (quote ? *word == quote : *word == '\'' || *word == '"') {
			quote = quote ? 0 : *word;
			was_quoted = true;
			word++;
		} else {
			append(&text, *word++);
		}
	}
	if (!text.characters && was_quoted)
		return strdup("");
	return text.characters;
}
