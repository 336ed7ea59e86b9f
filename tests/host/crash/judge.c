/* Judges a tree that was there after a power cut. */
#include "tests/host/crash/judge.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MODE_TYPE    0170000u
#define MODE_REGULAR 0100000u

enum ext_data judge_data;
bool judge_weakly;

static bool differs(char *problem, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool differs(char *problem, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(problem, PROBLEM_SIZE, format, arguments);
	va_end(arguments);
	return false;
}

/* One comparison: a tree from a disk, and those that it may be, from `least` to `most`. */
struct comparison {
	const struct model *tree;
	struct model *const *trees;
	uint32_t least, most; /* of contents; names are those of `least` */
	uint32_t safe;	      /* the first tree of which there may be anything */
	char *problem;
};

static bool is_regular(const struct model_file *file)
{
	return (file->mode & MODE_TYPE) == MODE_REGULAR;
}

static uint32_t first_contents(const struct comparison *with)
{
	return judge_weakly ? with->safe : with->least;
}

static uint32_t last_size(const struct comparison *with)
{
	return judge_weakly || with->least == with->most ? with->most : with->least + 1;
}

/* A long write that was cut: longer than before it, shorter than after it. */
static bool size_between(const struct comparison *with, uint32_t index, uint64_t size)
{
	uint64_t shortest = UINT64_MAX, longest = 0;

	for (uint32_t at = first_contents(with); at <= last_size(with); at++) {
		const struct model *model = with->trees[at];

		if (index >= model->file_count)
			continue;
		if (model->files[index].size < shortest)
			shortest = model->files[index].size;
		if (model->files[index].size > longest)
			longest = model->files[index].size;
	}
	return size >= shortest && size <= longest &&
	       (judge_weakly || size > with->trees[with->least]->files[index].size);
}

static const char *attributes_of(const struct model_file *file)
{
	return file->attributes != NULL ? file->attributes : "";
}

static bool compare_file(const struct comparison *with, const char *path,
			 const struct model_file *file, uint32_t index)
{
	const struct model_file *wanted = &with->trees[with->least]->files[index];

	if (file->mode != wanted->mode)
		return differs(with->problem, "%s: mode 0%o, not 0%o", path, file->mode,
			       wanted->mode);
	if (file->links != wanted->links)
		return differs(with->problem, "%s: %u links, not %u", path, file->links,
			       wanted->links);
	if (strcmp(attributes_of(file), attributes_of(wanted)) != 0)
		return differs(with->problem, "%s: attributes \"%s\", not \"%s\"", path,
			       attributes_of(file), attributes_of(wanted));
	if (file->size != wanted->size && !size_between(with, index, file->size))
		return differs(with->problem, "%s: size %ju, not %ju", path, file->size,
			       wanted->size);
	if (!is_regular(file) && file->bytes != NULL &&
	    memcmp(file->bytes, wanted->bytes, file->size) != 0)
		return differs(with->problem, "%s: leads to %s, not to %s", path, file->bytes,
			       wanted->bytes);
	return true;
}

/* Two names are one file in both, or in neither. */
static bool same_identity(const struct comparison *with, uint32_t index)
{
	const struct model *tree = with->tree, *wanted = with->trees[with->least];

	for (uint32_t i = 0; i < index; i++)
		if ((tree->names[i].file == tree->names[index].file) !=
		    (wanted->names[i].file == wanted->names[index].file))
			return differs(with->problem, "%s and %s: one file, or two",
				       tree->names[i].path, tree->names[index].path);
	return true;
}

/* Names, and what is known of each file but for contents. */
static bool compare_shape(const struct comparison *with)
{
	const struct model *tree = with->tree, *wanted = with->trees[with->least];

	for (uint32_t i = 0; i < tree->name_count || i < wanted->name_count; i++) {
		const char *path = i < tree->name_count ? tree->names[i].path : "\xff";
		const char *other = i < wanted->name_count ? wanted->names[i].path : "\xff";
		int order = strcmp(path, other);

		if (order != 0)
			return differs(with->problem, "%s is %s", order < 0 ? path : other,
				       order < 0 ? "there" : "missing");
		if (!compare_file(with, path, &tree->files[tree->names[i].file],
				  wanted->names[i].file) ||
		    !same_identity(with, i))
			return false;
	}
	return true;
}

/* Whether a sector is what the file had there; what is beyond its end is zeros. */
static bool sector_equals(const uint8_t *sector, const struct model_file *file, uint64_t offset,
			  uint64_t length)
{
	static const uint8_t zeros[SECTOR_SIZE];
	uint64_t known = file->size > offset ? file->size - offset : 0;

	if (known > length)
		known = length;
	if (file->bytes == NULL)
		known = 0;
	return (known == 0 || memcmp(sector, file->bytes + offset, known) == 0) &&
	       memcmp(sector + known, zeros, length - known) == 0;
}

/* The last tree whose contents a file may have: with data in the journal that of its name, too. */
static uint32_t last_contents(const struct comparison *with)
{
	if (judge_data == EXT_DATA_JOURNAL && with->least < with->most)
		return with->least + 1; /* of an operation in parts */
	return with->most;
}

static bool sector_allowed(const struct comparison *with, uint32_t index, const uint8_t *sector,
			   uint64_t offset, uint64_t length)
{
	for (uint32_t at = first_contents(with); at <= last_contents(with); at++) {
		const struct model *model = with->trees[at];

		if (index < model->file_count &&
		    sector_equals(sector, &model->files[index], offset, length))
			return true;
	}
	return false;
}

/* In writeback mode only contents that nothing has changed since the promise are known. */
static bool contents_known(const struct comparison *with, uint32_t index)
{
	const struct model *first = with->trees[with->least], *last = with->trees[with->most];

	return judge_data != EXT_DATA_WRITEBACK ||
	       (index < first->file_count && first->files[index].bytes == last->files[index].bytes);
}

static bool contents_differ(const struct comparison *with, const char *path, const uint8_t *sector,
			    uint64_t offset)
{
	const uint32_t *words = (const uint32_t *)sector;

	return differs(
	    with->problem,
	    "%s: the sector at byte %ju has %08x %08x (place %ju of write %u), which the "
	    "file never had there since",
	    path, offset, words[0], words[1], ((uint64_t)words[0] - 1) * 8, words[1]);
}

static bool compare_contents(const struct comparison *with)
{
	const struct model *tree = with->tree, *wanted = with->trees[with->least];

	for (uint32_t i = 0; i < tree->name_count; i++) {
		const struct model_file *file = &tree->files[tree->names[i].file];
		uint32_t index = wanted->names[i].file;

		if (!is_regular(file) || !contents_known(with, index))
			continue;
		for (uint64_t at = 0; at < file->size; at += SECTOR_SIZE) {
			uint64_t left = file->size - at;
			uint64_t length = left < SECTOR_SIZE ? left : SECTOR_SIZE;

			if (!sector_allowed(with, index, file->bytes + at, at, length))
				return contents_differ(with, tree->names[i].path, file->bytes + at,
						       at);
		}
	}
	return true;
}

/* The last operation that had ended before the cut, and promised safety; 0: none but the mount. */
static uint32_t last_promise(const struct session *session, uint64_t position)
{
	uint32_t last = 0;

	for (uint32_t i = 1; i <= session->done && session->ends[i] <= position; i++)
		if (session->durable[i])
			last = i;
	return last;
}

/* The last operation that had begun. One that made no request yet changes nothing on the disk. */
static uint32_t last_begun(const struct session *session, uint64_t position)
{
	uint32_t last = 0;

	for (uint32_t i = 1; i <= session->done && session->ends[i - 1] < position; i++)
		last = i;
	return last;
}

/* The reason to tell is that of the first tree whose names and sizes are right; if there is none,
 * that of the last tree. */
int judge(const struct session *session, uint64_t position, const struct model *tree, char *problem)
{
	uint32_t first = last_promise(session, position), last = last_begun(session, position);
	char reason[PROBLEM_SIZE] = "";
	bool shaped = false;

	if (last < first)
		last = first;
	for (uint32_t i = first; i <= last; i++) {
		char here[PROBLEM_SIZE];
		struct comparison with = { tree, session->trees, i, last, first, here };
		bool shape = compare_shape(&with);

		if (shape && compare_contents(&with))
			return (int)i;
		if (shape || !shaped)
			snprintf(reason, sizeof(reason), "%s", here);
		shaped |= shape;
	}
	snprintf(problem, PROBLEM_SIZE, "%.900s [the trees after operations %u to %u are allowed]",
		 reason, first, last);
	return -1;
}

bool trees_equal(const struct model *tree, const struct model *wanted, char *problem)
{
	struct model *const trees[] = { (struct model *)wanted };
	struct comparison with = { tree, trees, 0, 0, 0, problem };

	return compare_shape(&with) && compare_contents(&with);
}
