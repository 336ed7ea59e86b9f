# What gforth and pforth do: the same on Linux and on the kernel.
echo ': f 10 0 do i . loop ; f cr : g 1000 0 do i drop loop ; g depth . s" echo sh" system cr variable x 5 x ! x @ . 1 0 / .' > a.fs; gforth a.fs -e bye 2>&1 | sed 's/\$[0-9A-F]*//'; echo $?; echo ': t 5 0 do i . loop ; t cr bye' | pforth 2>&1 | tail -3
