#include "grammar/json_format.h"

#include <fmt/format.h>

#include <array>
#include <string>

namespace paceline {

namespace {

// RFC 3339, section 5.6, but for the year 0000, which dates of most languages can't hold.
constexpr std::string_view kYear = R"((?:\d{3}[1-9]|\d\d[1-9]0|\d[1-9]00|[1-9]000))";
constexpr std::string_view kLeapYear =
    R"((?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00))";
constexpr std::string_view kMonthAndDay =
    R"((?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|)"
    R"(02-(?:0[1-9]|1\d|2[0-8])))";
constexpr std::string_view kHourAndMinute = R"((?:[01]\d|2[0-3]):[0-5]\d)";
constexpr std::string_view kSecondFraction = R"((?:\.\d+)?)";

std::string date_pattern() {
  return fmt::format("(?:{}-{}|{}-02-29)", kYear, kMonthAndDay, kLeapYear);
}

std::string plain_time_pattern() {
  return fmt::format(R"({0}:[0-5]\d{1}(?:[Zz]|[+-]{0}))", kHourAndMinute, kSecondFraction);
}

// 23:59:60 UTC as local time, whose offsets from `first` to `last` minutes are whole quarters of an
// hour.
std::string leap_second_pattern(int first, int last) {
  constexpr int kMinutesADay = 24 * 60;
  std::string options;
  for (int offset = first; offset <= last; offset += 15) {
    const int local = (2 * kMinutesADay - 1 + offset) % kMinutesADay;
    const int distance = offset < 0 ? -offset : offset;
    std::string zone =
        fmt::format("{}{:02}:{:02}", offset < 0 ? '-' : '\\', distance / 60, distance % 60);
    if (offset == 0) zone = R"((?:[Zz]|[+-]00:00))";
    if (offset > 0) zone.insert(1, "+");
    options += fmt::format("{}{:02}:{:02}:60{}{}", options.empty() ? "" : "|", local / 60,
                           local % 60, kSecondFraction, zone);
  }
  return fmt::format("(?:{})", options);
}

constexpr int kLastOffset = 23 * 60 + 45;

std::string time_pattern() {
  return plain_time_pattern() + "|" + leap_second_pattern(-kLastOffset, kLastOffset);
}

// Leap seconds have been at the end of June and December, UTC.
std::string date_time_pattern() {
  return fmt::format(R"({}[Tt]{}|{}-(?:(?:06-30|12-31)[Tt]{}|(?:07-01|01-01)[Tt]{}))",
                     date_pattern(), plain_time_pattern(), kYear,
                     leap_second_pattern(-kLastOffset, 0), leap_second_pattern(15, kLastOffset));
}

// RFC 3339, appendix A.
std::string duration_pattern() {
  const std::string time = R"((?:T(?:\d+H(?:\d+M(?:\d+S)?)?|\d+M(?:\d+S)?|\d+S)))";
  return fmt::format(R"(P(?:(?:\d+D|\d+M(?:\d+D)?|\d+Y(?:\d+M(?:\d+D)?)?){0}?|{0}|\d+W))", time);
}

std::string ipv4_pattern() {
  constexpr std::string_view kByte = R"((?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d))";
  return fmt::format(R"({0}(?:\.{0}){{3}})", kByte);
}

// RFC 4291, section 2.2, as RFC 3986 writes it out.
std::string ipv6_pattern() {
  constexpr std::string_view kGroup = "[0-9A-Fa-f]{1,4}";
  const std::string low = fmt::format("(?:{0}:{0}|{1})", kGroup, ipv4_pattern());
  std::string options = fmt::format("(?:{}:){{6}}{}", kGroup, low);
  for (int behind = 5; behind >= 0; --behind) {
    const int before = 5 - behind;
    const std::string begin =
        before == 0 ? "" : fmt::format("(?:(?:{0}:){{0,{1}}}{0})?", kGroup, before - 1);
    options += fmt::format("|{}::(?:{}:){{{}}}{}", begin, kGroup, behind, low);
  }
  options += fmt::format("|(?:(?:{0}:){{0,5}}{0})?::{0}|(?:(?:{0}:){{0,6}}{0})?::", kGroup);
  return fmt::format("(?:{})", options);
}

std::string uuid_pattern() { return "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"; }

constexpr std::string_view kLabel = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";

std::string host_pattern() { return fmt::format(R"({0}(?:\.{0})*)", kLabel); }

// RFC 3986, and RFC 3987 with its characters beyond ASCII.
class UriPattern {
 public:
  explicit UriPattern(bool is_international)
      : more_(is_international ? kInternational : std::string_view()),
        private_(is_international ? kPrivate : std::string_view()) {}

  std::string uri() const {
    return fmt::format("[A-Za-z][A-Za-z0-9+.-]*:(?:{}|{}|{}(?:/{})*)?{}", with_authority(),
                       absolute_path(), characters(":@", "+"), characters(":@", "*"), tail());
  }
  std::string reference() const {
    return fmt::format("{}|(?:{}|{}|{}(?:/{})*)?{}", uri(), with_authority(), absolute_path(),
                       characters("@", "+"), characters(":@", "*"), tail());
  }

