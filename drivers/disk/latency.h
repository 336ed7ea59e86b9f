/* How long requests take: histograms, and a detector of drives that are nearly broken. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LATENCY_POWERS 32u
#define LATENCY_STEPS  100u

enum latency_range { LATENCY_US, LATENCY_MS, LATENCY_S, LATENCY_RANGES };

struct latency {
	/* [0]: less than 1 us; [n]: at least 2^(n - 1) us, and less than 2^n us */
	uint32_t powers[LATENCY_POWERS];
	/* Those of Linux's device-mapper (2013): 100 steps of 10 us; of 10 ms; and of 10 s. What
	 * takes 1 to 9.9 ms is all in the first step of 10 ms. */
	uint32_t steps[LATENCY_RANGES][LATENCY_STEPS];
	uint32_t count;
	uint64_t total_ns;
};

/* Counts one request. */
void latency_add(struct latency *latency, uint64_t ns);

/* The mean in microseconds; 0 without requests. */
uint32_t latency_mean_us(const struct latency *latency);

/* The lowest power of two, in microseconds, that this many of a thousand requests stay below; 1
 * without requests, UINT32_MAX if some of them are in the last of `powers`, which has no end. */
uint32_t latency_below_us(const struct latency *latency, uint32_t permille);

/*
 * Is a drive slow compared with its peers: is its mean more than twice the median of theirs?
 * `peers` are the other drives, `count` of them (up to 16 are looked at). False while one of the
 * two sides has too few requests to say so.
 */
bool latency_is_suspicious(const struct latency *latency, const struct latency *const *peers,
			   unsigned count);
