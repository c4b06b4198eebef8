# What is in bash alone: arrays, regular expressions, here-documents, printf, options.
set -euo pipefail
declare -A lengths
while read -r -a words; do
    for word in "${words[@]}"; do
        [[ $word =~ ^([A-Za-z]+)[.,]?$ ]] && lengths[${BASH_REMATCH[1]}]=${#BASH_REMATCH[1]}
    done
done <<'TEXT'
the kernel counts events, and the program reads
counters of events.
TEXT
mapfile -t lines < script.bash
{
    for word in the kernel events reads; do
        printf '%-8s %03d %q\n' "$word" "${lengths[$word]}" "a $word"
    done
    printf '%s\n' "${lines[@]:1:2}" "${#lines[@]}" "${lines[0]^^}"
} > bash.out
hash=0
for ((i = 0; i < 3000; i++)); do
    ((hash = (hash * 31 + i) % 65521)) || true
done
coprocess=$((16#ff + 8#17))
trap 'echo "line $LINENO: status $?"; exit 5' ERR
echo "$hash $coprocess ${PIPESTATUS[0]} ${lines[0]//[aeiou]/_}"
cat=$(< bash.out) && echo "${#cat}" || echo "no process: $?"
false
