/*
 * A program on a drive: mounts /dev/hdb, makes files with holes, cuts and removes some, and
 * unmounts. tests/storage/writing.py knows what must be there then.
 *
 *	work FILES SEED		files f0, f1, ... in the root of the drive
 *	fill			one file, until the drive is full
 */
#include "tests/lesson4/programs/family.h"

enum {
	CALL_OPEN = 5,
	CALL_UNLINK = 10,
	CALL_LSEEK = 19,
	CALL_MOUNT = 21,
	CALL_MKDIR = 39,
	CALL_UMOUNT = 52,
	CALL_FTRUNCATE = 93,
};

#define O_RDWR	0x2
#define O_CREAT 0x40
#define PIECES	3u
#define MOST	6000u

static uint8_t data[65536];
static char name[] = "/mnt/f000";

static uint32_t piece_place(uint32_t file, uint32_t piece)
{
	return piece * (file * 613 % 9000);
}

static uint32_t piece_length(uint32_t file, uint32_t piece)
{
	return 100 + (numbers[1] * file + piece * 2711) % (MOST - 100);
}

static int32_t open_file(uint32_t file)
{
	name[6] = (char)('0' + file / 100);
	name[7] = (char)('0' + file / 10 % 10);
	name[8] = (char)('0' + file % 10);
	return call(CALL_OPEN, (uintptr_t)name, O_RDWR | O_CREAT, 0644);
}

static uint32_t write_piece(int32_t descriptor, uint32_t place, uint32_t length, uint32_t seed)
{
	for (uint32_t i = 0; i < length; i++)
		data[i] = (uint8_t)(place + i + (place + i) / 256 * 7 + seed);
	call(CALL_LSEEK, descriptor, place, 0);
	return call(CALL_WRITE, descriptor, (uintptr_t)data, length);
}

static void mount_drive(void)
{
	call(CALL_MKDIR, (uintptr_t)"/mnt", 0755, 0);
	say("mount",
	    call5(CALL_MOUNT, (uintptr_t)"/dev/hdb", (uintptr_t)"/mnt", (uintptr_t)"ext4", 0, 0));
}

static void work(void)
{
	uint32_t wrong = 0;

	mount_drive();
	for (uint32_t file = 0; file < numbers[0]; file++) {
		int32_t descriptor = open_file(file);

		for (uint32_t piece = 0; piece < PIECES; piece++) {
			uint32_t length = piece_length(file, piece);

			wrong += write_piece(descriptor, piece_place(file, piece), length, file) !=
				 length;
		}
		if (file % 3 == 0)
			wrong += call(CALL_FTRUNCATE, descriptor,
				      (file * 1009 + numbers[1]) % 12000, 0) != 0;
		call(CALL_CLOSE, descriptor, 0, 0);
		if (file % 5 == 4)
			wrong += call(CALL_UNLINK, (uintptr_t)name, 0, 0) != 0;
	}
	say("wrong", (int32_t)wrong);
	say("umount", call(CALL_UMOUNT, (uintptr_t)"/mnt", 0, 0));
}

/* Writes until there is an error. */
static void fill(void)
{
	uint32_t place = 0;
	int32_t descriptor, written;

	mount_drive();
	descriptor = open_file(0);
	do {
		written = (int32_t)write_piece(descriptor, place, sizeof(data), 0);
		place += written > 0 ? (uint32_t)written : 0;
	} while (written > 0);
	say("error", written);
	say("size", (int32_t)place);
	call(CALL_CLOSE, descriptor, 0, 0);
	say("umount", call(CALL_UMOUNT, (uintptr_t)"/mnt", 0, 0));
}

int run(int count, char **words)
{
	static const struct trial trials[] = { { "work", work }, { "fill", fill }, { 0 } };

	return run_trial(trials, count, words);
}
