/*
 * Hashes of names: the order in which hashed directories have them.
 *
 * Each is a loop that takes pieces of the name and stirs them into a state. Two of them are parts
 * of ciphers, started from a seed that mke2fs chose, so that nobody can make names that collide:
 *
 *	version	name		pieces		state	stirred by
 *	0	legacy		1 byte		2 words	a multiplication
 *	1	half MD4	32 bytes	4 words	24 of the 48 steps of MD4 (RFC 1320)
 *	2	TEA		16 bytes	4 words	16 cycles of the Tiny Encryption Algorithm
 *
 * Bytes become numbers as the compiler of the first machine did it: with a sign, or without one.
 * The superblock says which; it matters for names with letters beyond ASCII.
 *
 * Bit 0 of a hash is free for a mark in the tree, and the largest one is kept as "the end".
 * Computes only; any context. docs.kernel.org, "ext4 Data Structures and Algorithms", 4.4.2.
 */
#include "fs/ext/directories.h"

#define HASH_END 0xFFFFFFFEu

/* A character as a number that was extended to 32 bits. */
static uint32_t character(const char *text, bool is_unsigned)
{
	return is_unsigned ? (uint32_t)(unsigned char)*text : (uint32_t)(signed char)*text;
}

static uint32_t hash_legacy(const struct ext_name *name, bool is_unsigned)
{
	uint32_t hash = 0x12A3FE2D, before = 0x37ABE8F9, next;

	for (uint32_t i = 0; i < name->length; i++) {
		next = before + (hash ^ character(name->text + i, is_unsigned) * 7152373);
		if (next & 0x80000000)
			next -= 0x7FFFFFFF;
		before = hash;
		hash = next;
	}
	return hash << 1;
}

/* Fills `count` words with the next characters, four in each. Where the name ends, its length left
 * is the filling, in each byte. */
static void fill_words(const char *text, uint32_t left, uint32_t *words, unsigned count,
		       bool is_unsigned)
{
	uint32_t filling = left | left << 8;
	uint32_t i = 0;

	filling |= filling << 16;
	for (unsigned word = 0; word < count; word++) {
		words[word] = filling;
		for (unsigned byte = 0; byte < 4 && i < left; byte++, i++)
			words[word] = character(text + i, is_unsigned) + (words[word] << 8);
	}
}

/* One of MD4's steps: `mix` is its function of the words b, c and d. Each step changes one word of
 * the state, the last of a, d, c, b in turn. */
#define STEP(mix, word, bits)                                                                      \
	do {                                                                                       \
		uint32_t next = ext_rotate_left(a + (mix) + (word), bits);                         \
		a = d, d = c, c = b, b = next;                                                     \
	} while (0)

/* Four steps of a round. */
#define STEPS(mix, add, i, j, k, l, t, u, v, w)                                                    \
	do {                                                                                       \
		STEP(mix, words[i] + (add), t);                                                    \
		STEP(mix, words[j] + (add), u);                                                    \
		STEP(mix, words[k] + (add), v);                                                    \
		STEP(mix, words[l] + (add), w);                                                    \
	} while (0)

/* Three rounds of eight steps, by MD4's functions: choose, majority (as a sum), parity. */
static void stir_half_md4(uint32_t state[4], const uint32_t words[8])
{
	uint32_t a = state[0], b = state[1], c = state[2], d = state[3];

	STEPS(d ^ (b & (c ^ d)), 0, 0, 1, 2, 3, 3, 7, 11, 19);
	STEPS(d ^ (b & (c ^ d)), 0, 4, 5, 6, 7, 3, 7, 11, 19);
	STEPS((b & c) + ((b ^ c) & d), 0x5A827999, 1, 3, 5, 7, 3, 5, 9, 13);
	STEPS((b & c) + ((b ^ c) & d), 0x5A827999, 0, 2, 4, 6, 3, 5, 9, 13);
	STEPS(b ^ c ^ d, 0x6ED9EBA1, 3, 7, 2, 6, 3, 9, 11, 15);
	STEPS(b ^ c ^ d, 0x6ED9EBA1, 1, 5, 0, 4, 3, 9, 11, 15);
	state[0] += a;
	state[1] += b;
	state[2] += c;
	state[3] += d;
}

static void stir_tea(uint32_t state[4], const uint32_t key[4])
{
	uint32_t sum = 0, a = state[0], b = state[1];

	for (unsigned cycle = 0; cycle < 16; cycle++) {
		sum += 0x9E3779B9;
		a += ((b << 4) + key[0]) ^ (b + sum) ^ ((b >> 5) + key[1]);
		b += ((a << 4) + key[2]) ^ (a + sum) ^ ((a >> 5) + key[3]);
	}
	state[0] += a;
	state[1] += b;
}

/* The seed of the superblock, or, if that has none, the constants that MD4 starts from. */
static void start_state(const struct ext_fs *fs, uint32_t state[4])
{
	static const uint32_t constants[4] = { 0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476 };
	const uint32_t *seed = fs->super.s_hash_seed;

	memcpy(state, (seed[0] | seed[1] | seed[2] | seed[3]) ? seed : constants,
	       sizeof(constants));
}

/* An empty name has no piece: its hash is the seed's. */
static uint32_t hash_stirred(const struct ext_fs *fs, const struct ext_name *name, bool is_tea,
			     bool is_unsigned)
{
	unsigned count = is_tea ? 4 : 8;
	uint32_t state[4], words[8];

	start_state(fs, state);
	for (uint32_t at = 0; at < name->length; at += 4 * count) {
		fill_words(name->text + at, name->length - at, words, count, is_unsigned);
		if (is_tea)
			stir_tea(state, words);
		else
			stir_half_md4(state, words);
	}
	return is_tea ? state[0] : state[1];
}

uint32_t ext_name_hash(const struct ext_fs *fs, uint8_t version, const struct ext_name *name)
{
	bool is_unsigned =
	    version >= EXT_HASH_UNSIGNED || fs->super.s_flags & EXT_SUPER_UNSIGNED_HASH;
	unsigned kind = version % EXT_HASH_UNSIGNED;
	uint32_t hash = kind == EXT_HASH_LEGACY
			    ? hash_legacy(name, is_unsigned)
			    : hash_stirred(fs, name, kind == EXT_HASH_TEA, is_unsigned);

	hash &= ~1u;
	return hash == HASH_END ? HASH_END - 2 : hash;
}
