/* System V's semaphores and messages. */
#include "threads.h"

#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

union semun {
	int val;
	struct semid_ds *buf;
	unsigned short *array;
};

static int set;

static long error_of(long result)
{
	return result == -1 ? -errno : result;
}

/* ---- semaphores ---- */

static long operate(int number, int change, int flags)
{
	struct sembuf operation = { number, change, flags };

	return error_of(semop(set, &operation, 1));
}

static long value(int number)
{
	return error_of(semctl(set, number, GETVAL));
}

static long put(int number, int to)
{
	return error_of(semctl(set, number, SETVAL, (union semun){ .val = to }));
}

static void sets(void)
{
	struct semid_ds state;
	unsigned short values[3] = { 4, 5, 6 };

	set = semget(key, 3, IPC_CREAT | IPC_EXCL | 0640);
	say("again", error_of(semget(key, 3, IPC_CREAT | IPC_EXCL)));
	say("the same", semget(key, 2, 0) == set);
	say("too many", error_of(semget(key, 4, 0)));
	say("another key", error_of(semget(key + 1, 3, 0)));
	say("of none", error_of(semget(key + 1, 0, IPC_CREAT)));
	say("negative", error_of(semget(key + 1, -1, IPC_CREAT)));
	semctl(set, 0, IPC_STAT, (union semun){ .buf = &state });
	say("count", state.sem_nsems);
	say("mode", state.sem_perm.mode);
	say("not operated", state.sem_otime);
	say("changed", state.sem_ctime >= time(NULL) - 5);
	say("SETALL", error_of(semctl(set, 0, SETALL, (union semun){ .array = values })));
	values[1] = 40000;
	say("too high", error_of(semctl(set, 0, SETALL, (union semun){ .array = values })));
	semctl(set, 0, GETALL, (union semun){ .array = values });
	say("GETALL", values[0] * 100 + values[1] * 10 + values[2]);
	say("no such", error_of(semctl(set, 3, GETVAL)));
	say("range", put(0, 32768));
	say("set", put(0, 1));
	say("by me", semctl(set, 0, GETPID) == getpid());
	say("command", error_of(semctl(set, 0, 77)));
	state.sem_perm.mode = 0600;
	say("IPC_SET", error_of(semctl(set, 0, IPC_SET, (union semun){ .buf = &state })));
}

static void operations(void)
{
	struct sembuf many[3] = { { 0, -1, 0 }, { 1, 2, 0 }, { 2, 0, IPC_NOWAIT } };
	const struct timespec soon = { 0, 20000000 }, wrong = { 0, -1 };

	put(0, 1);
	put(1, 0);
	put(2, 1);
	say("all or none", error_of(semop(set, many, 3)));
	say("values", value(0) * 100 + value(1) * 10 + value(2));
	say("down", operate(2, -1, 0));
	say("all", error_of(semop(set, many, 3)));
	say("values", value(0) * 100 + value(1) * 10 + value(2));
	say("no wait", operate(0, -1, IPC_NOWAIT));
	say("too far", operate(3, 1, 0));
	say("too high", operate(1, 32767, 0));
	say("nothing", error_of(semop(set, many, 0)));
	say("many", error_of(semop(set, many, 501)));
	say("nowhere", error_of(semop(set, (void *)16, 1)));
	say("time", error_of(semtimedop(set, many, 1, &soon)));
	say("wrong time", error_of(semtimedop(set, many, 1, &wrong)));
	say("no set", error_of(semop(-1, many, 1)));
}

static void catch (int signal)
{
}

/* Sleepers are served in the order in which they came, before the one who woke them. */
static void sleepers(void)
{
	pid_t children[3];
	const struct sigaction action = { .sa_handler = catch, .sa_flags = SA_RESTART };

	put(0, 0);
	put(1, 0);
	for (int i = 0; i < 3; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			operate(0, -1, 0);
			operate(1, 1, 0);
			_exit(value(1));
		}
		while (semctl(set, 0, GETNCNT) != i + 1)
			rest(1);
	}
	operate(0, 1, 0);
	say("not mine", operate(0, -1, IPC_NOWAIT));
	say("first", end_of(children[0]));
	say("left", semctl(set, 0, GETNCNT));
	operate(0, 2, 0);
	say("both", end_of(children[1]) + end_of(children[2]) >= 4);
	pid_t child = fork();

	if (child == 0)
		_exit(-operate(1, 0, 0));
	while (semctl(set, 1, GETZCNT) != 1)
		rest(1);
	put(1, 0);
	say("zero", end_of(child));
	child = fork();
	if (child == 0) {
		sigaction(SIGUSR1, &action, NULL);
		_exit(-operate(0, -1, 0));
	}
	while (semctl(set, 0, GETNCNT) != 1)
		rest(1);
	kill(child, SIGUSR1);
	say("interrupted", end_of(child));
}

/* What a program did with SEM_UNDO is taken back when it ends, however it does. */
static void undo(void)
{
	put(0, 5);
	pid_t child = fork();

	if (child == 0) {
		operate(0, -2, SEM_UNDO);
		operate(0, -1, 0);
		operate(0, 1, SEM_UNDO);
		_exit(value(0));
	}
	say("in the child", end_of(child));
	say("undone", value(0));
	child = fork();
	if (child == 0) {
		operate(0, -4, SEM_UNDO);
		execl(myself, myself, "-executed", NULL);
	}
	say("executed", end_of(child));
	say("undone", value(0));
	child = fork();
	if (child == 0) {
		operate(0, -3, SEM_UNDO);
		pause();
	}
	while (value(0) != 1)
		rest(1);
	kill(child, SIGKILL);
	say("killed", end_of(child));
	say("undone", value(0));
	child = fork();
	if (child == 0) {
		operate(0, -3, SEM_UNDO);
		put(0, 7);
		_exit(0);
	}
	end_of(child);
	say("forgotten", value(0));
	put(0, 0);
	child = fork();
	if (child == 0)
		_exit(-operate(0, -1, SEM_UNDO));
	while (semctl(set, 0, GETNCNT) != 1)
		rest(1);
	say("set meanwhile", put(0, 4));
	say("done", end_of(child));
	say("undone", value(0));
}

