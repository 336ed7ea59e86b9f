# What tcl does: the same on Linux and on the kernel.
tclsh <<'END'
puts [expr {2 ** 70 + 1}]; puts [lsort -integer {5 3 9 1}]; set d [dict create a 1 b 2]; dict for {k v} $d {puts "$k=$v"}
proc fact n {expr {$n < 2 ? 1 : $n * [fact [expr {$n - 1}]]}}; puts [fact 25]; puts [string toupper abc][string range hello 1 3][regexp -inline {\d+} ab12]
set f [open f w]; puts $f "line 1\nline 2"; close $f; set f [open f]; puts [gets $f]; puts [read $f]; close $f; puts [file size f][file exists x]
puts [exec echo from a program | tr a-z A-Z]; catch {exec false} e; puts $e; puts [clock format 0 -gmt 1]; after 20 {set done 1}; vwait done; puts waited
puts [lmap x {1 2 3} {expr {$x * $x}}]; puts [format %05.2f|%x 3.14159 255]; foreach {a b} {1 2 3 4} {puts $a-$b}; puts [catch {error oops} m]:$m; puts [join [split a,b,c ,] /]
set c [open "|cat" r+]; fconfigure $c -buffering line; puts $c hello; puts [gets $c]; close $c w; close $c; coroutine g apply {{} {yield; yield 1; yield 2}}; puts [g][g]; puts [glob *]
END
