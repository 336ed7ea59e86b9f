# What grep does: the same on Linux and on the kernel.
printf '%s\n' 'alpha 1' 'Beta 22' 'gamma 333' 'delta' >file
grep -n '[0-9]\{2,\}' file; grep -ci BETA file; grep -v a file; grep -oE '[0-9]+' file
grep -E '^(alpha|delta)' file; grep -F '22' file; grep -w alpha file; grep -x delta file
grep -P '(?<=gamma )\d+' -o file; grep -A1 -B1 Beta file; grep -c . file
mkdir -p d/e; cp file d/e/copy; grep -rl gamma . | sort; grep -r --include=copy -n delta .
grep nothing file; echo $?; grep x missing; echo $?
printf 'a\0b\n' | grep -a b | wc -c; printf 'bin\0ary' | grep bin; egrep 'l|t' file 2>/dev/null | head -2
seq 20000 | grep -c '7.*7'; grep -m1 a file; grep -e alpha -e delta -h file; grep -L delta file d/e/copy; grep -q delta file && echo yes
