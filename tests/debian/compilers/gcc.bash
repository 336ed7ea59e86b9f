# What gcc does, cc1, as and ld with it: the same on Linux and on the kernel.
cat >sum.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_length(const void *a, const void *b)
{
	return (int)strlen(*(char *const *)a) - (int)strlen(*(char *const *)b);
}

int main(int argc, char **argv)
{
	double sum = 0;

	qsort(argv + 1, argc - 1, sizeof *argv, by_length);
	for (int i = 1; i < argc; i++) {
		printf("%s%s", argv[i], i + 1 < argc ? " " : "\n");
		sum += atof(argv[i]);
	}
	printf("%.3f\n", sum);
	return argc;
}
END
gcc -O2 -Wall -o sum sum.c; echo $?; ./sum 10.25 3 2.5; echo $?
gcc -O2 -S -o - sum.c | grep -c .; gcc -E sum.c | grep -c 'extern'; gcc -O0 -g -c sum.c; nm sum.o; objdump -d sum.o | tail -3
gcc -static -Os -o static sum.c && ./static a b; echo 'int f(void) { return x; }' | gcc -fsyntax-only -x c -; echo $?
ar rcs lib.a sum.o && ar t lib.a; size sum.o; strip sum && ./sum 1; gcc -shared -fPIC -o lib.so -x c - <<<'int three(void) { return 3; }'
gcc -o user -x c - -x none ./lib.so <<<'int three(void); int main(void) { return three(); }' && ./user; echo $?
gcc -pthread -o threads -x c - <<'END' && ./threads
#include <pthread.h>
#include <stdio.h>
static int sum;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *add(void *argument)
{
	for (int i = 0; i < 1000; i++) {
		pthread_mutex_lock(&lock);
		sum++;
		pthread_mutex_unlock(&lock);
	}
	return argument;
}
int main(void)
{
	pthread_t all[8];
	for (int i = 0; i < 8; i++)
		pthread_create(&all[i], 0, add, 0);
	for (int i = 0; i < 8; i++)
		pthread_join(all[i], 0);
	printf("%d\n", sum);
}
END
