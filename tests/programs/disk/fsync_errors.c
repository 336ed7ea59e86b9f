/* A write that fails is told by the next fsync of each open file, once. fsync_errors FILE */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void say(const char *what, int result)
{
	printf("%s: %s\n", what, result < 0 ? strerror(errno) : "ok");
}

int main(int count, char **words)
{
	static char data[4096];
	int one = open(words[count - 1], O_RDWR), two = open(words[count - 1], O_RDONLY);

	say("write", write(one, data, sizeof(data)));
	say("one", fsync(one));
	say("one again", fsync(one));
	say("two", fsync(two));
	say("two again", fsync(two));
	say("late", fsync(open(words[count - 1], O_RDONLY)));
	say("elsewhere", pwrite(one, data, sizeof(data), 8 * sizeof(data)));
	say("and safe", fsync(one));
	return 0;
}
