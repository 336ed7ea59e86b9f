/* Damages the image in memory, again and again, and uses the file system on what is left. */
#include "tests/host/ext/mutate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/cache/bcache.h"
#include "fs/ext/ext.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/random.h"
#include "tests/host/ext/shim.h"

#define REQUESTS_MAX 20000u /* for one mutation; an undamaged image takes a few hundred */
#define SECONDS_MAX  10
#define VISITS_MAX   300 /* directory entries */
#define DEPTH_MAX    6
#define ERRORS	     200
#define RANGES_MAX   4096

struct range {
	uint64_t start, length; /* bytes */
};

static struct range ranges[RANGES_MAX];
static unsigned range_count;
static unsigned results[ERRORS]; /* by errno; 0: a walk without an error */

struct visit {
	struct ext_fs *fs;
	struct random random;
	unsigned visits, depth;
	int worst; /* the first error, negative */
};

static void note(struct visit *visit, int64_t result)
{
	if (result < 0 && visit->worst == 0)
		visit->worst = (int)result;
}

/* Maps and reads at the edges of the formats and at random places. */
static void use_contents(struct visit *visit, const struct ext_inode *inode)
{
	static uint8_t buffer[70000];
	static const uint64_t edges[] = { 0, 11, 12, 267, 268, 65803, 65804, 16843019, UINT64_MAX };

	for (unsigned i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
		struct ext_mapping mapping = { .length = 1 };

		int error = ext_map(inode, edges[i], &mapping);

		if (error != -EINVAL) /* a short symbolic link has no map */
			note(visit, error);
		if (!error && mapping.length == 0)
			fail("mapping of length 0");
	}
	note(visit, ext_read(inode, 0, buffer, sizeof(buffer)));
	for (int i = 0; i < 4 && inode->size > 0; i++)
		note(visit,
		     ext_read(inode, random_below(&visit->random, inode->size), buffer, 700));
}

static void use_attributes(struct visit *visit, const struct ext_inode *inode)
{
	static char names[70000];
	static uint8_t value[4096];
	int length = ext_attribute_list(inode, names, sizeof(names));

	note(visit, length);
	for (const char *name = names; name < names + length; name += strlen(name) + 1) {
		int got = ext_attribute_get(inode, name, value, sizeof(value));

		/* A name may have a NUL in it, or be too long with its prefix. */
		if (got != -ENODATA && got != -ERANGE)
			note(visit, got);
	}
}

static int use_entry(void *context, const char *name, uint32_t number, uint8_t type);

static void use_inode(struct visit *visit, uint32_t number)
{
	struct ext_inode inode;
	int error = ext_inode_read(visit->fs, number, &inode);

	note(visit, error);
	if (error)
		return;
	use_contents(visit, &inode);
	use_attributes(visit, &inode);
	if (ext_is_directory(&inode) && visit->depth < DEPTH_MAX) {
		visit->depth++;
		note(visit, ext_list(&inode, use_entry, visit));
		visit->depth--;
	}
}

static int use_entry(void *context, const char *name, uint32_t number, uint8_t type)
{
	struct visit *visit = context;

	(void)type;
	if (visit->visits++ >= VISITS_MAX)
		return 1;
	if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
		use_inode(visit, number);
	return 0;
}

static void look_up_paths(struct visit *visit)
{
	static const char *const paths[] = { "/short", "/slow", "/dir/../dir/./a", "/loop",
					     "/none" };

	for (unsigned i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct ext_inode inode;
		int error = ext_lookup(visit->fs, paths[i], &inode);

		if (error != -ENOENT && error != -ELOOP)
			note(visit, error);
	}
}

static bool is_documented(int error)
{
	return error == 0 || error == -EUCLEAN || error == -EINVAL || error == -EOPNOTSUPP ||
	       error == -EBADMSG || error == -ENOTDIR || error == -ENAMETOOLONG;
}

/* Mounts, uses everything, unmounts. Returns the first error, or 0. */
static int use_all(uint64_t seed)
{
	const struct ext_options options = { .read_only = true, .must_be_clean = true };
	struct visit visit = { .random = { seed } };
	size_t pages = pages_in_use;

	alarm(SECONDS_MAX);
	disk.limit = disk.device.sectors;
	disk.budget = REQUESTS_MAX;
	note(&visit, ext_mount(&disk.device, &options, &visit.fs));
	if (!visit.worst) {
		const struct ext_summary *summary = ext_summary(visit.fs);

		disk.limit = summary->blocks * (summary->block_size / SECTOR_SIZE);
		use_inode(&visit, 2);
		look_up_paths(&visit);
		ext_unmount(visit.fs);
	}
	bcache_drop();
	bcache_shrink(UINT32_MAX);
	if (pages_in_use != pages)
		fail("%zu pages lost", pages_in_use - pages);
	if (!is_documented(visit.worst))
		fail("undocumented error %d", -visit.worst);
	return visit.worst;
}

/* Adds what the driver reads of an undamaged image, file contents left out, to the ranges. */
static void find_metadata(void)
{
	uint64_t sectors = disk.device.sectors;

	for (uint64_t lba = 0; lba < sectors && range_count < RANGES_MAX; lba++)
		if (disk.touched[lba])
			ranges[range_count++] = (struct range){ lba * SECTOR_SIZE, SECTOR_SIZE };
}

/* A random place in the ranges; three times of four one that is not zero, if that is quick. */
static uint64_t choose(struct random *random)
{
	uint64_t place = 0;

	for (int tries = 0; tries < 16; tries++) {
		const struct range *range = &ranges[random_below(random, range_count)];

		place = range->start + random_below(random, range->length);
		if (disk.bytes[place] != 0 || random_below(random, 4) == 0)
			break;
	}
	return place;
}

/* Changes one to four bytes from `place` on, in one of five ways. */
static void damage(struct random *random, uint8_t *place)
{
	static const uint8_t extremes[] = { 0x00, 0xFF, 0x7F, 0x80, 0x01 };
	uint32_t word = (uint32_t)random_next(random);

	switch (random_below(random, 5)) {
	case 0:
		*place ^= (uint8_t)(1u << random_below(random, 8));
		break;
	case 1:
		*place = (uint8_t)word;
		break;
	case 2:
		memset(place, extremes[random_below(random, sizeof(extremes))], 2);
		break;
	case 3:
		memcpy(place, &word, sizeof(word));
		break;
	default:
		memcpy(place, disk.bytes + choose(random), 4);
	}
}

void mutate(uint64_t seed, unsigned count, uint64_t start, uint64_t length)
{
	struct random random = { seed };

	console_on = false;
	disk.touched = calloc(1, disk.device.sectors);
	if (use_all(seed) != 0)
		fail("the image is damaged before the first mutation");
	if (length > 0)
		ranges[range_count++] = (struct range){ start, length };
	else
		find_metadata();
	free(disk.touched);
	disk.touched = NULL;
	for (unsigned i = 0; i < count; i++) {
		uint8_t *place = disk.bytes + choose(&random);
		uint8_t saved[4];

		memcpy(saved, place, sizeof(saved));
		damage(&random, place);
		results[-use_all(seed)]++;
		memcpy(place, saved, sizeof(saved));
	}
	if (use_all(seed) != 0)
		fail("the image does not work after the last mutation");
	for (int error = 0; error < ERRORS; error++)
		if (results[error] > 0)
			printf("result %s %u\n", error ? errno_name(error) : "none",
			       results[error]);
}
