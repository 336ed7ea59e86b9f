# Other shells: zsh, mksh, tcsh, busybox's, and jimsh.
cat >posix <<'END'
f() { local a=$1; [ "$a" -le 1 ] && echo 1 || echo $((a * $(f $((a - 1))))); }
f 6
for each in a 'b c' "$(printf '%s\n' d e)"; do echo "<$each>"; done
case hello in h*o) echo match;; esac
x=abcdef; echo "${x#ab} ${x%f} ${#x} ${y:-none}"
(exit 3); echo $?
trap 'echo ended' EXIT
kill -l 15; echo $((0x10 + 010))
cat <<A | tr a-z A-Z
here $x
A
sleep 0.1 & wait $!; echo "waited $?"
sh -c 'kill -TERM $$'; echo "killed $?"
set -- *; echo $#
END
for each in zsh mksh 'busybox sh'; do
	echo "== $each"
	$each ./posix
done
zsh -fc 'a=(3 1 2); print ${(o)a} ${#a} ${a[(r)2]}; print -l **/*(.N); typeset -A h; h[k]=v; print ${(kv)h}; echo =(echo x) | grep -c zsh; zmodload zsh/mathfunc; print $((sqrt(2)))'
mksh -c 'typeset -i n=7; print $((n * 2)) ${ echo fun; }; coproc=1; print -u1 ok; echo {1..3}'
tcsh -fc 'set a = (1 2 3); echo $#a $a[2]; foreach i ($a); echo $i; end; @ x = 3 * 4; echo $x'
jimsh - <<'END'
proc fib n {expr {$n < 2 ? $n : [fib [expr {$n - 1}]] + [fib [expr {$n - 2}]]}}
puts [fib 15]; puts [lsort -integer {3 1 2}]; puts [exec echo out | tr o O]
END
