# What less does: the same on Linux and on the kernel.
seq 50 >f; less -F f | head -3; less f | tail -1; less -FX </etc/passwd; echo 'x' | less -E; less missing; echo $?; lessecho a b; less -N f | sed -n 2p
