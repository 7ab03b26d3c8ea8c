#include "traffic/arguments.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <span>

namespace paceline::traffic {
namespace {

template <class T>
bool read_number(std::string_view text, T min, T& number) {
  T value{};
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || !(value >= min)) {
    return false;
  }
  number = value;
  return true;
}

template <class T>
auto number_reader(T& variable, T min) {
  return [&variable, min](std::string_view text) { return read_number(text, min, variable); };
}

[[noreturn]] void refuse(const std::string& problem) {
  fmt::print(stderr, "{}; --help lists the options\n", problem);
  std::exit(2);
}

}  // namespace

void Arguments::add(std::string name, double& variable, std::string help, double min) {
  options_.push_back({.name = std::move(name),
                      .default_text = fmt::format("{}", variable),
                      .help = std::move(help),
                      .read = number_reader(variable, min)});
}

void Arguments::add(std::string name, int64_t& variable, std::string help, int64_t min) {
  options_.push_back({.name = std::move(name),
                      .default_text = fmt::format("{}", variable),
                      .help = std::move(help),
                      .read = number_reader(variable, min)});
}

void Arguments::add(std::string name, size_t& variable, std::string help) {
  options_.push_back({.name = std::move(name),
                      .default_text = fmt::format("{}", variable),
                      .help = std::move(help),
                      .read = number_reader(variable, size_t{0})});
}

void Arguments::add(std::string name, uint16_t& variable, std::string help) {
  options_.push_back({.name = std::move(name),
                      .default_text = fmt::format("{}", variable),
                      .help = std::move(help),
                      .read = number_reader(variable, uint16_t{0})});
}

void Arguments::add(std::string name, std::chrono::milliseconds& seconds, std::string help) {
  const auto read = [&seconds](std::string_view text) {
    double number = 0;
    if (!read_number(text, 0.0, number)) return false;
    seconds = std::chrono::milliseconds(static_cast<int64_t>(1e3 * number));
    return true;
  };
  options_.push_back({.name = std::move(name),
                      .default_text = fmt::format("{}", 1e-3 * double(seconds.count())),
                      .help = std::move(help),
                      .read = read});
}

void Arguments::add(std::string name, std::string& variable, std::string help) {
  options_.push_back({.name = std::move(name),
                      .default_text = variable,
                      .help = std::move(help),
                      .read = [&variable](std::string_view text) {
                        variable = text;
                        return true;
                      }});
}

void Arguments::add(std::string name, std::filesystem::path& variable, std::string help) {
  options_.push_back({.name = std::move(name),
                      .default_text = variable.string(),
                      .help = std::move(help),
                      .read = [&variable](std::string_view text) {
                        variable = text;
                        return true;
                      }});
}

void Arguments::add(std::string name, std::vector<std::string>& variable, std::string help) {
  options_.push_back({.name = std::move(name),
                      .default_text = {},
                      .help = std::move(help),
                      .read = [&variable](std::string_view text) {
                        variable.emplace_back(text);
                        return true;
                      }});
}

void Arguments::add(std::string name, bool& variable, std::string help) {
  options_.push_back({.name = std::move(name),
                      .default_text = {},
                      .help = std::move(help),
                      .takes_value = false,
                      .read = [&variable](std::string_view) { return variable = true; }});
}

const Arguments::Option* Arguments::find(std::string_view name) const {
  for (const Option& option : options_) {
    if (option.name == name) return &option;
  }
  return nullptr;
}

std::string Arguments::help() const {
  std::string text = about_ + "\n\n";
  for (const Option& option : options_) {
    text += fmt::format("  {:<26}{}", option.name, option.help);
    text += option.default_text.empty() ? "\n" : fmt::format(" [{}]\n", option.default_text);
  }
  return text;
}

void Arguments::parse(int argc, char** argv) const {
  const std::span<char*> words(argv, static_cast<size_t>(argc));
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--help" || word == "-h") {
      std::fputs(help().c_str(), stdout);
      std::exit(0);
    }
    const size_t equals = word.find('=');
    const Option* option = find(word.substr(0, equals));
    if (option == nullptr) refuse(fmt::format("unknown argument {}", word));
    std::string_view value;
    if (option->takes_value && equals != std::string_view::npos) {
      value = word.substr(equals + 1);
    } else if (option->takes_value) {
      if (++i == words.size()) refuse(fmt::format("{} needs a value", word));
      value = words[i];
    }
    if (!option->read(value)) refuse(fmt::format("{}: found {}", option->name, value));
  }
}

}  // namespace paceline::traffic
