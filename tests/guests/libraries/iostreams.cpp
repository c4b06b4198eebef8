// Streams, exceptions through frames and threads, folders and regular expressions of C++.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <future>
#include <iostream>
#include <map>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

struct Guard {
    ~Guard() { std::cout << "unwound\n"; }
};

static int deep(int calls)
{
    Guard guard;
    if (calls == 0)
        throw std::runtime_error("deep");
    return deep(calls - 1) + 1;
}

static void folders()
{
    namespace fs = std::filesystem;
    fs::create_directories("made/a/b");
    std::ofstream("made/a/b/file.txt") << "hello " << 3.5 << std::endl;
    std::vector<std::string> paths;
    for (auto &entry : fs::recursive_directory_iterator("made"))
        paths.push_back(entry.path().string());
    std::sort(paths.begin(), paths.end());
    for (auto &path : paths)
        std::cout << path << '\n';
    std::cout << fs::file_size("made/a/b/file.txt") << ' ' << fs::remove_all("made") << '\n';
}

int main()
{
    std::map<std::string, int> words;
    std::istringstream text("a b c a b a");
    for (std::string word; text >> word;)
        words[word]++;
    for (auto &[word, count] : words)
        std::cout << word << ' ' << count << '\n';
    try {
        deep(3);
    } catch (const std::exception &error) {
        std::cout << "caught " << error.what() << '\n';
    }
    std::vector<std::future<int>> results;
    for (int i = 0; i < 4; i++)
        results.push_back(std::async(std::launch::async, [i] {
            if (i == 2)
                throw std::logic_error("two");
            return i * i;
        }));
    for (auto &result : results)
        try {
            std::cout << result.get() << '\n';
        } catch (std::logic_error &error) {
            std::cout << error.what() << '\n';
        }
    folders();
    std::smatch parts;
    std::string address = "me@here";
    std::cout << std::regex_match(address, parts, std::regex("(\\w+)@(\\w+)")) << parts[2] << '\n';
    return 3;
}
