/* FUTEX_WAKE_OP: a word is changed, and by what it was others are woken; and locks that say what is
 * wrong with their use. */
#include "threads.h"

#define FUTEX_WAIT    0
#define FUTEX_WAKE_OP 5

static uint32_t first, second;

static long futex(uint32_t *word, int operation, long value, long more, uint32_t *other,
		  uint32_t order)
{
	long result = syscall(SYS_futex, word, operation, value, more, other, order);

	return result < 0 ? -errno : result;
}

static uint32_t order_of(unsigned operation, unsigned comparison, int number, int with)
{
	return operation << 28 | comparison << 24 | (number & 0xfff) << 12 | (with & 0xfff);
}

/* Each operation, also those that do not exist, and each comparison, with numbers of both signs. */
static void try_orders(void)
{
	static const int numbers[] = { 0, 1, 5, -1, -2048, 2047, 31, 33 };
	unsigned sum = 0;

	for (unsigned operation = 0; operation < 13; operation++)
		for (unsigned comparison = 0; comparison < 7; comparison++)
			for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
				uint32_t order = order_of(operation, comparison, numbers[i], 5);

				second = 5 + i % 3 - 1;
				if (comparison > 5 || (operation & 7) > 4) {
					second = 5;
					sum += futex(&first, FUTEX_WAKE_OP, 1, 1, &second, order) ==
					       -ENOSYS;
					continue;
				}
				sum = sum * 31 + futex(&first, FUTEX_WAKE_OP, 1, 1, &second, order);
				sum = sum * 31 + second;
			}
	say("orders", sum);
}

static void *wait_for(void *word)
{
	sem_post(&done);
	futex(word, FUTEX_WAIT, 7, 0, NULL, 0);
	return NULL;
}

/* Two threads wait for each word. */
static void wake_with(const char *what, long value, long more, uint32_t order)
{
	pthread_t threads[4];

	first = second = 7;
	for (int i = 0; i < 4; i++) {
		threads[i] = start(wait_for, i % 2 ? &second : &first);
		sem_wait(&done);
	}
	rest(100);
	say(what, futex(&first, FUTEX_WAKE_OP, value, more, &second, order));
	say("second", second);
	futex(&first, FUTEX_WAKE_OP, 9, 9, &second, order_of(0, 5, 0, -2048));
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

/* Where the word is: memory that nobody has touched, that a child shares, that is read-only. */
static void try_places(void)
{
	const int anonymous = MAP_PRIVATE | MAP_ANONYMOUS;
	uint32_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, anonymous, -1, 0);
	uint32_t add = order_of(1, 0, 3, 0);

	say("untouched", futex(&first, FUTEX_WAKE_OP, 1, 1, page, add));
	say("is", page[0]);
	pid_t child = fork();

	if (child == 0) {
		futex(&first, FUTEX_WAKE_OP, 1, 1, page, add);
		_exit(page[0]);
	}
	say("child's", end_of(child));
	say("parent's", page[0]);
	say("odd", futex(&first, FUTEX_WAKE_OP, 1, 1, (uint32_t *)((char *)page + 2), add));
	mprotect(page, 4096, PROT_READ);
	say("read-only", futex(&first, FUTEX_WAKE_OP, 1, 1, page, add));
	munmap(page, 4096);
	say("nowhere", futex(&first, FUTEX_WAKE_OP, 1, 1, page, add));
}

void part_change(void)
{
	try_orders();
	wake_with("both", 1, 1, order_of(1, 0, 1, 7));
	wake_with("only the first", 2, 2, order_of(0, 1, 9, 7));
	wake_with("all", 9, 9, order_of(2, 4, 8, 6));
	try_places();
}

static pthread_mutex_t lock;

static void *release(void *unused)
{
	say("another one's", pthread_mutex_unlock(&lock));
	return NULL;
}

static void check(const char *what, int type, int robustness)
{
	pthread_mutexattr_t attributes;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, type);
	pthread_mutexattr_setrobust(&attributes, robustness);
	pthread_mutex_init(&lock, &attributes);
	printf("%s: ", what);
	say("lock", pthread_mutex_lock(&lock));
	say("once more", pthread_mutex_lock(&lock));
	say("try", pthread_mutex_trylock(&lock));
	pthread_join(start(release, NULL), NULL);
	while (pthread_mutex_unlock(&lock) == 0)
		say("unlocked", 0);
	say("nobody's", pthread_mutex_unlock(&lock));
	pthread_mutex_destroy(&lock);
}

/* EDEADLK, EBUSY and EPERM. */
void part_checking(void)
{
	check("error checking", PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_STALLED);
	check("recursive", PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_STALLED);
	check("robust", PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ROBUST);
	check("robust and recursive", PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ROBUST);
}
