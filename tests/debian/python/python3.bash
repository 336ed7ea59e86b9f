# What python3 does: the same on Linux and on the kernel.
python3 - <<'END'
import array, bisect, collections, decimal, fractions, functools, hashlib, heapq, io, itertools, json, math, os, random, re, struct, sys, zlib
print(sys.version_info[:2], sys.platform, 2 ** 200, -7 // 2, 0.1 + 0.2, 1e308 * 10)
print(sorted({"b": 1, "a": 2}.items()), [*map(str.upper, "abc")], {x % 3 for x in range(9)})
print(json.dumps({"k": [1, 2.5, None, True, "ä"]}, sort_keys=True), json.loads("[1e3]"))
print(re.sub(r"(\w+)@(\w+)", r"\2 at \1", "user@host"), re.findall(r"\d+", "a1b22"))
print(hashlib.sha256(b"abc").hexdigest()[:16], zlib.crc32(b"abc"), struct.pack("<IhB", 1, -2, 3).hex())
random.seed(7); print([random.randint(0, 99) for _ in range(5)], random.random())
print(decimal.Decimal(1) / 7, fractions.Fraction(3, 6), math.factorial(25), math.isqrt(10 ** 20), math.pi)
print(collections.Counter("mississippi").most_common(2), list(itertools.permutations("abc", 2))[:3])
@functools.lru_cache(None)
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
print(fib(90), sum(i * i for i in range(100000)), len(zlib.compress(b"x" * 100000)))
class A:
    def __init__(self, n): self.n = n
    def __add__(self, o): return A(self.n + o.n)
    def __repr__(self): return f"A({self.n})"
print(A(1) + A(2), f"{3.14159:8.3f}|{255:#x}|{'x':>3}", "%s %05d" % ("s", 42))
try: {}["k"]
except KeyError as e: print("KeyError", e)
def gen():
    got = yield 1
    yield got * 2
g = gen(); print(next(g), g.send(21))
print(io.StringIO("a\nb").readlines(), bytes(range(3)), bytearray(b"ab") * 2, array.array("i", [1, 2]).tobytes().hex())
END
python3 - <<'END'
import mmap, os, pathlib, select, shutil, signal, socket, stat, subprocess, tempfile, time
p = pathlib.Path("d/e"); p.mkdir(parents=True); (p / "f").write_text("line\n" * 3)
print(sorted(map(str, pathlib.Path("d").rglob("*"))), (p / "f").stat().st_size)
with open(p / "f", "r+b") as f, mmap.mmap(f.fileno(), 0) as m:
    print(m[:4], m.find(b"l", 1)); m[0:4] = b"LINE"; m.flush()
print((p / "f").read_text().splitlines())
print(subprocess.run(["sh", "-c", "echo out; echo err >&2; exit 3"], capture_output=True, text=True))
print(subprocess.check_output("tr a-z A-Z", input=b"through a pipe", shell=True))
r, w = os.pipe()
if (child := os.fork()) == 0:
    os.write(w, b"from the child"); os._exit(7)
print(os.waitpid(child, 0)[1] >> 8, select.select([r], [], [], 1)[0] == [r], os.read(r, 100))
signal.signal(signal.SIGALRM, lambda *a: print("alarm", a[0])); signal.setitimer(signal.ITIMER_REAL, 0.05); signal.pause()
with tempfile.TemporaryDirectory() as t: shutil.copytree("d", t + "/copy"); print(os.listdir(t + "/copy/e"))
shutil.make_archive("a", "gztar", "d"); shutil.unpack_archive("a.tar.gz", "x"); print(sorted(os.listdir("x")))
os.symlink("d", "s"); print(os.readlink("s"), os.path.realpath("s/e") == os.getcwd() + "/d/e", stat.filemode(os.lstat("s").st_mode))
m = mmap.mmap(-1, 4096)
if os.fork() == 0: m[:5] = b"child"; os._exit(0)
os.wait(); print(m[:5])
a = time.monotonic(); time.sleep(0.02); print(time.monotonic() - a >= 0.02, time.gmtime(0)[:6])
try: open("nothing")
except OSError as e: print(e)
import fcntl
with open("lock", "w") as f: fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB); fcntl.flock(f, fcntl.LOCK_SH); print("locked")
print(os.get_terminal_size.__name__, os.cpu_count() > 0, os.getpid() > 1, os.uname().sysname)
END
cat >mod.py <<'END'
import argparse, csv, datetime, io, textwrap, unittest, xml.etree.ElementTree as E, configparser, sqlite3, pickle, gzip, bz2, lzma
class T(unittest.TestCase):
    def test(self): self.assertEqual(1 + 1, 2)
    def test_db(self):
        c = sqlite3.connect(":memory:"); c.execute("create table t(a)"); c.executemany("insert into t values(?)", [(i,) for i in range(1000)])
        self.assertEqual(c.execute("select sum(a) from t").fetchone(), (499500,))
    def test_packers(self):
        for m in gzip, bz2, lzma: self.assertEqual(m.decompress(m.compress(b"x" * 1000)), b"x" * 1000)
    def test_more(self):
        self.assertEqual(pickle.loads(pickle.dumps({1: [2]})), {1: [2]}); self.assertEqual(str(datetime.date(2024, 2, 28) + datetime.timedelta(2)), "2024-03-01")
        self.assertEqual(E.fromstring("<a><b c='1'/></a>")[0].get("c"), "1"); self.assertEqual(list(csv.reader(io.StringIO('a,"b,c"'))), [["a", "b,c"]])
END
python3 -m unittest mod 2>&1 | sed 's/in [0-9.]*s/in/'; ls; python3 -m json.tool <<<'{"a":1}'; python3 -c 'import sys; sys.exit(9)'; echo $?; python3 -c '1/0' 2>&1 | tail -1; python3 -m timeit -n 1 -r 1 pass | cut -c1-6; python3 -m compileall -q mod.py && echo compiled; python3 -c 'import ctypes; print(ctypes.CDLL("libc.so.6").abs(-5))'; python3 -m http.server --help | head -1
