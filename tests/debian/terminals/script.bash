# script(1): a program at a terminal, and what it says there; without one it says something else.
number() { tr -d '\r' | sed 's/[0-9][0-9]*/N/'; }
at() { script -qec "$1" /dev/null </dev/null; }
script -qec 'tty; test -t 0 && test -t 1 && echo terminal' out </dev/null | number
number <out | sed 's/^Script.*/Script/'
at 'exit 3'; echo "status $?"
at 'kill -9 $$'; echo "status $?"
at 'ls --color=auto /programs | head -1 | wc -c'
at 'stty rows 33 columns 99; stty size; echo $((1 + 1)) >/dev/tty'
script -qec 'read word; echo "$word is what I read"' /dev/null <<<'one two'
at 'seq 20000 | tail -1'
at 'script -qec "tty | tr 0-9 N" /dev/null'
at 'setsid -w sh -c "echo x >/dev/tty" 2>&1 | grep -o "No such device.*"'
cmp <(seq 5000) <(at 'seq 5000' | tr -d '\r') && echo same
