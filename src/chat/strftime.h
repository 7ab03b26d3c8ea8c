// The clock of a template, and strftime in Python's C locale.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

// A local time without a zone.
struct CivilTime {
  int year = 1970;
  int month = 1;  // 1 to 12
  int day = 1;    // 1 to 31
  int hour = 0;
  int minute = 0;
  int second = 0;
  int microsecond = 0;
};

// The machine's local time.
CivilTime local_time_now();

// "2026-11-21" or "2026-11-21T10:20:30", also with a blank for the T and with fractions of a
// second; a zone (Z, +01:00) is ignored. Throws Error invalid for anything else.
CivilTime parse_iso_time(std::string_view text);

// datetime.strftime; an unknown directive is copied, as in glibc.
std::string format_time(const CivilTime& time, std::string_view format);

}  // namespace paceline
