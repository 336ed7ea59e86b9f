# What gnuplot and graphviz do: the same on Linux and on the kernel.
dot -c; echo $?
gnuplot() { gnuplot-nox "$@"; }
gnuplot -e 'set terminal dumb 40 12; plot sin(x)' 2>&1 | md5sum; gnuplot -e 'set terminal svg; set output "o.svg"; plot x**2; fit a*x+b "<seq 10" using 0:1 via a,b' 2>&1 | grep -c "^a "; wc -l < o.svg; echo 'digraph { a -> b -> c; a -> c }' | dot -Tplain; echo 'graph { a -- b -- c }' | neato -Tplain | wc -l; echo 'digraph{a->b}' | dot -Tsvg | grep -c polygon
