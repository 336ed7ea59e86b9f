/* Large pages against a naive model. */
#pragma once

#include <stdint.h>

struct random;

void large_random(struct random *random, uint32_t rounds);
