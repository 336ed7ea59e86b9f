/* What e2fsck says of the image in memory. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Where images for e2fsck are written: a folder in memory is best. */
extern const char *check_folder;

/*
 * Of an image after a power cut: e2fsck replays the journal (and releases orphans); then it must
 * find nothing. And our own replay must write the same bytes. Returns false with a problem.
 */
bool check_replay(char *problem);

/* Of an image after an unmount: e2fsck -fn must find nothing. */
bool check_clean(char *problem);
