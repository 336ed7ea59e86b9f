# python's pty, tty and termios modules, and what a terminal does with bytes.
cat >at <<'END'
import errno, fcntl, os, pty, select, signal, struct, sys, termios, time, tty

def error(call, *words):
    try:
        return call(*words)
    except OSError as reason:
        return errno.errorcode[reason.errno]

master, slave = pty.openpty()
print(os.isatty(master), os.isatty(slave), os.ttyname(slave).rstrip("0123456789"))
print(error(termios.tcgetattr, slave)[:6])
os.write(master, b"abc\x7fd\n")
print(os.read(slave, 99), os.read(master, 99))
os.write(slave, b"one\ntwo\n")
print(os.read(master, 99))
os.write(master, b"half")
print(select.select([slave], [], [], 0)[0] == [])
os.write(master, b"\x04")
print(os.read(slave, 99))
os.write(master, b"\x04")
print(os.read(slave, 99))
tty.setraw(slave)
os.write(master, b"a\r\x03")
print(os.read(slave, 99), select.select([master], [], [], 0)[0])
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 7, 8, 0, 0))
print(struct.unpack("HHHH", fcntl.ioctl(master, termios.TIOCGWINSZ, bytes(8))))
os.set_blocking(master, False)
print(error(os.read, master, 9))
os.set_blocking(slave, False)
total = 0
while isinstance(n := error(os.write, slave, b"x" * 999), int):
    total += n
print(n, total > 3000)
while isinstance(piece := error(os.read, master, 9999), bytes):
    total -= len(piece)
print(piece, total)
second = os.open(os.ttyname(slave), os.O_RDWR | os.O_NOCTTY)
os.close(slave)
os.write(second, b"still")
print(os.read(master, 99))
os.close(second)
print(error(os.read, master, 9), select.select([master], [], [], 0)[0] == [master])
poll = select.poll()
poll.register(master)
print(bool(poll.poll(0)[0][1] & select.POLLHUP))
os.close(master)

master, slave = pty.openpty()
os.close(master)
print(error(os.read, slave, 9), error(os.write, slave, b"x"))
os.close(slave)

child, master = pty.fork()
if child == 0:
    print(os.getsid(0) == os.getpid(), os.tcgetpgrp(0) == os.getpid())
    signal.signal(signal.SIGWINCH, lambda *_: print("winch", os.get_terminal_size()))
    signal.signal(signal.SIGHUP, lambda *_: os._exit(9))
    print("ready", flush=True)
    while True:
        time.sleep(9)
said = b""
while b"ready\r\n" not in said:
    said += os.read(master, 99)
print(said)
fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 9, 9, 0, 0))
said = b""
while b"\n" not in said:
    said += os.read(master, 99)
print(said)
os.close(master)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

child, master = pty.fork()
if child == 0:
    os.execvp("sleep", ["sleep", "99"])
time.sleep(0.3)
os.write(master, b"\x03")
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(os.read(master, 9), error(os.read, master, 9))
os.close(master)
several = [pty.openpty() for _ in range(9)]
print(len({os.ttyname(slave) for _, slave in several}))
for pair in several:
    for each in pair:
        os.close(each)
END
python3 -u at
python3 -c 'import pty, sys; sys.exit(pty.spawn(["echo", "spawned"]))'
echo "status $?"
