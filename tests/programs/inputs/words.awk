# The most frequent words of a text, by their count.
{
    for (i = 1; i <= NF; i++)
        if (length($i) > 3)
            count[tolower($i)]++
    chars += length($0)
}
END {
    for (word in count)
        if (count[word] > most || count[word] == most && word < best) {
            most = count[word]
            best = word
        }
    print NR, chars, best, most > "awk.out"
    printf "%.6f %s %d\n", exp(1) * atan2(1, 2), substr("tally", 2, 3), match("counters", /nt+/)
    exit 4
}
