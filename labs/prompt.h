/* The prompt of the course's kernels: commands from the host's script, or from a person. */
#pragma once

/*
 * Runs the setting "script", if the host gave one, and ends the machine with its status; otherwise
 * reads commands for ever. get gives the next character, or -1 while there is none; then idle is
 * called.
 */
void prompt(int (*get)(void), void (*idle)(void)) __attribute__((noreturn));
