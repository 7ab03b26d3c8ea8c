// Arguments reads "--name VALUE", "--name=VALUE" and "--flag" into variables, for this folder's
// tools.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::traffic {

// The smallest value that an option takes.
constexpr double kAnyNumber = std::numeric_limits<double>::lowest();
constexpr double kAboveZero = std::numeric_limits<double>::min();

class Arguments {
 public:
  explicit Arguments(std::string about) : about_(std::move(about)) {}

  // The value of `variable` is the default. It must outlive parse().
  void add(std::string name, double& variable, std::string help, double min = kAnyNumber);
  void add(std::string name, int64_t& variable, std::string help, int64_t min = 0);
  void add(std::string name, size_t& variable, std::string help);
  void add(std::string name, uint16_t& variable, std::string help);
  void add(std::string name, std::chrono::milliseconds& seconds, std::string help);
  void add(std::string name, std::string& variable, std::string help);
  void add(std::string name, std::filesystem::path& variable, std::string help);
  void add(std::string name, std::vector<std::string>& variable, std::string help);  // repeatable
  void add(std::string name, bool& variable, std::string help);                      // no value

  // Prints the help or an error and ends the program, if asked for help or malformed.
  void parse(int argc, char** argv) const;

 private:
  struct Option {
    std::string name;
    std::string default_text;
    std::string help;
    bool takes_value = true;
    std::function<bool(std::string_view text)> read;  // false: malformed
  };

  const Option* find(std::string_view name) const;
  std::string help() const;

  std::string about_;
  std::vector<Option> options_;
};

}  // namespace paceline::traffic
