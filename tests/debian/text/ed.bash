# What ed does: the same on Linux and on the kernel.
printf '%s\n' a 'first line' 'second line' 'third' . 1,2p s/second/2nd/ 2p ',n' '1m$' ,p 'g/line/s/$/!/' ,p w\ f =  q | ed -s; cat f; printf '%s\n' '/third/d' wq | ed f; cat f; echo q | ed missing; echo $?
