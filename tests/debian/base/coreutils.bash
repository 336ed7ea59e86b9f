# Text and numbers.
seq 100 | sort -rn | head -3
printf 'b 2\na 10\nc 1\n' | sort -k2,2n -s | tac
seq 1 20000 | sha256sum
seq 1 2000 | md5sum
seq 1 2000 | sha1sum
seq 1 2000 | sha512sum | cut -c1-32
seq 1 2000 | b2sum | cut -c1-32
seq 1 2000 | cksum
seq 1 2000 | sum
echo hello | tr a-z A-Z | tr -d L | tr -s O
printf 'a:b:c\nd:e:f\n' | cut -d: -f1,3
printf '1 a\n2 b\n3 c\n' >left; printf '1 x\n3 y\n4 z\n' >right
join left right; join -v1 left right
comm <(seq 1 5) <(seq 3 7)
paste -d, left right
seq 10 | split -l 4 - part. && wc -l part.*
csplit -s left 2 && cat xx01
seq 5 | tac | nl
printf 'a\na\nb\n' | uniq -c
seq 30 | pr -3 -t -l 10
echo 'the quick brown fox jumps over the lazy dog again and again' | fold -s -w 20 | fmt -w 30
printf 'a\tb\n' | expand | cat -A
factor 360 97 123456789012345 18446744073709551557
seq -s, 0.5 0.25 1.5
seq -w 8 11
expr 6 \* 7; expr length abcdef; expr abc : 'a\(.\)c'
echo 1048576 | numfmt --to=iec; numfmt --from=iec 3M
printf 'x%.0s' {1..100} | base64 -w 40 | tee copy | base64 -d | wc -c
base32 copy | head -1; basenc --base16 <<<hi
od -A x -t x1z <<<'hello, world'
shuf -i 1-20 --random-source=<(yes) | paste -sd' '
tsort <<<'a b
b c
a d'
ptx -G <<<'one two' 2>&1 | head -2
date -u -d @1000000000 '+%F %T %A %j'; date -u -d '2024-02-28 +2 days' +%F
# Files.
mkdir -p a/b/c; echo data >a/b/file; touch -d '2020-01-02 03:04:05 UTC' a/b/file
cp -a a copy-of-a; ls -l --time-style=+%F copy-of-a/b/file
ln -s ../a/b/file link-in; ln a/b/file hard; stat -c '%n %h %s %F %a' hard; stat -c '%n %h %F %a' a/b
ln -s a/b there; readlink there; readlink -f there/file; realpath --relative-to=a/b/c a
mv hard moved; mv -n moved a; ls a
chmod 640 a/moved; chmod u+x,g-r a/moved; stat -c %A a/moved
install -m 755 -D a/moved installed/here/tool; stat -c '%a %n' installed/here/tool
du --apparent-size -b a/b/file; du -s --apparent-size -b a/moved | cut -f1
dd if=/dev/zero of=zeros bs=1k count=64 status=none; dd if=zeros bs=4k skip=15 2>/dev/null | wc -c
truncate -s 1M sparse; stat -c '%s %b' sparse; fallocate -l 4096 full 2>/dev/null; cmp zeros sparse 2>&1
head -c 100 /dev/urandom | wc -c
f=$(mktemp -p . XXXXXX.tmp); test -f "$f" && echo made; rm "$f"
mkfifo pipe; (echo through >pipe &) ; cat pipe
rm -rf copy-of-a; rmdir a 2>&1; test -d copy-of-a; echo $?
df . | tail -1 | awk '{print NF}'
sync; sync a/moved; shred -u zeros; ls zeros 2>&1
dircolors -b | head -c 20; echo
# Programs.
timeout 0.2 sleep 5; echo "timeout $?"; timeout 5 echo in time
env -i A=1 B=2 env | sort; echo $(($(nice -n 5 nice) - $(nice))); nohup echo still 2>&1
echo a b c | xargs -n1 echo; printenv HOME; whoami; id -u; groups; logname 2>&1
nproc >/dev/null; uname -m -s | wc -w; tty; arch | wc -l
stdbuf -oL echo line; yes | head -2; true && ! false && echo logic
[ 3 -gt 2 ] && test -n x && echo test; pathchk -p ok; basename /a/b.c .c; dirname /a/b.c
kill -l 9; sleep 0.01; printf '%5.2f|%-6s|%c\n' 3.14159 ab xyz; echo -e 'tab\there'
who; users; hostid >/dev/null && echo hostid; vdir -d a | cut -c1-10; link a/moved linked; unlink linked
pwd -P; stty size 2>&1
