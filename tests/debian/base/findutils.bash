# What findutils does: the same on Linux and on the kernel.
mkdir -p tree/{a,b}/deep; for i in 1 2 3; do echo $i >tree/a/f$i.txt; done; touch tree/b/deep/x.c
ln -s ../a tree/b/link; chmod 700 tree/a/f2.txt; touch -d '2001-01-01' tree/a/f3.txt
find tree | sort; find tree -name '*.txt' -newer tree/a/f3.txt | sort; find tree -type d -name deep | sort
find tree -type l -printf '%p -> %l\n'; find tree -perm 700 -type f; find tree -empty | sort; find tree -type f -size -1c | sort
find tree -type f -exec wc -c {} + | tail -1; find tree -name 'f*' -print0 | sort -z | xargs -0 -n2 echo
find tree -maxdepth 1 -mindepth 1 | sort; find tree -path '*/b/*' -prune -o -type f -print | sort
find tree -type f -printf '%f %s %m\n' | sort; find tree -mtime +1000; find -L tree -name f1.txt | sort
seq 5 | xargs -I{} echo item {}; seq 6 | xargs -P3 -n2 echo | sort; echo a b | xargs -t true 2>&1; false | xargs false; echo $?
seq 50000 | xargs echo | wc -w; find tree -name x.c -delete; find tree -name x.c | wc -l; find nothing; echo $?
find tree -type f -regex '.*f[12].*' | sort; find . -inum "$(stat -c %i tree)"; find tree -links +1 -type f; find tree -newermt 2000-01-01 -type f | wc -l