/* What ipcs and ipcrm ask: limits, what there is, and each by a number. */
static void part_of_all(void)
{
	struct seminfo limits, use;
	struct semid_ds state;
	struct msginfo messages;
	struct shminfo memory;
	struct shm_info segments;
	int index = semctl(0, 0, SEM_INFO, (union semun){ .buf = (void *)&use });
	bool found = false;

	say("IPC_INFO", semctl(0, 0, IPC_INFO, (union semun){ .buf = (void *)&limits }) == index);
	say("sets", limits.semmni);
	say("of", limits.semmsl);
	say("operations", limits.semopm);
	say("values", limits.semvmx);
	say("there are", use.semusz > 0 && use.semaem >= 3 && index >= use.semusz - 1);
	for (int i = 0; i <= index; i++)
		found |= semctl(i, 0, SEM_STAT, (union semun){ .buf = &state }) == set;
	say("found", found && state.sem_nsems > 0);
	say("no such", error_of(semctl(9999, 0, SEM_STAT, (union semun){ .buf = &state })));
	say("messages", msgctl(0, IPC_INFO, (void *)&messages) >= 0);
	say("longest", messages.msgmax);
	say("capacity", messages.msgmnb);
	say("segments", shmctl(0, IPC_INFO, (void *)&memory) >= 0);
	say("most", memory.shmmni);
	say("in use", shmctl(0, SHM_INFO, (void *)&segments) >= 0 && segments.used_ids >= 0);
}

void part_semaphores(void)
{
	sets();
	operations();
	sleepers();
	undo();
	part_of_all();
	pid_t child = fork();

	if (child == 0)
		_exit(-operate(0, -30, 0));
	while (semctl(set, 0, GETNCNT) != 1)
		rest(1);
	say("remove", error_of(semctl(set, 0, IPC_RMID)));
	say("told", end_of(child));
	say("gone", value(0));
	say("key", error_of(semget(key, 0, 0)));
}

/* ---- messages ---- */

struct letter {
	long type;
	char text[64];
};

static int queue;

static long send(long type, const char *text, int flags)
{
	struct letter letter = { .type = type };

	strcpy(letter.text, text);
	return error_of(msgsnd(queue, &letter, strlen(text), flags));
}

static void receive(const char *what, long type, size_t room, int flags)
{
	struct letter letter = { .type = 0 };
	long length = error_of(msgrcv(queue, &letter, room, type, flags | IPC_NOWAIT));

	printf("%s %ld %ld %s\n", what, length, letter.type, letter.text);
}

static void letters(void)
{
	send(3, "three", 0);
	send(1, "one", 0);
	send(2, "two", 0);
	send(1, "another", 0);
	receive("of type 2", 2, 64, 0);
	receive("the lowest", -2, 64, 0);
	receive("no 1", 1, 64, MSG_EXCEPT);
	receive("too long", 0, 3, 0);
	receive("cut", 0, 3, MSG_NOERROR);
	receive("none", 0, 64, 0);
	say("empty", send(9, "", 0));
	receive("empty", -99, 0, 0);
	say("type", send(0, "x", 0));
	say("long", error_of(msgsnd(queue, &(struct letter){ 1 }, 8193, 0)));
	say("nowhere", error_of(msgsnd(queue, (void *)16, 1, 0)));
	say("negative", error_of(msgrcv(queue, &(struct letter){ 1 }, -1, 0, IPC_NOWAIT)));
}

static void *receive_later(void *unused)
{
	struct letter letter;

	rest(20);
	return (void *)(intptr_t)msgrcv(queue, &letter, sizeof(letter.text), 5, 0);
}

/* A sender waits for room, a receiver for its type. */
static void waits(void)
{
	struct msqid_ds state;
	int sent = 0;
	void *got;

	msgctl(queue, IPC_STAT, &state);
	say("capacity", state.msg_qbytes);
	state.msg_qbytes = 100;
	say("IPC_SET", error_of(msgctl(queue, IPC_SET, &state)));
	while (send(5, "ten bytes.", IPC_NOWAIT) == 0)
		sent++;
	say("room for", sent);
	say("full", errno);
	pthread_t thread = start(receive_later, NULL);

	say("waits for room", send(6, "more bytes", 0));
	pthread_join(thread, &got);
	say("received", (long)got);
	msgctl(queue, IPC_STAT, &state);
	say("messages", state.msg_qnum);
	say("bytes", state.msg_cbytes);
	say("by me", state.msg_lspid == getpid() && state.msg_lrpid == getpid());
	pid_t child = fork();

	if (child == 0)
		_exit(-error_of(msgrcv(queue, &state, 0, 77, 0)));
	rest(30);
	say("remove", error_of(msgctl(queue, IPC_RMID, NULL)));
	say("told", end_of(child));
}

void part_messages(void)
{
	queue = msgget(key, IPC_CREAT | IPC_EXCL | 0600);
	say("again", error_of(msgget(key, IPC_CREAT | IPC_EXCL)));
	say("the same", msgget(key, 0) == queue);
	say("another", error_of(msgget(key + 1, 0)));
	letters();
	waits();
	say("gone", send(1, "x", 0));
	say("command", error_of(msgctl(queue, 77, NULL)));
}
