# What dash does: the same on Linux and on the kernel.
cat >s <<'END'
set -eu
for i in 1 2 3; do case $i in 2) continue ;; esac; printf '%d ' "$((i * i))"; done; echo
f() { local x=$1; shift; echo "$x:$*:$#"; }; f a b c
cat <<X
here $((1 + 2)) $(echo sub)
X
trap 'echo bye' EXIT; (exit 4) || echo $?; x=abc.tar.gz; echo ${x%%.*} ${x##*.} ${#x} ${y:-none}
while read a b; do echo "$b $a"; done <<X
1 2
3 4
X
getopts ab: o -b val; echo $o $OPTARG; test -d / && echo dir; umask; set -- x y; echo $2; eval 'echo $1'; command -v cd; times >/dev/null; wait; exec echo the end
END
dash s; echo $?; dash -c 'echo $0 $1' a b; echo 'echo read from a pipe' | dash; dash -c 'kill -TERM $$'; echo $?
