# Words of a text by their number and length.
{
    for (i = 1; i <= NF; i++) {
        count[tolower($i)]++
        lengths[length($i)]++
    }
}
NR == 12000 { exit }
END {
    for (word in count) if (count[word] > most) most = count[word]
    for (n in lengths) sum += n * lengths[n]
    print NR, most, sum
}
