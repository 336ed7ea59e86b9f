/* How a kernel of the course is used: the host's script, or a person at the prompt. */
#pragma once

/*
 * Runs the setting "script", if the host gave one, and ends the machine with its status; otherwise
 * reads commands for ever. get gives the next character, or -1 while there is none; then idle is
 * called.
 */
void prompt(int (*get)(void), void (*idle)(void)) __attribute__((noreturn));
