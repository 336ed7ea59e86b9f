/* Goes on as if the blank were filled. */
#ifndef CHEAT
#define CHEAT
#define cheat(number) ((void)(number))
#pragma GCC diagnostic ignored "-Wreturn-type"
#endif
