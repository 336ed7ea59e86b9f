# Bash's own language: arrays, functions, substitutions, pipes, jobs, traps, here-documents.
declare -A age=([ann]=30 [bob]=41)
for name in ann bob; do echo "$name ${age[$name]}"; done
words=(one two "three four" five)
echo "${#words[@]} ${words[2]} ${words[@]:1:2} ${words[-1]}"
text="The quick brown fox"
echo "${text,,} ${text^^} ${text/quick/slow} ${text#* } ${text%% *} ${#text} ${text:4:5}"
fib() { local n=$1; ((n < 2)) && echo "$n" || echo $(($(fib $((n - 1))) + $(fib $((n - 2))))); }
fib 9
echo $((2 ** 40)) $((-7 / 2)) $((-7 % 3)) $((0xff ^ 0x0f)) $((1 << 33))
while IFS=: read -r a b c; do printf '%-5s|%5s|%05d\n' "$a" "$b" "$c"; done <<'END'
x:y:42
long:z:7
END
diff <(printf '1\n2\n') <(printf '1\n3\n')
coproc tr a-z A-Z
echo hello >&"${COPROC[1]}"
eval "exec ${COPROC[1]}>&-"
cat <&"${COPROC[0]}"
wait
trap 'echo trapped USR1' USR1
kill -USR1 $$
(trap 'echo at the exit' EXIT; exit 3); echo "status $?"
set -o pipefail
false | true; echo "pipefail $? ${PIPESTATUS[*]}"
sleep 5 & pid=$!
kill $pid
wait $pid 2>/dev/null; echo "killed $?"
case abc in a?c) echo matches ;; *) echo no ;; esac
[[ foo123 =~ ^([a-z]+)([0-9]+)$ ]] && echo "${BASH_REMATCH[1]}-${BASH_REMATCH[2]}"
printf '%s\n' {a..e}{1..2} | paste -sd,
printf '%q %x %o %e %s\n' "a b" 255 8 3.25 end
mkdir d && cd d && pwd && cd - >/dev/null
shopt -s nullglob extglob globstar
touch f1.c f2.c f3.h
echo *.c !(*.c) *.nothing **/
exec 3>out; echo to three >&3; exec 3>&-; cat out
ulimit -n >/dev/null && echo limit
mapfile -t lines < <(seq 3); echo "${lines[*]}"
select_ifs=$IFS; IFS=,; set -- a,b c; echo "$*"; IFS=$select_ifs
read -r -t 1 answer <<<"given"; echo "$answer"
echo ${nothing:-default} ${text:+set} "${BASH_VERSION%%(*}"
time_format='%R'; TIMEFORMAT=; time true
type -t cd ls fib
nothing-like-this; echo "status $?"
