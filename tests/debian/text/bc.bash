# What bc does: the same on Linux and on the kernel.
echo '2^100; scale=20; 4*a(1); sqrt(2); e(1)' | bc -l; echo 'ibase=16; FF; obase=2; A' | bc
bc <<'END'
define f(n) { if (n < 2) return 1; return n * f(n - 1); }
f(50)
for (i = 0; i < 5; i++) print i, " "
print "\n"; 10 % 3; -7 / 2; x = 5; x ^= 3; x
END
dc -e '5 3 * p 2 64 ^ p 10 k 2 v p [la 1 + sa la 5 >m] sm 0 sa lmx la p 16 o 255 p'
