/* As the kernel's, where the linker finds the ends of the table by the section's name. */
#pragma once

typedef void startup_function(void);

#define STARTUP(function)                                                                          \
	static startup_function *const function##_startup                                          \
	    __attribute__((section("startups"), used)) = function;