 private:
  static constexpr std::string_view kInternational =
      R"(\u{A0}-\u{D7FF}\u{F900}-\u{FDCF}\u{FDF0}-\u{FFEF}\u{10000}-\u{1FFFD}\u{20000}-\u{2FFFD})"
      R"(\u{30000}-\u{3FFFD}\u{40000}-\u{4FFFD}\u{50000}-\u{5FFFD}\u{60000}-\u{6FFFD})"
      R"(\u{70000}-\u{7FFFD}\u{80000}-\u{8FFFD}\u{90000}-\u{9FFFD}\u{A0000}-\u{AFFFD})"
      R"(\u{B0000}-\u{BFFFD}\u{C0000}-\u{CFFFD}\u{D0000}-\u{DFFFD}\u{E1000}-\u{EFFFD})";
  static constexpr std::string_view kPrivate =
      R"(\u{E000}-\u{F8FF}\u{F0000}-\u{FFFFD}\u{100000}-\u{10FFFD})";

  // Unreserved and percent-encoded characters, sub-delimiters and `others`, repeated.
  std::string characters(std::string_view others, std::string_view quantifier) const {
    return fmt::format(R"((?:[A-Za-z0-9._~!$&'()*+,;={}{}-]|%[0-9A-Fa-f]{{2}}){})", others, more_,
                       quantifier);
  }
  std::string with_authority() const {
    const std::string future = R"([Vv][0-9A-Fa-f]+\.[A-Za-z0-9._~!$&'()*+,;=:-]+)";
    return fmt::format(R"(//(?:{}@)?(?:\[(?:{}|{})\]|{})(?::\d*)?(?:/{})*)", characters(":", "*"),
                       ipv6_pattern(), future, characters("", "*"), characters(":@", "*"));
  }
  std::string absolute_path() const {
    return fmt::format("/(?:{}(?:/{})*)?", characters(":@", "+"), characters(":@", "*"));
  }
  // Query and fragment.
  std::string tail() const {
    return fmt::format(R"((?:\?{})?(?:#{})?)", characters(fmt::format(":@/?{}", private_), "*"),
                       characters(":@/?", "*"));
  }

  std::string_view more_;
  std::string_view private_;
};

// RFC 6901, and draft-handrews-relative-json-pointer-01.
constexpr std::string_view kPointer = R"((?:/(?:[^/~]|~[01])*)*)";

std::string relative_pointer_pattern() {
  return fmt::format(R"((?:0|[1-9]\d*)(?:#|{}))", kPointer);
}

// The texts of `pattern`, which are printable ASCII, with at most `max_length` characters.
RegexId short_ascii(RegexSet& regexes, std::string_view pattern, uint32_t max_length,
                    TextForm form) {
  const RegexId character = one_of_characters(regexes, {{' ', '~'}}, form);
  return regexes.intersection(parse_pattern(regexes, pattern, form, PatternMatch::whole),
                              regexes.repeat(character, 0, max_length));
}

// RFC 1123, section 2.1, and the limits of RFC 1034: 253 characters, 63 of a label.
RegexId hostname_format(RegexSet& regexes, TextForm form) {
  return short_ascii(regexes, host_pattern(), 253, form);
}

// Mailbox of RFC 5321, with its limit of 64 characters before the @.
RegexId email_format(RegexSet& regexes, TextForm form) {
  constexpr std::string_view kLocal =
      R"([A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*|)"
      R"("(?:[ !#-\[\]-~]|\\[ -~])*")";
  const std::string address = fmt::format(R"(\[(?:{}|IPv6:{})\])", ipv4_pattern(), ipv6_pattern());
  return regexes.concat(
      std::array{short_ascii(regexes, kLocal, 64, form), regexes.byte('@'),
                 regexes.alternation(hostname_format(regexes, form),
                                     parse_pattern(regexes, address, form, PatternMatch::whole))});
}

std::optional<std::string> format_pattern(std::string_view name) {
  if (name == "date-time") return date_time_pattern();
  if (name == "date") return date_pattern();
  if (name == "time") return time_pattern();
  if (name == "duration") return duration_pattern();
  if (name == "ipv4") return ipv4_pattern();
  if (name == "ipv6") return ipv6_pattern();
  if (name == "uuid") return uuid_pattern();
  if (name == "uri") return UriPattern(false).uri();
  if (name == "uri-reference") return UriPattern(false).reference();
  if (name == "iri") return UriPattern(true).uri();
  if (name == "iri-reference") return UriPattern(true).reference();
  if (name == "json-pointer") return std::string(kPointer);
  if (name == "relative-json-pointer") return relative_pointer_pattern();
  return std::nullopt;
}

}  // namespace

std::optional<RegexId> json_format(RegexSet& regexes, std::string_view name, TextForm form) {
  if (name == "hostname") return hostname_format(regexes, form);
  if (name == "email") return email_format(regexes, form);
  const std::optional<std::string> pattern = format_pattern(name);
  if (!pattern) return std::nullopt;
  return parse_pattern(regexes, *pattern, form, PatternMatch::whole);
}

}  // namespace paceline
