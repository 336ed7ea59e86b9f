/*
 * The file system on damaged images, mounted for writing: for libFuzzer, or for random.c.
 *
 * The environment's FUZZ_IMAGE is a small image. Work is done on it first, without an unmount, so
 * that its journal has something to replay. FUZZ_SECTORS, if it is there, is a file with lines of a
 * first sector and a count: only these are damaged. An input is a list of these:
 *
 *	0x00-0x7f  sector(2)  offset(2)  bytes...	a patch, before the mount
 *	0x80-0xff  first  second			an operation after it, on two paths
 *
 * A patch has (first byte % 16) + 1 bytes, of any sector that is not data.
 *
 * Wrong is: an access outside the device, more requests than any sound work needs, memory or a
 * reference that is lost, and whatever a sanitizer says.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/cache/bcache.h"
#include "tests/host/ext/files.h"
#include "tests/host/ext/shim.h"
#include "tests/host/fuzz/fuzz.h"

#define BUFFERS	     512u
#define REQUESTS_MAX 60000u
#define INPUT_MAX    4096u
#define VISITS_MAX   400u
#define DEPTH_MAX    6u
#define OPERATIONS   24u /* of one input, at most */

static uint8_t *pristine;
static uint32_t *sectors; /* those that are not data */
static uint32_t sector_count;
static struct ext_options options = { .now = clock_count };

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const char *const paths[] = {
	"/foo", "/A/bar", "/A/sub/deep", "/A", "/B",	"/new",	     "/A/new",	    "/many/0",
	"/B/x", "/link",  "/long",	 "/",  "/many", "/many/250", "/A/sub/none", "/holes",
};

/* %1$s and %2$s are paths, %3$u a number. */
static const char *const formats[] = {
	"create %1$s",
	"mkdir %1$s",
	"unlink %1$s",
	"rmdir %1$s",
	"rename %1$s %2$s",
	"link %1$s %2$s",
	"symlink x %1$s",
	"exchange %1$s %2$s",
	"write %1$s %3$u 5000 7",
	"append %1$s 3000 8",
	"truncate %1$s 0",
	"truncate %1$s %3$u",
	"punch %1$s 1024 %3$u",
	"allocate %1$s 0 %3$u",
	"fsync %1$s",
	"sync",
	"write %1$s %3$u 9 7",
	"open %1$s",
	"close",
	"chmod %1$s 0600",
};

/* For the last of the first bytes: inputs that were found before these mean what they did. */
static const char *const attribute_formats[] = {
	"setattr %1$s user.a %3$u 7",	   "setattr %1$s user.b 20 8",
	"setattr %1$s trusted.long 700 9", "removeattr %1$s user.a",
	"removeattr %1$s trusted.long",	   "setattr %1$s security.c 100 3 replace",
};

#define ATTRIBUTES_FROM 0x78

static const char *format_of(uint8_t what)
{
	if (what >= ATTRIBUTES_FROM)
		return attribute_formats[(what - ATTRIBUTES_FROM) % COUNT_OF(attribute_formats)];
	return formats[what % COUNT_OF(formats)];
}

/* ---- reading everything ---- */

struct visit {
	unsigned visits, depth;
};

static void read_attributes(const struct ext_inode *inode)
{
	static char names[70000];
	static uint8_t value[4096];
	int length = ext_attribute_list(inode, names, sizeof(names));

	for (int at = 0; at < length; at += (int)strlen(&names[at]) + 1)
		ext_attribute_get(inode, &names[at], value, sizeof(value));
}

static int visit_entry(void *context, const char *name, uint32_t number, uint8_t type)
{
	static uint8_t buffer[40000];
	struct visit *visit = context;
	struct ext_inode inode;

	(void)type;
	if (visit->visits++ >= VISITS_MAX)
		return 1;
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
	    ext_inode_read(fs, number, &inode) != 0)
		return 0;
	read_attributes(&inode);
	if (!ext_is_directory(&inode)) {
		ext_read(&inode, 0, buffer, sizeof(buffer));
	} else if (visit->depth < DEPTH_MAX) {
		visit->depth++;
		ext_list(&inode, visit_entry, visit);
		visit->depth--;
	}
	return 0;
}

static void read_all(void)
{
	struct visit visit = { 0 };
	struct ext_inode root;

	if (ext_inode_read(fs, 2, &root) == 0)
		ext_list(&root, visit_entry, &visit);
}

/* ---- one input ---- */

struct input {
	const uint8_t *bytes;
	size_t left;
};

static uint8_t next_byte(struct input *input)
{
	if (input->left == 0)
		return 0;
	input->left--;
	return *input->bytes++;
}

static void patch(struct input *input, unsigned length)
{
	uint32_t place = next_byte(input) | (uint32_t)next_byte(input) << 8;
	uint32_t offset = next_byte(input) | (uint32_t)next_byte(input) << 8;
	uint32_t lba = sectors[place % sector_count];
	uint8_t *sector = disk.bytes + (uint64_t)lba * SECTOR_SIZE;

	record_add(&disk.record, lba, 1, sector); /* to be restored */
	for (unsigned i = 0; i <= length; i++)
		sector[(offset + i) % SECTOR_SIZE] = next_byte(input);
}

static void operate(uint8_t what, uint8_t first, uint8_t second)
{
	char line[128];

	snprintf(line, sizeof(line), format_of(what), paths[first % COUNT_OF(paths)],
		 paths[second % COUNT_OF(paths)], (unsigned)second * second * 4);
	files_operate(line);
}

