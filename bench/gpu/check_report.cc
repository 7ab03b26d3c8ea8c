#include "bench/gpu/check_report.h"

#include <cstdio>
#include <string>

namespace paceline {
namespace {

void write_line(std::string_view part, std::string_view name, const CheckReport::Details& details) {
  std::string line;
  JsonWriter json(line);
  json.begin_object().member("part", part).member("name", name);
  if (details) details(json);
  json.end_object();
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

void CheckReport::check(std::string_view part, std::string_view name, bool passed,
                        const Details& details) {
  ++num_checks_;
  if (!passed) ++num_failures_;
  write_line(part, name, [&](JsonWriter& json) {
    json.member("passed", passed);
    if (details) details(json);
  });
}

void CheckReport::measured(std::string_view part, std::string_view name, const Details& details) {
  write_line(part, name, details);
}

}  // namespace paceline
