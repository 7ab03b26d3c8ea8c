#include "chat/strftime.h"

#include <fmt/format.h>
#include <locale.h>
#include <sys/time.h>

#include <array>
#include <cstdio>
#include <ctime>

#include "base/error.h"

namespace paceline {
namespace {

// With the days of the week and of the year. Dates that don't exist become others.
std::tm calendar_of(const CivilTime& time) {
  std::tm calendar{};
  calendar.tm_year = time.year - 1900;
  calendar.tm_mon = time.month - 1;
  calendar.tm_mday = time.day;
  timegm(&calendar);
  calendar.tm_hour = time.hour;
  calendar.tm_min = time.minute;
  calendar.tm_sec = time.second;
  return calendar;
}

bool exists(const CivilTime& time) {
  const std::tm calendar = calendar_of(time);
  return time.year >= 1 && calendar.tm_mon == time.month - 1 && calendar.tm_mday == time.day &&
         time.hour >= 0 && time.hour <= 23 && time.minute >= 0 && time.minute <= 59 &&
         time.second >= 0 && time.second <= 60;
}

// `directive`: "%d", or "%-d", which isn't padded.
std::string written(const CivilTime& time, const std::string& directive) {
  constexpr std::string_view kKnown = "aAbBcCdDeFgGhHIjklmMnpPrRStTuUVwWxXyY%";
  if (directive == "%f") return fmt::format("{:06}", time.microsecond);
  if (directive.back() == 'z' || directive.back() == 'Z') return "";  // no zone
  if (kKnown.find(directive.back()) == std::string_view::npos) return directive;
  static const locale_t c_locale = newlocale(LC_ALL_MASK, "C", nullptr);
  const std::tm calendar = calendar_of(time);
  std::array<char, 64> text;
  return {text.data(),
          strftime_l(text.data(), text.size(), directive.c_str(), &calendar, c_locale)};
}

}  // namespace

CivilTime local_time_now() {
  timeval now{};
  gettimeofday(&now, nullptr);
  std::tm local{};
  localtime_r(&now.tv_sec, &local);
  return {.year = local.tm_year + 1900,
          .month = local.tm_mon + 1,
          .day = local.tm_mday,
          .hour = local.tm_hour,
          .minute = local.tm_min,
          .second = local.tm_sec,
          .microsecond = static_cast<int>(now.tv_usec)};
}

CivilTime parse_iso_time(std::string_view text) {
  CivilTime t;
  const std::string copy(text);
  char separator = 'T';
  const int fields = std::sscanf(copy.c_str(), "%4d-%2d-%2d%c%2d:%2d:%2d", &t.year, &t.month,
                                 &t.day, &separator, &t.hour, &t.minute, &t.second);
  const bool has_shape =
      fields == 3 ? copy.size() == 10 : fields >= 6 && (separator == 'T' || separator == ' ');
  if (!has_shape || !exists(t)) {
    throw error_of(ErrorCode::invalid,
                   "now: \"{}\", expected an ISO 8601 time such as 2026-11-21T10:20:30", text);
  }
  const size_t point = copy.find('.');
  if (point != std::string::npos) {
    int digits = 0;
    for (size_t i = point + 1; i < copy.size() && digits < 6 && copy[i] >= '0' && copy[i] <= '9';
         ++i, ++digits) {
      t.microsecond = t.microsecond * 10 + (copy[i] - '0');
    }
    for (; digits < 6; ++digits) t.microsecond *= 10;
  }
  return t;
}

std::string format_time(const CivilTime& time, std::string_view format) {
  std::string out;
  while (!format.empty()) {
    const bool is_bare = format[0] == '%' && format.substr(1, 1) == "-" && format.size() > 2;
    const size_t size = format[0] != '%' || format.size() == 1 ? 1 : is_bare ? 3 : 2;
    const std::string piece(format.substr(0, size));
    out += size == 1 ? piece : written(time, piece);
    format.remove_prefix(size);
  }
  return out;
}

}  // namespace paceline
