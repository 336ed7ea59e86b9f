# Programs in Rust, which search with several threads.
mkdir -p tree/{a,b}/{c,d}
for i in $(seq 50); do echo "line $i of a file, needle $((i % 7))" >tree/a/c/$i.txt; done
echo 'fn main() { needle(); }' >tree/b/d/main.rs
printf 'binary\0needle' >tree/b/blob
rg --sort path -c 'needle 3' tree
rg -N --no-filename 'needle [12]' tree | sort | sha256sum
rg --sort path -n needle tree/b
rg -o --replace '$2:$1' '(line) (\d+)' tree/a/c/7.txt
rg nothing tree; echo "status $?"
rg --files tree | sort | wc -l
seq 100000 | rg -c 7
fdfind . tree | sort | head -5
fdfind -e rs . tree
fdfind -t d . tree | sort
fdfind -x wc -c {} \; '^1.txt' tree
