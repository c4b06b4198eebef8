# A POSIX script without another process: loops, functions, patterns, arithmetic, files.
fib() {
    if [ "$1" -lt 2 ]; then echo_n=$1; return; fi
    a=0 b=1 i=1
    while [ "$i" -lt "$1" ]; do
        c=$((a + b)) a=$b b=$c i=$((i + 1))
    done
    echo_n=$b
}
n=0
while [ "$n" -lt 60 ]; do
    fib "$n"
    echo "$n $echo_n"
    n=$((n + 5))
done > shell.out
total=0
while read -r index value; do
    total=$((total + index))
    case $value in
        *5) echo "$value ends with 5" ;;
        *[02468]) echo "$value is even" ;;
    esac
done < shell.out
echo "sum $total" >> shell.out
trap 'echo left with $?' EXIT
for word in "a b" c ''; do
    echo "<$word>"
done
set -- one two three
shift
echo "$# $*" >&2
[ -f shell.out ] && [ ! -e missing ] && cd / && exit 7