/* Applies the patches, and keeps the operations for after the mount. */
static unsigned read_input(struct input *input, uint8_t (*calls)[3])
{
	unsigned count = 0;

	while (input->left > 0) {
		uint8_t what = next_byte(input);

		if (what < 0x80) {
			patch(input, what % 16);
		} else if (count < OPERATIONS) {
			calls[count][0] = what & 0x7f;
			calls[count][1] = next_byte(input);
			calls[count++][2] = next_byte(input);
		}
	}
	return count;
}

/* The image as it was: every sector that anybody may have changed. */
static void restore(void)
{
	for (size_t i = 0; i < disk.record.count; i++) {
		uint64_t at = disk.record.entries[i].lba * SECTOR_SIZE;

		memcpy(disk.bytes + at, pristine + at,
		       (size_t)disk.record.entries[i].sectors * SECTOR_SIZE);
	}
	disk.record.count = disk.record.used = 0;
}

/* Nothing of one input is there for the next. What could not be written is looked for only if
 * there is some. */
static void forget_all(void)
{
	bcache_drop();
	bcache_shrink(UINT32_MAX);
	for (uint32_t size = 1024; size <= 4096 && pages_in_use != 0; size *= 2)
		bcache_forget(&disk.device, 0, disk.device.sectors * SECTOR_SIZE / size, size);
	bcache_drop();
	bcache_shrink(UINT32_MAX);
	if (pages_in_use != 0)
		fail("%zu pages, or buffers, are lost", pages_in_use);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct input input = { bytes, length < INPUT_MAX ? length : INPUT_MAX };
	uint8_t calls[OPERATIONS][3];
	unsigned count;

	disk.budget = REQUESTS_MAX;
	count = read_input(&input, calls);
	if (files_mount(&options) == 0) {
		read_all();
		for (unsigned i = 0; i < count; i++)
			operate(calls[i][0], calls[i][1], calls[i][2]);
		files_unmount();
	}
	forget_all();
	restore();
	return 0;
}

/* ---- the image ---- */

/* What was done before the power went: the journal must be replayed, and there is an orphan. */
static const char *const work[] = {
	"create /new",	     "write /new 0 9000 5",
	"mkdir /A/C",	     "rename /A/sub/deep /A/C/deep",
	"append /foo 700 6", "sync",
	"unlink /B/x",	     "open /A/C/deep",
	"unlink /A/C/deep",  "truncate /foo 3000",
	"create /B/y",	     "sync",
};

/* Whether each sector is one of those that FUZZ_SECTORS lists. */
static void note_wanted(bool *wanted)
{
	const char *path = getenv("FUZZ_SECTORS");
	FILE *file = path != NULL ? fopen(path, "r") : NULL;
	unsigned long first, count;

	if (path != NULL && file == NULL)
		fail("cannot read %s", path);
	memset(wanted, path == NULL, disk.device.sectors);
	while (file != NULL && fscanf(file, "%lu %lu", &first, &count) == 2)
		for (unsigned long lba = first; lba < first + count; lba++)
			if (lba < disk.device.sectors)
				wanted[lba] = true;
	if (file != NULL)
		fclose(file);
}

/* With FUZZ_ATTRIBUTES in the environment. Without, inputs that were found mean what they did. */
static const char *const attribute_work[] = {
	"setattr /A/bar user.a 20 3", "setattr /A/bar user.b 500 4",
	"setattr /B user.long 600 5", "setattr /foo trusted.a 30 6",
	"setattr /new user.b 300 7",  "removeattr /A/bar user.a",
	"setattr /foo user.a 500 4",  "sync",
};

static void work_on(const char *const *lines, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		files_operate(lines[i]);
}

static void note_touched(void)
{
	bool *wanted = calloc(disk.device.sectors, sizeof(*wanted));

	sectors = calloc(disk.device.sectors, sizeof(*sectors));
	note_wanted(wanted);
	for (uint32_t lba = 0; lba < disk.device.sectors; lba++)
		if (disk.touched[lba] && wanted[lba])
			sectors[sector_count++] = lba;
	if (sector_count == 0)
		fail("no sector to damage");
	free(wanted);
	free(disk.touched);
	disk.touched = NULL;
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
	const char *image = getenv("FUZZ_IMAGE");
	uint64_t size;

	(void)count;
	(void)arguments;
	if (image == NULL)
		fail("FUZZ_IMAGE is to name an image");
	console_on = false;
	disk_open(image, "hdc", DISK_PRIVATE);
	size = disk.device.sectors * SECTOR_SIZE;
	bcache_init(BUFFERS);
	pristine = malloc(size);
	disk.recording = true;
	if (files_mount(&options) != 0)
		fail("%s cannot be mounted", image);
	work_on(work, COUNT_OF(work));
	if (getenv("FUZZ_ATTRIBUTES") != NULL)
		work_on(attribute_work, COUNT_OF(attribute_work));
	memcpy(pristine, disk.bytes, size);
	files_unmount();
	forget_all();
	restore();
	if (memcmp(disk.bytes, pristine, size) != 0)
		fail("a write was not recorded");
	disk.touched = calloc(1, disk.device.sectors);
	LLVMFuzzerTestOneInput(NULL, 0);
	note_touched();
	return 0;
}
