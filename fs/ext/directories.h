/* Shared by the files that work on names: entries of one block, blocks of a directory, its hash
 * tree, and changes of a name. */
#pragma once

#include "fs/ext/mapping.h"
#include "kernel/lib/string.h"

#define EXT_LINKS_MAX 65000

/* An entry, or a place for one, in a block of a directory. The block is referenced. */
struct ext_slot {
	struct cached_block *buffer;
	uint32_t logical;  /* which block of the directory it is */
	uint32_t at;	   /* of the entry, bytes from the block's beginning */
	uint32_t previous; /* of the entry before it; the same as `at` if it is the first one */
};

/* ---- entries of one block (fs/ext/entries.c) ---- */

/* Where the entries of a hash tree begin in a block: bytes, or 0 when the block has names. */
uint32_t ext_directory_index(const struct ext_inode *directory, uint32_t logical,
			     const uint8_t *data);

/* Where the entries of a block end: the rest is the checksum's. */
uint32_t ext_directory_end(const struct ext_inode *directory, uint32_t logical,
			   const uint8_t *data);

/* Bytes that an entry with a name of this length needs. */
static inline uint32_t ext_entry_bytes(uint32_t length)
{
	return (offsetof(struct ext_dir_entry_2, name) + length + 3) & ~3u;
}

/* A type of inode (EXT_TYPE_...) as entries say it, from 1 on; 0 for any other number. */
uint8_t ext_entry_type(unsigned type);

/* The entry at byte `at` of a block whose entries end at byte `end`. NULL, with a message, when it
 * or its name does not end in there. */
struct ext_dir_entry_2 *ext_entry_at(const struct ext_inode *directory, uint8_t *data, uint32_t at,
				     uint32_t end);

/* Checks what can be wrong with an entry besides. -EUCLEAN. */
int ext_entry_check(const struct ext_inode *directory, const struct ext_dir_entry_2 *entry);

/* Finds a name in the slot's block, or (name is NULL) room for an entry of `bytes`. -ENOENT,
 * -ENOSPC, -EUCLEAN: then it has given the block back. */
int ext_entry_look(const struct ext_inode *directory, struct ext_slot *slot,
		   const struct ext_name *name, uint32_t bytes);

/* Writes an entry into the room that ext_entry_room found, or removes one. */
void ext_entry_put(struct ext_slot *slot, const struct ext_name *name,
		   const struct ext_inode *inode);
void ext_entry_drop(struct ext_slot *slot);

/* Makes the slot's entry name another inode. */
void ext_entry_set(const struct ext_slot *slot, const struct ext_inode *inode);

/* Fills a block with entries, one directly after the other. */
struct ext_packer {
	uint8_t *data;
	uint32_t end;  /* where the next entry goes */
	uint32_t last; /* where the last one is */
};

void ext_pack(struct ext_packer *packer, const struct ext_dir_entry_2 *entry);

/* The last entry gets what is left; without any the block has one that is not in use. */
void ext_pack_end(const struct ext_fs *fs, struct ext_packer *packer);

/* ---- blocks of a directory (fs/ext/directory.c) ---- */

uint32_t ext_directory_blocks(const struct ext_inode *directory);

/* Gets a block, checked, with its checksum. -EUCLEAN or the device's error. */
int ext_directory_block(const struct ext_inode *directory, uint32_t logical,
			struct cached_block **out);

/* Appends a block without names to a directory. The caller has begun. */
int ext_directory_grow(struct ext_inode *directory, uint32_t *logical, struct cached_block **out);

/* After a change of a block: its checksum is written before it goes to the disk. */
void ext_directory_sum(const struct ext_inode *directory, uint32_t logical,
		       struct cached_block *buffer);

/* Whether a name is "." or ".."; the empty one, too. */
static inline bool ext_is_dots(const struct ext_name *name)
{
	return name->length <= 2 && memcmp(name->text, "..", name->length) == 0;
}

/* Calls visit for every entry of a block, those that are not in use too, until it returns something
 * other than 0, which is then returned. The entry is at byte `at` of block `logical`. */
typedef int ext_entry_visitor(void *context, const struct ext_dir_entry_2 *entry, uint32_t logical,
			      uint32_t at);
int ext_directory_walk(const struct ext_inode *directory, uint32_t logical,
		       ext_entry_visitor *visit, void *context);

/* The same for all blocks from `logical` on. */
int ext_directory_walk_from(const struct ext_inode *directory, uint64_t logical,
			    ext_entry_visitor *visit, void *context);

/* ---- the hash tree (fs/ext/hash.c, htree.c, htree_add.c) ---- */

/* The hash of a name, with bit 0 cleared. `version` is that of the tree's root. */
uint32_t ext_name_hash(const struct ext_fs *fs, uint8_t version, const struct ext_name *name);

#define EXT_TREE_LEVELS 2 /* more only with the feature large_dir, which is refused */

/* A node on the way, and which of its entries was taken. */
struct ext_tree_node {
	struct cached_block *buffer;
	union ext_dx_entry *entries;
	uint32_t logical;
	unsigned count, limit, at;
};

