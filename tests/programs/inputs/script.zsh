# What is in zsh alone: glob qualifiers, floating point, sorted arrays, parameter flags.
typeset -A squares
float sum=0
for i in {1..200}; do
    squares[$i]=$((i * i))
    ((sum += 1.0 / i))
done
print -f '%.6f %d\n' $sum ${#squares}
words=(pear apple fig 'two words')
print -l -- ${(o)words} ${(U)words[2]} ${(j:,:)words} ${(q)words[4]}
print -r -- ${(k)squares[(r)40000]} ${words:#*a*}
print -l -- *.zsh(.N:r) > zsh.out
always_runs=0
{ (( 1 / 0 )) } always { always_runs=1 }
print "not reached $always_runs"
