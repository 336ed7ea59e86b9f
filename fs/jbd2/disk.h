/*
 * The format of a journal on the disk. All numbers are big-endian.
 *
 * Every block of the log but the copies begins with a header: magic, type, and the number of its
 * transaction. A transaction is
 *
 *	revoke blocks		numbers of blocks whose older copies must not be replayed
 *	descriptor block	a tag for each copy that follows: where it belongs
 *	copies			a copy that begins with the magic is escaped: its first word is 0
 *	...			more of both
 *	commit block		it is complete
 *
 * Names and fields: docs.kernel.org, "ext4 Data Structures and Algorithms", 3.6 Journal (jbd2).
 */
#pragma once

#include <stdint.h>

#define JOURNAL_MAGIC 0xc03b3998u

enum {
	JOURNAL_COPY = 0, /* it has no header */
	JOURNAL_DESCRIPTOR = 1,
	JOURNAL_COMMIT = 2,
	JOURNAL_SUPER_1 = 3,
	JOURNAL_SUPER_2 = 4,
	JOURNAL_REVOKE = 5,
};

#define JOURNAL_COMPAT_CHECKSUM 0x1u /* version 1: a checksum in the commit block only */

#define JOURNAL_INCOMPAT_REVOKE	      0x01u
#define JOURNAL_INCOMPAT_64BIT	      0x02u
#define JOURNAL_INCOMPAT_ASYNC_COMMIT 0x04u
#define JOURNAL_INCOMPAT_CSUM_V2      0x08u
#define JOURNAL_INCOMPAT_CSUM_V3      0x10u
#define JOURNAL_INCOMPAT_FAST_COMMIT  0x20u

#define JOURNAL_CRC32	    1u /* h_chksum_type of version 1 */
#define JOURNAL_CRC32_SIZE  4u
#define JOURNAL_CRC32C	    4u /* s_checksum_type of versions 2 and 3 */
#define JOURNAL_UUID_SIZE   16u
#define JOURNAL_FAST_BLOCKS 256u /* for fast commits, where s_num_fc_blks is 0 */

struct journal_header {
	uint32_t h_magic;
	uint32_t h_blocktype;
	uint32_t h_sequence;
};

struct journal_super { /* block 0 of the file */
	struct journal_header header;
	uint32_t s_blocksize;
	uint32_t s_maxlen;   /* blocks of the file */
	uint32_t s_first;    /* the first block of the log */
	uint32_t s_sequence; /* of the first transaction in the log */
	uint32_t s_start;    /* its first block; 0: the log is empty */
	uint32_t s_errno;
	uint32_t s_feature_compat;
	uint32_t s_feature_incompat;
	uint32_t s_feature_ro_compat;
	uint8_t s_uuid[JOURNAL_UUID_SIZE];
	uint32_t s_nr_users;
	uint32_t s_dynsuper;
	uint32_t s_max_transaction;
	uint32_t s_max_trans_data;
	uint8_t s_checksum_type;
	uint8_t s_padding2[3];
	uint32_t s_num_fc_blks;
	uint32_t s_head;
	uint32_t s_padding[40];
	uint32_t s_checksum;
	uint8_t s_users[16 * 48];
};

_Static_assert(sizeof(struct journal_super) == 1024, "a journal's superblock");

/*
 * Tags, one after another from the header on. Which words a tag has depends on the features, and
 * journal->tag_size says how many bytes of them there are:
 *
 *	without CSUM_V3		t_blocknr, t_checksum << 16 | t_flags, t_blocknr_high (64BIT)
 *	CSUM_V3			t_blocknr, t_flags, t_blocknr_high, t_checksum
 *
 * Of the checksum CSUM_V2 has the lower half. The first tag, and each without SAME_UUID, is
 * followed by a UUID.
 */
#define JOURNAL_TAG_WORDS 4u

#define TAG_ESCAPED   1u
#define TAG_SAME_UUID 2u
#define TAG_LAST      8u

struct journal_revoke_header {
	struct journal_header header;
	uint32_t r_count; /* bytes in use, with the header; then numbers of 4 bytes, or 8 (64BIT) */
};

struct journal_commit_header {
	struct journal_header header;
	uint8_t h_chksum_type;
	uint8_t h_chksum_size;
	uint8_t h_padding[2];
	uint32_t h_chksum[8]; /* [0]: version 1: of the transaction; 2 and 3: of this block */
	uint32_t h_commit_sec_high, h_commit_sec;
	uint32_t h_commit_nsec;
};

/* The first tag of the area for fast commits, little-endian: the transaction that it continues. */
struct journal_fast_head {
	uint16_t fc_tag;
	uint16_t fc_len;
	uint32_t fc_features;
	uint32_t fc_tid;
};

#define FAST_TAG_HEAD 9u

/* To and from big-endian. */
static inline uint32_t big32(uint32_t value)
{
	return __builtin_bswap32(value);
}
