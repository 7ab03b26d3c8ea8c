// BenchOptions reads the options of a benchmark, --NAME=VALUE or --NAME, and its model's path.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "paceline/options.h"

namespace paceline::bench {

// Ends the program with a problem of its arguments.
[[noreturn]] inline void explain(std::string_view program, std::string_view problem) {
  fmt::print(stderr, "{}: {}\n", program, problem);
  std::exit(2);
}

class BenchOptions {
 public:
  explicit BenchOptions(std::string program) : program_(std::move(program)) {}

  BenchOptions& text(std::string_view name, std::function<void(std::string_view)> read) {
    readers_.push_back({fmt::format("--{}=", name), std::move(read)});
    return *this;
  }
  BenchOptions& text(std::string_view name, std::string& to) {
    return text(name, [&to](std::string_view value) { to = value; });
  }
  BenchOptions& flag(std::string_view name, bool& to, bool value = true) {
    readers_.push_back({fmt::format("--{}", name), [&to, value](std::string_view) { to = value; }});
    return *this;
  }
  BenchOptions& count(std::string_view name, int64_t& to) {
    return text(name, [this, &to](std::string_view value) { to = count_of(value); });
  }
  // Separated by commas.
  BenchOptions& words(std::string_view name, std::vector<std::string>& to) {
    return text(name, [&to](std::string_view value) { to = split(value); });
  }
  BenchOptions& counts(std::string_view name, std::vector<int64_t>& to) {
    return text(name, [this, &to](std::string_view value) {
      to.clear();
      for (const std::string& word : split(value)) to.push_back(count_of(word));
    });
  }
  // A path without a name, --dummy, --quantize=FORMAT and --threads=N.
  BenchOptions& model(LoadOptions& load) {
    path_ = &load.model;
    text("quantize", [&load](std::string_view value) { load.quantize = value; });
    text("threads", [this, &load](std::string_view value) {
      load.num_threads = static_cast<int>(count_of(value));
    });
    readers_.push_back(
        {"--dummy", [&load](std::string_view) { load.load_format = LoadFormat::dummy; }});
    return *this;
  }

  void read(int argc, char** argv) const {
    for (int i = 1; i < argc; ++i) read_argument(argv[i]);
    if (path_ != nullptr && path_->empty()) explain(program_, "expected a MODEL");
  }

 private:
  struct Reader {
    std::string prefix;  // ends in "=" where a value follows
    std::function<void(std::string_view)> read;
  };

  static std::vector<std::string> split(std::string_view text) {
    std::vector<std::string> words;
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find(',', begin), text.size());
      words.emplace_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    return words;
  }

  int64_t count_of(std::string_view text) const {
    const int64_t count = std::atoll(std::string(text).c_str());
    if (count < 1) explain(program_, fmt::format("expected a count from 1 on, got \"{}\"", text));
    return count;
  }

  void read_argument(std::string_view argument) const {
    for (const auto& [prefix, read] : readers_) {
      const bool has_value = prefix.ends_with('=');
      if (has_value ? argument.starts_with(prefix) : argument == prefix) {
        return read(argument.substr(prefix.size()));
      }
    }
    if (path_ == nullptr || argument.starts_with("--") || !path_->empty()) {
      explain(program_, fmt::format("no option {}", argument));
    }
    *path_ = argument;
  }

  std::string program_;
  std::vector<Reader> readers_;
  std::string* path_ = nullptr;
};

}  // namespace paceline::bench
