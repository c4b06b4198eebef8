/* Counts named regions, in two threads at the same time, and prints each. On another kernel than
 * Tally it says so, works all the same, and counts nothing. */
#include <iostream>
#include <map>
#include <string>
#include <tally_region.h>
#include <thread>

static int count_words(int words)
{
    tally::region region("count words");
    std::map<std::string, int> counts;
    for (int i = 0; i < words; i++)
        counts["word " + std::to_string(i * i % 1000)]++;

    tally::region inner("find the most frequent");
    int most = 0;
    for (const auto &entry : counts)
        most = entry.second > most ? entry.second : most;
    return most;
}

int main()
{
    /* Without this call, regions count a list of seven events. */
    tally_regions_open("instructions,branches", nullptr, 0);
    int first = 0, second = 0;
    std::thread one([&first] { first = count_words(2000); });
    std::thread other([&second] { second = count_words(3000); });
    one.join();
    other.join();
    tally_regions_print(1);
    std::cout << "most: " << first << " and " << second << std::endl;
}
