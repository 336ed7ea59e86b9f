# What gawk does: the same on Linux and on the kernel.
printf 'ann 30 2.5\nbob 41 3.5\ncid 25 1.25\n' >table
gawk '{ sum += $2; w[$1] = $3 } END { print sum, sum / NR; n = asorti(w, k); for (i = 1; i <= n; i++) printf "%s=%.2f\n", k[i], w[k[i]] }' table
gawk -F: 'BEGIN { OFS = "-" } { $1 = $1; print }' <<<a:b:c
gawk 'BEGIN { print length("hello"), substr("hello", 2, 3), index("hello", "ll"), toupper("x"), match("foobar", /o+/), RSTART, RLENGTH }'
gawk 'BEGIN { s = "a1b22"; print gensub(/([0-9]+)/, "<\\1>", "g", s); n = split("x,y,z", p, ","); print n, p[3]; printf "%d %x %c %5.1f%%\n", 42, 255, 65, 99.5 }'
gawk 'BEGIN { for (i = 0; i < 20000; i++) s += i * i; print s; print 2 ** 0.5, int(-3.7), exp(1), atan2(1, 1), sin(1), log(10) }'
gawk 'BEGIN { "echo from a command" | getline line; print line; print "sorted\nlines" | "sort -r"; close("sort -r") }'
gawk 'function f(n) { return n < 2 ? 1 : n * f(n - 1) } BEGIN { print f(15), f(25) }'
gawk 'BEGIN { print strftime("%Y-%m-%d %H:%M:%S", 86400 * 365, 1); print and(12, 10), xor(12, 10), lshift(1, 10), strtonum("0x1F") }'
gawk 'BEGIN { srand(7); x = rand(); y = rand(); print (x != y), (x < 1) }'
gawk 'BEGIN { RS = "" } { print NR ": " $1 }' <<<$'a\nb\n\nc'
gawk 'BEGIN { PROCINFO["sorted_in"] = "@ind_num_desc"; for (i = 1; i < 5; i++) a[i] = i; for (i in a) printf "%d ", a[i]; print "" }'
gawk -M 'BEGIN { print 2 ^ 100 }'
gawk '/bob/,/cid/ { print NR, $0 > "out" } END { close("out"); while ((getline x < "out") > 0) print "read", x }' table
gawk 'BEGIN { cmd = "cat"; print "two way" |& cmd; close(cmd, "to"); cmd |& getline l; print l }'
gawk 'BEGIN { exit 7 }'; echo $?; gawk 'BEGIN { print ENVIRON["HOME"]; print length(ARGV) ; system("echo sub; exit 3") }'
