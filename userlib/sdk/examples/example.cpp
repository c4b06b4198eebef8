/* Counts what a thread of this program does, and reads a counter without a system call. On another
 * kernel than Tally it says so, works all the same, and counts nothing. */
#include <cstdint>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <tally.h>
#include <thread>

/* A session that closes itself. */
class Session {
public:
    explicit Session(const char *events)
    {
        char why[256];
        number = tally_open(events, nullptr, why, sizeof why);
        if (number < 0)
            throw std::runtime_error(why);
        int64_t mapped = tally_map(number);
        if (mapped < 0)
            throw std::runtime_error(tally_strerror(mapped));
        bank = reinterpret_cast<const uint64_t *>(mapped);
        tally_start(number);
    }
    ~Session() { tally_close(number); }
    Session(const Session &) = delete;
    Session &operator=(const Session &) = delete;
    uint64_t count(size_t event) const { return tally_counter(bank, event); }

private:
    int64_t number;
    const uint64_t *bank;
};

static size_t words()
{
    std::map<std::string, int> counts;
    for (int i = 0; i < 2000; i++)
        counts["word " + std::to_string(i * i % 1000)]++;
    return counts.size();
}

static size_t words_in_thread()
{
    size_t found = 0;
    std::thread thread([&found] { found = words(); });
    thread.join();
    return found;
}

int main()
{
    try {
        Session session("instructions,branches");
        words_in_thread();
        std::cout << session.count(0) << " instructions, " << session.count(1) << " branches\n";
    } catch (const std::runtime_error &error) {
        std::cout << "not counted: " << error.what() << "\n";
    }
    std::cout << "words: " << words_in_thread() << std::endl;
}
