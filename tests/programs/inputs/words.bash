# A shell's own work: words, arrays, patterns and arithmetic.
declare -A count
text="the quick brown fox jumps over the lazy dog and runs away from the other foxes"
for ((round = 0; round < 40; round++)); do
    for word in $text; do
        ((count[$word] += round % 7))
        case $word in
            *o*x*) last=${word%x*} ;;
            t*) last=${word^^} ;;
            *) last=${word/a/b} ;;
        esac
    done
done
a=0 b=1
for ((i = 0; i < 1000; i++)); do
    ((a = (a + b) % 1000003, b = (a * 3 + i) % 999983))
    [[ $a =~ ^9 ]] && ((count[nine]++))
done
echo "${count[the]} ${count[nine]} $last $a $b"
