proc fib n { if {$n < 2} { return $n }; expr {[fib [expr {$n-1}]] + [fib [expr {$n-2}]]} }
puts [fib 15]; set f [open out.tcl w]; puts $f [lsort -integer {5 3 9 1}]; close $f
puts [regsub -all {[aeiou]} "regular expressions" _]; puts [clock format 86400 -gmt 1 -format %Y-%m-%d]
exit 3
