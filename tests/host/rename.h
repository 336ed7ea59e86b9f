/* The kernel's own C library functions under other names, beside the host's. Given with -include.
 */
#pragma once

#define memcpy	kernel_memcpy
#define memmove kernel_memmove
#define memset	kernel_memset
#define memcmp	kernel_memcmp
#define strlen	kernel_strlen
#define strcmp	kernel_strcmp
#define strncmp kernel_strncmp
#define strchr	kernel_strchr
