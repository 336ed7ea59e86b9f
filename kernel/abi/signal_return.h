/* The calls by which a handler of a signal returns: Linux's numbers for i386. */
#pragma once

#define SYS_sigreturn	 119
#define SYS_rt_sigreturn 173
