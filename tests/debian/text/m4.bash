# What m4 does: the same on Linux and on the kernel.
m4 <<'END'
define(`square', `eval($1 * $1)')square(12)
define(`loop', `ifelse($1, 0, `done', `$1 loop(decr($1))')')loop(5)
len(`hello') substr(`abcdef', 2, 3) translit(`abc', `a-c', `A-C') index(`hello', `l') regexp(`x42y', `[0-9]+', `<\&>') format(`%05d', 42) esyscmd(`echo shell')sysval
divert(1)later
divert(0)sooner
END
echo 'X' | m4 -DX=defined; m4 missing 2>&1; echo $?
