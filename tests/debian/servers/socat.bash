# What socat does with streams and datagrams: the same on Linux and on the kernel.
socat UNIX-LISTEN:s,fork EXEC:'tr a-z A-Z' &
for i in {1..50}; do [ -S s ] && break; sleep 0.1; done
echo hello | socat - UNIX-CONNECT:s
kill %1; wait %1; echo $?
socat -u UNIX-RECV:d CREATE:got &
for i in {1..50}; do [ -S d ] && break; sleep 0.1; done
echo first | socat - UNIX-SENDTO:d
echo second | socat - UNIX-SENDTO:d
for i in {1..50}; do grep -q second got 2>/dev/null && break; sleep 0.1; done
kill %2; cat got
socat ABSTRACT-LISTEN:name - >heard &
sleep 0.5; echo abstract | socat - ABSTRACT-CONNECT:name; wait %3; cat heard
echo x | socat - EXEC:cat,pty,raw,echo=0
socat -u FILE:/etc/passwd - | wc -l
socat - UNIX-CONNECT:nothing 2>&1 | sed 's/.* E/E/'
