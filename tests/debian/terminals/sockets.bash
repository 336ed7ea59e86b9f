# Sockets with names: python's socket, multiprocessing and asyncio, and files that are sent.
cat >at <<'END'
import array, errno, os, select, socket, stat, struct, sys, threading, time

def error(call, *words):
    try:
        return call(*words)
    except OSError as reason:
        return errno.errorcode[reason.errno]

def new():
    return socket.socket(socket.AF_UNIX)

server = new()
print(error(server.accept), error(server.connect, "none"), error(server.listen))
server.bind("name")
print(stat.S_ISSOCK(os.stat("name").st_mode), error(new().bind, "name"), error(open, "name"))
print(error(new().connect, "name"), error(server.bind, "other"))
server.listen(1)
print(server.getsockname(), stat.S_ISSOCK(os.fstat(server.fileno()).st_mode))
client = new()
print(select.select([server], [], [], 0)[0] == [])
client.connect("name")
print(select.select([server], [], [], 0)[0] == [server], client.getpeername(), client.getsockname())
client.send(b"early")
end, address = server.accept()
print(repr(address), end.getsockname(), end.recv(99), error(client.connect, "name"))
print(struct.unpack("3i", end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0] == os.getpid())
end.sendall(b"answer")
print(client.recv(99))
end.close()
print(client.recv(99), error(client.send, b"x"))
several = [new() for _ in range(3)]
for each in several:
    each.setblocking(False)
print([error(each.connect, "name") for each in several])
server.setblocking(False)
print([isinstance(error(server.accept), tuple) for _ in range(3)])
os.unlink("name")
print(error(new().connect, "name"))
server.close()
print(several[0].recv(9))

server = new()
server.bind("\0abstract")
server.listen()
def talk():
    end, _ = server.accept()
    while data := end.recv(5000):
        end.sendall(data.upper())
    end.close()
thread = threading.Thread(target=talk)
thread.start()
client = new()
client.connect("\0abstract")
client.sendall(b"word " * 5000)
got = b""
while len(got) < 25000:
    got += client.recv(9999)
print(got == b"WORD " * 5000, client.getpeername())
client.shutdown(socket.SHUT_WR)
print(client.recv(9))
thread.join()
print(error(new().bind, "\0abstract"))
unnamed = new()
unnamed.bind("")
print(len(unnamed.getsockname()))

one, two = socket.socketpair()
with open("file", "w+") as file:
    file.write("contents")
    file.flush()
    r, w = os.pipe()
    socket.send_fds(one, [b"two files"], [file.fileno(), w])
one.send(b"plain")
os.close(w)
data, files, flags, _ = socket.recv_fds(two, 99, 9)
print(data[:9], len(files), flags, os.pread(files[0], 99, 0))
os.write(files[1], b"through")
for each in files:
    os.close(each)
print(os.read(r, 99), os.read(r, 99))
socket.send_fds(one, [b"a"], [r])
socket.send_fds(one, [b"b"], [r, r])
print([len(socket.recv_fds(two, 99, 9)[1]) for _ in range(2)])
socket.send_fds(one, [b"c"], [r, r, r])
data, files, flags, _ = socket.recv_fds(two, 99, 1)
print(data[-1:], bool(flags & socket.MSG_CTRUNC))
print(error(socket.send_fds, one, [b"d"], [99]))
r2, w2 = os.pipe()
socket.send_fds(one, [b"e"], [w2])
os.close(w2)
print(two.recv(9), os.read(r2, 9))
socket.send_fds(one, [b"f"], [r2])
if (child := os.fork()) == 0:
    _, files, _, _ = socket.recv_fds(two, 9, 9)
    os._exit(len(files))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

name = os.memfd_create("name", os.MFD_CLOEXEC)
os.write(name, b"in memory")
import mmap
with mmap.mmap(name, 9) as area:
    area[:2] = b"IN"
print(os.pread(name, 99, 0), os.fstat(name).st_size, os.fstat(name).st_nlink, os.get_inheritable(name))
print(error(os.memfd_create, "x" * 300))
END
python3 -u at
cat >pool <<'END'
import asyncio, multiprocessing, os
from multiprocessing.connection import Client, Listener

def square(n):
    return n * n

def serve(listener):
    with listener.accept() as link:
        link.send(["hello", link.recv() * 2])

async def answer(reader, writer):
    writer.write((await reader.readline()).swapcase())
    await writer.drain()
    writer.close()

async def main():
    server = await asyncio.start_unix_server(answer, "asynchronous")
    reader, writer = await asyncio.open_unix_connection("asynchronous")
    writer.write(b"One Line\n")
    print(await reader.read())
    server.close()
    process = await asyncio.create_subprocess_exec("echo", "child", stdout=-1)
    print(await process.communicate())

if __name__ == "__main__":
    for method in "fork", "spawn", "forkserver":
        context = multiprocessing.get_context(method)
        with context.Pool(2) as pool:
            print(method, pool.map(square, range(9)))
        queue = context.Queue()
        process = context.Process(target=queue.put, args=(42,))
        process.start()
        print(queue.get(), process.join(), process.exitcode)
    listener = Listener("listener", "AF_UNIX", authkey=b"key")
    process = multiprocessing.get_context("fork").Process(target=serve, args=(listener,))
    process.start()
    with Client("listener", "AF_UNIX", authkey=b"key") as link:
        link.send("word")
        print(link.recv())
    process.join()
    with multiprocessing.Manager() as manager:
        shared = manager.dict(a=1)
        shared["b"] = 2
        print(dict(shared))
    asyncio.run(main())
END
python3 -u pool
cat >signals <<'END'
import ctypes, os, select, signal, struct
libc = ctypes.CDLL(None, use_errno=True)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGALRM, signal.SIGCHLD})
mask = (ctypes.c_ulong * 32)(1 << 9 | 1 << 13 | 1 << 16)
file = libc.signalfd(-1, mask, os.O_NONBLOCK)
print(file > 0, select.select([file], [], [], 0)[0])
try:
    os.read(file, 128)
except BlockingIOError as error:
    print(error.errno)
os.kill(os.getpid(), signal.SIGUSR1)
signal.setitimer(signal.ITIMER_REAL, 0.05)
print(select.select([file], [], [], 5)[0] == [file])
print(struct.unpack("Iii", os.read(file, 128)[:12])[0])
print(select.select([file], [], [], 5)[0] == [file])
print(struct.unpack("Iii", os.read(file, 999)[:12])[0])
if (child := os.fork()) == 0:
    os._exit(7)
os.set_blocking(file, True)
data = os.read(file, 999)
words = struct.unpack("11I", data[:44])
print(len(data), words[0], words[2], words[3] == child, words[10])
END
python3 -u signals
