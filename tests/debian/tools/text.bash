# Text: mawk, groff, aspell, datamash, miller, figlet, units, busybox's applets.
seq 10 | mawk '{ s += $1; a[$1 % 3] = a[$1 % 3] " " $1 } END { print s, length(a); for (i = 0; i < 3; i++) print i a[i]; printf "%5.2f|%-5s|%x\n", s / 3, "ab", 255 }'
mawk 'BEGIN { while (("echo a b; echo c d" | getline line) > 0) { n = split(line, w); print n, toupper(w[2]) }; print substr("hello", 2, 3), index("abc", "c"), match("foobar", /o+/), RLENGTH }'
printf '.TH X 1\n.SH NAME\nx \\- does \\fBthings\\fP\n.PP\nText that is filled and adjusted to the width of a line of the page, which is long enough.\n' | groff -man -Tascii -P-cbou | sed '/^$/d' | head
printf '.TS\nl r.\na\t1\nbb\t22\n.TE\n' | groff -t -Tascii | sed '/^$/d'
printf '1 2\n3 4\n5 9\n' | datamash -W sum 1 mean 2 median 2 max 1
printf 'a,b\n1,x\n2,y\n3,x\n' >t.csv
mlr --icsv --ojson filter '$a > 1' then put '$c = $a . $b' t.csv
mlr --icsv --opprint stats1 -a sum,count -f a -g b then sort -f b t.csv
figlet-figlet -w 60 Hi
units -t "3 feet" cm; units -t "tempF(100)" tempC
echo 'a line' | busybox awk '{ print $2 }' | busybox md5sum
busybox seq 3 | busybox tac | busybox xargs echo
busybox vi -c ':%s/a/b/g' -c ':wq' t.csv </dev/null >/dev/null 2>&1; echo $?
aspell dump dicts | head -3; echo "status $?"
