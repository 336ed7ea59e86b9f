# What diffutils does: the same on Linux and on the kernel.
seq 10 >a; sed '3d;7s/7/seven/;$a eleven' a >b
diff a b; echo $?; diff -u --label a --label b a b; diff -y -W 40 a b; diff -q a b; cmp a b; cmp -l <(echo abc) <(echo abd)
mkdir x y; cp a x; cp b y; touch x/only; diff -r x y; seq 10 | sed 's/5/five/' >c; diff3 a b c; echo $?
sdiff -w 30 -s a b; diff -c --label a --label b a c; diff -w <(echo 'a  b') <(echo 'a b') && echo same; diff --brief a a; diff -e a b
