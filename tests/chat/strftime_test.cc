#include "chat/strftime.h"

#include <gtest/gtest.h>

#include "tests/expect_error.h"

namespace paceline {
namespace {

TEST(Strftime, WritesAsPythonDoes) {
  const CivilTime time = parse_iso_time("2024-02-29T07:05:09.0625+01:00");
  EXPECT_EQ(format_time(time, "%d %b %Y"), "29 Feb 2024");
  EXPECT_EQ(format_time(time, "%A, %B %d, %H:%M:%S.%f %p %I"),
            "Thursday, February 29, 07:05:09.062500 AM 07");
  EXPECT_EQ(format_time(time, "%j %U %W %V %G %u %w %y %C"), "060 08 09 09 2024 4 4 24 20");
  EXPECT_EQ(
      format_time(time, "%-d/%-m %e|%c|%x|%X|%D|%F|%T|%%|%q|%"),
      "29/2 29|Thu Feb 29 07:05:09 2024|02/29/24|07:05:09|02/29/24|2024-02-29|07:05:09|%|%q|%");
  EXPECT_EQ(format_time(parse_iso_time("2021-01-03"), "%V %G %a"), "53 2020 Sun");
  EXPECT_EQ(format_time(parse_iso_time("2026-12-31 23:59:60"), "%V %G %-S"), "53 2026 60");
}

TEST(Strftime, ABadClockIsAnError) {
  for (const char* text : {"", "now", "2026-13-01", "2026-02-29", "2026-01-01T25:00:00",
                           "2026-01-01x10:00:00", "26-1-1"}) {
    expect_error(ErrorCode::invalid, {"now", "ISO 8601"}, [&] { parse_iso_time(text); });
  }
}

}  // namespace
}  // namespace paceline
