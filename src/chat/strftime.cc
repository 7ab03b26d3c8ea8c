#include "chat/strftime.h"

#include <fmt/format.h>
#include <sys/time.h>

#include <array>
#include <ctime>

#include "base/error.h"

namespace paceline {
namespace {

constexpr std::array<std::string_view, 7> kDays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                   "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 12> kMonths = {
    "January", "February", "March",     "April",   "May",      "June",
    "July",    "August",   "September", "October", "November", "December"};

bool is_leap(int year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

int days_in(int year, int month) {
  constexpr std::array<int, 12> kLengths = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return kLengths[static_cast<size_t>(month - 1)] + (month == 2 && is_leap(year) ? 1 : 0);
}

int day_of_year(const CivilTime& t) {  // from 0
  int days = t.day - 1;
  for (int month = 1; month < t.month; ++month) days += days_in(t.year, month);
  return days;
}

// 0 is Sunday; the day of 0001-01-01 was a Monday.
int day_of_week(const CivilTime& t) {
  const int years = t.year - 1;
  return (years * 365 + years / 4 - years / 100 + years / 400 + day_of_year(t) + 1) % 7;
}

struct IsoWeek {
  int year;
  int week;
};

IsoWeek iso_week(const CivilTime& t) {
  const int weekday = (day_of_week(t) + 6) % 7;  // 0 is Monday
  const int week = (day_of_year(t) - weekday + 10) / 7;
  const auto weeks_of = [](int year) {
    const int first = day_of_week({.year = year});
    return first == 4 || (first == 3 && is_leap(year)) ? 53 : 52;
  };
  if (week < 1) return {t.year - 1, weeks_of(t.year - 1)};
  if (week > weeks_of(t.year)) return {t.year + 1, 1};
  return {t.year, week};
}

int hour12(const CivilTime& t) { return t.hour % 12 == 0 ? 12 : t.hour % 12; }

std::string two(int number) { return fmt::format("{:02}", number); }

std::string directive(const CivilTime& t, char letter) {
  switch (letter) {
    case 'a':
      return std::string(kDays[static_cast<size_t>(day_of_week(t))].substr(0, 3));
    case 'A':
      return std::string(kDays[static_cast<size_t>(day_of_week(t))]);
    case 'b':
    case 'h':
      return std::string(kMonths[static_cast<size_t>(t.month - 1)].substr(0, 3));
    case 'B':
      return std::string(kMonths[static_cast<size_t>(t.month - 1)]);
    case 'c':
      return format_time(t, "%a %b %e %H:%M:%S %Y");
    case 'C':
      return two(t.year / 100);
    case 'd':
      return two(t.day);
    case 'D':
    case 'x':
      return format_time(t, "%m/%d/%y");
    case 'e':
      return fmt::format("{:2}", t.day);
    case 'f':
      return fmt::format("{:06}", t.microsecond);
    case 'F':
      return format_time(t, "%Y-%m-%d");
    case 'g':
      return two(iso_week(t).year % 100);
    case 'G':
      return fmt::format("{}", iso_week(t).year);
    case 'H':
      return two(t.hour);
    case 'I':
      return two(hour12(t));
    case 'j':
      return fmt::format("{:03}", day_of_year(t) + 1);
    case 'k':
      return fmt::format("{:2}", t.hour);
    case 'l':
      return fmt::format("{:2}", hour12(t));
    case 'm':
      return two(t.month);
    case 'M':
      return two(t.minute);
    case 'n':
      return "\n";
    case 'p':
      return t.hour < 12 ? "AM" : "PM";
    case 'P':
      return t.hour < 12 ? "am" : "pm";
    case 'r':
      return format_time(t, "%I:%M:%S %p");
    case 'R':
      return format_time(t, "%H:%M");
    case 'S':
      return two(t.second);
    case 't':
      return "\t";
    case 'T':
    case 'X':
      return format_time(t, "%H:%M:%S");
    case 'u':
      return fmt::format("{}", day_of_week(t) == 0 ? 7 : day_of_week(t));
    case 'U':
      return two((day_of_year(t) + 7 - day_of_week(t)) / 7);
    case 'V':
      return two(iso_week(t).week);
    case 'w':
      return fmt::format("{}", day_of_week(t));
    case 'W':
      return two((day_of_year(t) + 7 - (day_of_week(t) + 6) % 7) / 7);
    case 'y':
      return two(t.year % 100);
    case 'Y':
      return fmt::format("{}", t.year);
    case 'z':
    case 'Z':
      return "";  // no zone
    case '%':
      return "%";
    default:
      return std::string("%") + letter;
  }
}

// Without the padding of a "%-d".
std::string unpadded(std::string text) {
  const size_t first = text.find_first_not_of("0 ");
  if (first == std::string::npos) return text.empty() ? text : text.substr(text.size() - 1);
  return text.substr(first);
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
  if (!has_shape || t.year < 1 || t.month < 1 || t.month > 12 || t.day < 1 ||
      t.day > days_in(t.year, t.month) || t.hour < 0 || t.hour > 23 || t.minute < 0 ||
      t.minute > 59 || t.second < 0 || t.second > 60) {
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
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out.push_back(format[i]);
    } else if (format[i + 1] == '-' && i + 2 < format.size()) {
      out += unpadded(directive(time, format[i + 2]));
      i += 2;
    } else {
      out += directive(time, format[++i]);
    }
  }
  return out;
}

}  // namespace paceline
