/* How a kernel of the course is used: the host's script, or a person at the prompt. */
#pragma once

/*
 * Runs the setting "script", if the host gave one, and ends the machine with its status; otherwise reads
 * commands from the serial line for ever. idle is called while nothing is typed.
 */
void prompt(void (*idle)(void)) __attribute__((noreturn));
