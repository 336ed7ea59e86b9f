/* A pipe of three programs, begun by a fourth one: each passes on what it reads, plus one. */
#include "tests/lesson4/programs/program.h"

#define CALL_EXECVE 11
#define STAGES	    3

static void stage(uint32_t in, uint32_t out)
{
	uint8_t piece[7];
	int32_t length;

	while ((length = call(CALL_READ, in, (uintptr_t)piece, sizeof(piece))) > 0) {
		for (int32_t i = 0; i < length; i++)
			piece[i]++;
		call(CALL_WRITE, out, (uintptr_t)piece, length);
	}
}

static char *letter(uint32_t number, char text[2])
{
	text[0] = 'A' + number;
	text[1] = 0;
	return text;
}

/* Only the ends of its own: else no reader ever sees the end of what is written. */
static void become_stage(uint32_t number, uint32_t pipes[STAGES + 1][2])
{
	char in[2], out[2];
	char *words[] = { "whole", letter(pipes[number][0], in), letter(pipes[number + 1][1], out),
			  0 };

	for (uint32_t i = 0; i <= STAGES; i++) {
		if (i != number)
			call(CALL_CLOSE, pipes[i][0], 0, 0);
		if (i != number + 1)
			call(CALL_CLOSE, pipes[i][1], 0, 0);
	}
	call(CALL_EXECVE, (uintptr_t)"/bin/whole", (uintptr_t)words, 0);
	call(CALL_EXIT, 99, 0, 0);
}

static uint32_t read_all(uint32_t in)
{
	uint8_t byte;
	uint32_t sum = 0;

	while (call(CALL_READ, in, (uintptr_t)&byte, 1) == 1)
		sum = sum * 31 + byte;
	return sum & 0x7fffffff;
}

static int pipe_of_three(const char *text)
{
	uint32_t pipes[STAGES + 1][2], length = 0, status, codes = 0;

	while (text[length])
		length++;
	for (uint32_t i = 0; i <= STAGES; i++)
		call(CALL_PIPE, (uintptr_t)pipes[i], 0, 0);
	for (uint32_t i = 0; i < STAGES; i++)
		if (call(CALL_FORK, 0, 0, 0) == 0)
			become_stage(i, pipes);
	call(CALL_WRITE, pipes[0][1], (uintptr_t)text, length);
	for (uint32_t i = 0; i <= STAGES; i++) {
		call(CALL_CLOSE, pipes[i][1], 0, 0);
		if (i < STAGES)
			call(CALL_CLOSE, pipes[i][0], 0, 0);
	}
	say("read", read_all(pipes[STAGES][0]));
	for (uint32_t i = 0; i < STAGES; i++)
		if (call(CALL_WAITPID, -1, (uintptr_t)&status, 0) > 0)
			codes += status >> 8;
	say("codes", codes);
	return 0;
}

int run(int count, char **words)
{
	if (count == 2)
		return pipe_of_three(words[1]);
	if (count != 3)
		return 1;
	stage(words[1][0] - 'A', words[2][0] - 'A');
	return 5;
}
