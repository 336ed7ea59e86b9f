# What screen does: the same on Linux and on the kernel.
export TERM=vt100 HOME=$PWD SCREENDIR=$PWD/sd; mkdir -m 700 sd
screen -dmS s sh -c 'echo in screen > out; tty >> out; sleep 20'; sleep 1; cat out | sed 's/[0-9]*$/N/'; screen -ls | sed 's/[0-9]\{2,\}/N/; s/(.*)//' ; screen -S s -X stuff 'x'; screen -S s -X quit; sleep 0.3; screen -ls | tail -1
tput cols; infocmp vt100 | wc -l; stty -a 2>&1 | head -1; script -qc 'stty -a' /dev/null </dev/null | head -1