/* The way from the root to a block of names. */
struct ext_tree {
	const struct ext_inode *directory;
	struct ext_tree_node nodes[EXT_TREE_LEVELS];
	unsigned levels; /* nodes on the way */
	unsigned held;	 /* of them in memory */
	uint8_t version; /* of the hash */
	uint32_t leaf;	 /* the block of names at its end */
};

/* Entries that a node has room for, when they begin at byte `at` of its block. */
unsigned ext_tree_node_limit(const struct ext_fs *fs, uint32_t at);

/* Gets the root, and then walks to the first block that may have names of a hash; or both, for a
 * name's. ext_tree_close is due even after an error. One walk for each opening. */
int ext_tree_open(const struct ext_inode *directory, struct ext_tree *tree);
int ext_tree_seek(struct ext_tree *tree, uint32_t hash);
int ext_tree_open_at(const struct ext_inode *directory, struct ext_tree *tree,
		     const struct ext_name *name, uint32_t *hash);
void ext_tree_close(struct ext_tree *tree);

/* Gets the block of names at the end of the way. */
int ext_tree_leaf(const struct ext_tree *tree, struct cached_block **out);

/* Finds something in it, as ext_entry_look; after 0 the slot's block is referenced. */
int ext_tree_look(const struct ext_tree *tree, const struct ext_name *name, uint32_t bytes,
		  struct ext_slot *slot);

/* Goes on to the next block of names. Returns 1 and where its hashes begin (bit 0: the block before
 * it has some of that hash, too), 0 after the last one, or an error. */
int ext_tree_next(struct ext_tree *tree, uint32_t *begins);

/* Finds a name by its hash. -ENOENT, or -EUCLEAN for a damaged tree. */
int ext_tree_find(const struct ext_inode *directory, const struct ext_name *name,
		  struct ext_slot *slot);

/* Makes room for a name, by splitting what is full. The caller has begun. -ENOSPC for a full disk,
 * or a full tree. */
int ext_tree_room(struct ext_inode *directory, const struct ext_name *name, struct ext_slot *slot);

/* The hash that new trees have. */
uint8_t ext_tree_version(const struct ext_fs *fs);

/* A directory of one block, which is full, becomes a tree of a root and one block of names. */
int ext_tree_make(struct ext_inode *directory);

/* ---- names of a directory (fs/ext/names.c) ---- */

/* A name that is to change: not empty, not too long, not "." or "..", in a directory that has not
 * been removed. -EINVAL, -ENAMETOOLONG, -ENOTDIR, -ENOENT. */
int ext_name_check(const struct ext_inode *directory, const struct ext_name *name);

/* Finds a name whose entry is to change: it must name this inode (or -ENOENT), and its block
 * becomes part of the transaction; after 0 it is referenced. */
int ext_name_own(const struct ext_inode *directory, const struct ext_name *name,
		 const struct ext_inode *inode, struct ext_slot *slot);

/* Finds or makes room for a new name, in a block that becomes part of the transaction. */
int ext_name_room(struct ext_inode *directory, const struct ext_name *name, struct ext_slot *slot);

/* What was prepared by ext_name_room (put) or ext_name_own (set, drop). Cannot fail, and gives the
 * block back. */
void ext_name_put(const struct ext_inode *directory, struct ext_slot *slot,
		  const struct ext_name *name, const struct ext_inode *inode);
void ext_name_set(const struct ext_inode *directory, struct ext_slot *slot,
		  const struct ext_inode *inode);
void ext_name_drop(const struct ext_inode *directory, struct ext_slot *slot);

/* 0 for a directory without names but "." and "..", or -ENOTEMPTY. */
int ext_directory_empty(const struct ext_inode *directory);

/* ---- changes (fs/ext/names_change.c) ---- */

#define EXT_CHANGED_INODES 4

/* A change of names: the inodes that it concerns. Their blocks of the disk are part of the
 * transaction from the beginning, so writing them at the end cannot fail. */
struct ext_names_change {
	struct ext_fs *fs;
	struct ext_inode *inodes[EXT_CHANGED_INODES];
	struct cached_block *blocks[EXT_CHANGED_INODES];
	unsigned count;
};

/* Begins it. Inodes may be NULL, or the same. */
int ext_names_begin(struct ext_names_change *change, struct ext_inode *first,
		    struct ext_inode *second, struct ext_inode *third, struct ext_inode *fourth);

/* Ends it: writes the inodes unless `error` is one, which is returned. */
int ext_names_end(struct ext_names_change *change, int error);

/* What else an inode says than contents changed, now. */
void ext_touch_inode(struct ext_inode *inode);

/* May it have another link? -EMLINK. Directories have one for each directory in them. With the
 * feature dir_nlink the count becomes 1, for "many", where it would go beyond EXT_LINKS_MAX. */
int ext_links_check(const struct ext_inode *inode);
void ext_links_more(struct ext_inode *inode);
void ext_links_fewer(struct ext_inode *inode);

/* A name of an inode goes: it has a link fewer or, as a directory, none. Without any it becomes an
 * orphan. When it fails nothing has changed. */
int ext_link_gone(struct ext_inode *inode);
