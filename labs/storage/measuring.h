/*
 * Shared by programs that measure: the clock, a device's counters and a histogram of latencies.
 *
 * The counters are those of /proc/diskstats (Documentation/admin-guide/iostats.rst of Linux), and
 * include what other programs do to the device. The histogram has 32 classes for each power of two,
 * so that a percentile is at most 3 % too low, and any number of latencies takes the same memory:
 *
 *	64 ns: class 64, 66: 65, ... 126: 95, 128: 96, 132: 97, ...
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND_NS   1000000000u
#define CLASS_SHIFT 5u
#define CLASSES	    (64u << CLASS_SHIFT)

/* What one device was asked for; all 0 if nothing is known of it. */
struct requests {
	bool is_known;
	uint64_t reads, sectors_read, writes, sectors_written;
};

struct latencies {
	uint64_t count, longest_ns;
	uint32_t classes[CLASSES];
};

/* ---- the clock ---- */

static inline uint64_t now_ns(void)
{
	struct timespec now = { 0 };

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
}

/* ---- the device's counters ---- */

/* The line's next number, or 0. */
static inline uint64_t next_field(char **line)
{
	return strtoull(*line, line, 10);
}

/* Since the machine was started; device: st_dev of a file, st_rdev of a block device. */
static inline struct requests requests_of(uint64_t device)
{
	uint64_t major = device >> 8 & 0xfff, minor = (device & 0xff) | (device >> 12 & 0xfff00);
	FILE *file = fopen("/proc/diskstats", "r");
	struct requests requests = { 0 };
	char text[256], *line;

	while (file && !requests.is_known && fgets(line = text, sizeof(text), file)) {
		if (next_field(&line) != major || next_field(&line) != minor)
			continue;
		line += strspn(line, " ");
		line += strcspn(line, " "); /* the name */
		requests.is_known = true;
		requests.reads = next_field(&line);
		next_field(&line); /* merged */
		requests.sectors_read = next_field(&line);
		next_field(&line); /* milliseconds */
		requests.writes = next_field(&line);
		next_field(&line);
		requests.sectors_written = next_field(&line);
	}
	if (file)
		fclose(file);
	return requests;
}

static inline struct requests requests_since(uint64_t device, const struct requests *before)
{
	struct requests now = requests_of(device);

	now.reads -= before->reads;
	now.sectors_read -= before->sectors_read;
	now.writes -= before->writes;
	now.sectors_written -= before->sectors_written;
	return now;
}

/* ---- latencies ---- */

/* Below 64 ns every number has a class; from there on the five bits after the highest decide. */
static inline unsigned class_of(uint64_t ns)
{
	unsigned shift = 0;

	while (ns >> shift >= 2u << CLASS_SHIFT)
		shift++;
	return (shift << CLASS_SHIFT) + (unsigned)(ns >> shift);
}

/* The least that is counted in a class. */
static inline uint64_t ns_of(unsigned class)
{
	unsigned shift = class >> CLASS_SHIFT;

	if (shift > 0)
		shift--;
	return (uint64_t)(class - (shift << CLASS_SHIFT)) << shift;
}

static inline void latency_count(struct latencies *latencies, uint64_t ns)
{
	latencies->count++;
	latencies->classes[class_of(ns)]++;
	if (ns > latencies->longest_ns)
		latencies->longest_ns = ns;
}

/* This many of a thousand took no longer; there is one latency at least. */
static inline uint64_t latency_percentile(const struct latencies *latencies, unsigned per_mille)
{
	uint64_t wanted = (latencies->count * per_mille + 999) / 1000;
	unsigned class = 0;

	for (uint64_t seen = latencies->classes[0]; seen < wanted;)
		seen += latencies->classes[++class];
	return ns_of(class);
}
