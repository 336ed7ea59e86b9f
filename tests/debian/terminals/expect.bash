# expect(1): a dialogue with programs that want a terminal.
cat >guess <<'END'
set -f
printf 'name? '; read name
stty -echo; printf 'secret? '; read secret; stty echo; echo
echo "$name has ${#secret} letters"
while printf 'number? ' && read n; do
	[ "$n" -eq 42 ] && { echo right; exit 4; }
	[ "$n" -lt 42 ] && echo more || echo less
done
echo end of file
END
cat >play <<'END'
set timeout 20
spawn bash guess
expect "name? " { send "somebody\r" }
expect "secret? " { send "word\r" }
set low 0; set high 100
expect {
	"more" { set low $n; exp_continue }
	"less" { set high $n; exp_continue }
	"right" { puts "\nfound $n" }
	"number? " { set n [expr {($low + $high) / 2}]; send "$n\r"; exp_continue }
	timeout { puts "too slow" }
}
expect eof
puts "status [lindex [wait] 3]"
spawn cat
send "one\r"; expect "one\r\none\r\n"
send "two\004"; expect "two"
send "\004"; expect eof
puts "\nended [lrange [wait] 2 3]"
spawn sleep 100
sleep 0.3
send "\003"
expect eof
puts "interrupted [lrange [wait] 4 5]"
spawn bash --norc
expect "\\$ "; send "PS1='> '; stty -echo\r"
expect -re "\n> "; send "sleep 50\r"; sleep 0.3; send "\032"; expect "Stopped"
expect "> "; send "jobs\r"; expect -re {\[1\]\+ +Stopped +sleep 50}
expect "> "; send "kill %1; sleep 0.5; echo done\r"; expect -re "\ndone"
send "exit 5\r"; expect eof
puts "\nshell [lindex [wait] 3]"
END
expect play | tr -d '\r' | sed 's/\[1\][-+]/[1]/'
