/* Page tables against a naive model. */
#pragma once

#include <stdint.h>

struct random;

void table_random(struct random *random, uint32_t rounds);
