# What sed does: the same on Linux and on the kernel.
seq 10 >file
sed -n '3,5p;$p' file; sed '2,9d' file; sed 's/1/one/;t;s/$/ -/' file | head -3
echo 'hello world' | sed -E 's/(\w+) (\w+)/\2 \1/'; echo aXbXc | sed 's/X/-/2'
sed -i.bak '1i first' file; head -2 file; ls file*
sed -n '/3/,/5/{=;p}' file; sed '$!N;s/\n/ /' file | head -3
sed 'y/0123/abcd/' file | tail -2; printf 'a\nb\n' | sed 'G;h' ; sed -n 'l' <<<$'tab\there'
sed --expression='/first/{s//FIRST/;w written' -e '}' file >/dev/null; cat written
printf 'one\ntwo\nthree\n' | sed -e ':a' -e '$!{N;ba' -e '}' -e 's/\n/,/g'
echo abc | sed 's/b/[&]/;s/\(.\)$/\U\1/'; sed = file | sed 'N;s/\n/\t/' | tail -1; sed -s -n '$=' file file.bak
tac file | sed '0~3d' | paste -sd' '; echo path/to/file | sed 's|.*/||'; sed 5q file | wc -l; sed --debug -n p </dev/null | head -1
