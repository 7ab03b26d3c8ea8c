// Formats against texts of their RFCs and near misses.
#include "grammar/json_format.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace paceline {
namespace {

struct FormatCase {
  std::string name;
  std::vector<std::string> valid;
  std::vector<std::string> invalid;
};

const std::vector<FormatCase>& format_cases() {
  static const std::vector<FormatCase> cases{
      {"date",
       {"1963-06-19", "2020-01-31", "2020-02-29", "2000-02-29", "2021-04-30", "0001-01-01",
        "9999-12-31", "0004-02-29"},
       {"2020-01-32", "2021-02-29", "1900-02-29", "2020-02-30", "2020-03-32", "2020-04-31",
        "2020-13-01", "2020-00-01", "2020-1-01", "06/19/1963", "2013-350", "1998-1-20",
        "1963-06-1\xe0\xa7\xaa", "20230328", "2023-W01", "2023-W13-2", "2022W527", "0000-01-01",
        "+1963-06-19"}},
      {"time",
       {"08:30:06Z", "08:30:06z", "23:59:60Z", "23:59:60+00:00", "01:29:60+01:30", "23:29:60+23:30",
        "15:59:60-08:00", "00:29:60-23:30", "23:20:50.52Z", "08:30:06.283185Z", "08:30:06+00:20",
        "08:30:06-08:00", "00:00:00-00:00"},
       {"008:030:006Z",
        "8:3:6Z",
        "8:0030:6Z",
        "22:59:60Z",
        "23:58:60Z",
        "22:59:60+00:00",
        "23:58:60+00:00",
        "23:59:60+01:00",
        "23:59:60+00:30",
        "23:59:60-01:00",
        "23:59:60-00:30",
        "08:30:06-8:000",
        "24:00:00Z",
        "00:60:00Z",
        "00:00:61Z",
        "01:02:03+24:00",
        "01:02:03+00:60",
        "01:02:03Z+00:30",
        "08:30:06",
        "08:30:06#00:20",
        "12:00:00",
        "ab:cd:ef",
        "08:30:06PST",
        "01:01:01,1111",
        "12:00:00.Z",
        "1\xe0\xa7\xa8"
        "2:00:00Z"}},
      {"date-time",
       {"1963-06-19T08:30:06.283185Z", "1963-06-19T08:30:06Z", "1937-01-01T12:00:27.87+00:20",
        "1990-12-31T15:59:50.123-08:00", "1998-12-31T23:59:60Z", "1998-12-31T15:59:60.123-08:00",
        "1963-06-19t08:30:06.283185z", "2016-06-30T23:59:60-00:00", "2017-01-01T00:59:60+01:00"},
       {"1998-12-31T23:59:61Z", "1998-12-31T23:58:60Z", "1998-12-31T22:59:60Z",
        "1990-02-31T15:59:59.123-08:00", "1990-12-31T15:59:59-24:00",
        "1963-06-19T08:30:06.28123+01:00Z", "2013-350T01:01:01", "1963-6-19T08:30:06.283185Z",
        "1963-06-1T08:30:06.283185Z", "1963-06-1\xe0\xa7\xaaT00:00:00Z",
        "1963-06-11T0\xe0\xa7\xaa:00:00Z", "+11963-06-19T08:30:06.283185Z", "1990-12-31T24:00:00Z",
        "1990-12-31T10:00Z", "06/19/1963 08:30:06 PST", "1963-06-19 08:30:06Z"}},
      {"duration",
       {"P4DT12H30M5S", "P4Y", "PT0S", "P0D", "P1M", "PT1M", "PT36H", "P1DT12H", "P2W",
        "P1Y2M3DT4H5M6S", "P1YT1S", "P1MT1M", "P1M2D", "PT1H2M"},
       {"PT1D", "P", "P1YT", "PT", "P2D1Y", "P1D2H", "P2S", "P1Y2W", "P1W2D", "4DT12H30M5S",
        "P\xe0\xa7\xa8Y", "P-1Y", "P1.5D", "PT1H1S", "P1Y1D", "PT0.5S", ""}},
      {"email",
       {"joe.bloggs@example.com", "te~st@example.com", "~test@example.com", "test~@example.com",
        "te.s.t@example.com", "\"joe..bloggs\"@example.com", "\"joe@bloggs\"@example.com",
        "joe.bloggs@[127.0.0.1]", "joe.bloggs@[IPv6:::1]", "joe.bloggs@localhost",
        "\"joe bloggs\"@example.com", "\"a\\\"b\"@x.y",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa@x.y"},
       {"2962", ".test@example.com", "test.@example.com", "te..st@example.com",
        "joe.bloggs@invalid=domain.com", "joe.bloggs@[127.0.0.300]", "@example.com", "a@", "a@b@c",
        "a@-x.y", "a@x-.y", "a@x..y", "user1@oceania.org, user2@oceania.org",
        "\"Winston Smith\" <winston.smith@recdep.minitrue> (Records Department)",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa@x.y", "\xc3\xa9@x.y"}},
      {"hostname",
       {"www.example.com", "xn--4gbwdl.xn--wgbh1c", "a", "example", "hostname", "h0stn4me", "1host",
        "hostnam3", "a-b.c", "3com.com",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.com"},
       {"-a-host-name-that-starts-with--", "not_a_valid_host_name", "-hostname", "hostname-",
        "_hostname", "hostname_", "host_name", "hostname.", ".", ".a", "a..b", "\xef\xbc\x8e",
        "a\xe3\x80\x82"
        "b",
        "", "a b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.com"}},
      {"ipv4",
       {"192.168.0.1", "0.0.0.0", "255.255.255.255", "87.10.0.1"},
       {"127.0.0.0.1", "256.256.256.256", "127.0", "0x7f000001", "2130706433", "087.10.0.1",
        "1\xe0\xa7\xa8"
        "7.0.0.1",
        "192.168.1.0/24", "1.2.3.4.", "1..2.3", " 1.2.3.4", "1.2.3.4 ", "1.2.3.4\x0a"}},
      {"ipv6",
       {"::", "::1", "::abef", "::42:ff:1", "d6::", "1:d6::42", "1::d6:192.168.0.1",
        "1:2::192.168.0.1", "::ffff:192.168.0.1", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:1.2.3.4",
        "ABCD:ef01:2345:6789:ABCD:EF01:2345:6789", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8",
        "1:2:3:4:5:6::8", "fe80::a"},
       {"12345::",
        "::abcef",
        "1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1",
        "::laptop",
        ":2:3:4:5:6:7:8",
        "1:2:3:4:5:6:7:",
        ":2:3:4::8",
        "1:2:3:4:5:::8",
        "1::d6::42",
        "1::2:192.168.256.1",
        "1::2:192.168.ff.1",
        "::ffff:192.168.0",
        "1:2:3:4:1.2.3",
        "1",
        "fe80::a%eth1",
        "fe80::/64",
        "1:\xe0\xa7\xa8:3:4:5:6:7:8",
        "1:2:3:4:5:6:7:8::",
        "1:2:3:4::5:6:7:8:9",
        "127.0.0.1",
        "1:2:3:4:5:6:7",
        ":1",
        "::1:",
        "1:2:3:4:5:6:7:1.2.3.4",
        "  ::1",
        "::1  ",
        ""}},
      {"uuid",
       {"2EB8AA08-AA98-11EA-B4AA-73B441D16380", "2eb8aa08-aa98-11ea-b4aa-73b441d16380",
        "2eb8aa08-AA98-11ea-B4Aa-73B441D16380", "00000000-0000-0000-0000-000000000000",
        "98d80576-482e-427f-8434-7f86890ab222"},
       {"2eb8aa08-aa98-11ea-b4aa-73b441d1638", "2eb8aa08-aa98-11ea-73b441d16380",
        "2eb8aa08-aa98-11ea-b4ga-73b441d16380", "2eb8aa08aa9811eab4aa73b441d16380",
        "2eb8aa08aa98-11ea-b4aa73b441d16380", "2eb8-aa08-aa98-11ea-b4aa73b44-1d16380",
        "2eb8aa08aa9811eab4aa73b441d16380----", "{2eb8aa08-aa98-11ea-b4aa-73b441d16380}"}},
      {"uri",
       {"http://foo.bar/?baz=qux#quux",
        "http://foo.com/blah_(wikipedia)_blah#cite-1",
        "http://foo.bar/?q=Test%20URL-encoded%20stuff",
        "http://xn--nw2a.xn--j6w193g/",
        "http://-.~_!$&'()*+,;=:%40:80%2f::::::@example.com",
        "http://223.255.255.254",
        "ftp://ftp.is.co.za/rfc/rfc1808.txt",
        "http://www.ietf.org/rfc/rfc2396.txt",
        "ldap://[2001:db8::7]/c=GB?objectClass?one",
        "mailto:John.Doe@example.com",
        "news:comp.infosystems.www.servers.unix",
        "tel:+1-816-555-1212",
        "urn:oasis:names:specification:docbook:dtd:xml:4.1.2",
        "telnet://192.0.2.16:80/",
        "file:///etc/x",
        "http://a:",
        "http:",
        "a:/",
        "http://[v1.a]/",
        "http://example.com:8080/x?y/z?#a/?b"},
       {"//foo.bar/?baz=qux#quux",
        "/abc",
        "\\\\WINDOWS\\fileshare",
        "abc",
        "bar,baz:foo",
        "https://[@example.org/test.txt",
        "https://example.org/foobar\\.txt",
        "https://example.org/foobar<>.txt",
        "https://example.org/foobar{}.txt",
        "https://example.org/foobar^.txt",
        "https://example.org/foobar`.txt",
        "https://example.org/foobar|.txt",
        "1http:x",
        "http://a:b/",
        "http://%zz",
        "http://x/%2",
        "http://[1::2::3]",
        "http://\xc3\xa9.com",
        "a#b#c",
        "a:b#c#d",
        "http:// shouldfail.com",
        ":// should fail",
        "https://example.org/foo bar",
        ""}},
      {"uri-reference",
       {"http://foo.bar/?baz=qux#quux", "//foo.bar/?baz=qux#quux", "/abc", "abc", "#fragment", "?q",
        "a/b:c", "./a:b", "..", "../x", ""},
       {"\\\\WINDOWS\\fileshare", "#frag\\ment", "\xc3\xa9", "a|b", ":x", "a b"}},
      {"iri",
       {"http://\xc6\x92\xc3\xb8\xc3\xb8.\xc3\x9f\xc3\xa5r/"
        "?\xe2\x88\x82\xc3\xa9\xc5\x93=\xcf\x80\xc3\xaex#\xcf\x80\xc3\xae\xc3\xbcx",
        "http://\xc6\x92\xc3\xb8\xc3\xb8.com/blah_(w\xc3\xaek\xc3\xafp\xc3\xa9"
        "di\xc3\xa5)_blah#\xc3\x9fit\xc3\xa9-1",
        "http://-.~_!$&'()*+,;=:%40:80%2f::::::@example.com",
        "http://[2001:0db8:85a3:0000:0000:8a2e:0370:7334]", "http://x/?\xee\x80\x80"},
       {"http://2001:0db8:85a3:0000:0000:8a2e:0370:7334", "/abc",
        "\\\\WINDOWS\\fil\xc3\xab\xc3\x9f\xc3\xa5r\xc3\xa9", "\xc3\xa2\xcf\x80\xcf\x80",
        "http://x/\xee\x80\x80"}},
      {"iri-reference",
       {"//\xc6\x92\xc3\xb8\xc3\xb8.\xc3\x9f\xc3\xa5r/"
        "?\xe2\x88\x82\xc3\xa9\xc5\x93=\xcf\x80\xc3\xaex#\xcf\x80\xc3\xae\xc3\xbcx",
        "/\xc3\xa2\xcf\x80\xcf\x80", "\xc3\xa2\xcf\x80\xcf\x80", "#\xc6\x92r\xc3\xa4gm\xc3\xaant"},
       {"\\\\WINDOWS\\fil\xc3\xab\xc3\x9f\xc3\xa5r\xc3\xa9", "#\xc6\x92r\xc3\xa4g\\m\xc3\xaant"}},
      {"json-pointer",
       {"/foo/bar~0/baz~1/%a", "/foo//", "/", "/foo/0", "/a~1b", "/c%d", "/e^f", "/g|h", "/k\"l",
        "/~0", "/~1", "/~0~1", "/~1.1", "/foo/-", "/\xc3\xa9", "", "/ ", "/i\\j"},
       {"/foo/bar~", "/~2", "/~-1", "/~~", "#", "#/", "#a", "/~0~", "/~0/~", "a", "0", "a/a"}},
      {"relative-json-pointer",
       {"1", "0/foo/bar", "2/0/baz/1/zip", "0#", "120/foo/bar"},
       {"/foo/bar", "-1/foo/bar", "+1/foo/bar", "0##", "01/a", "01#", "~1/foo", ""}},
  };
  return cases;
}

// A text as it stands between quotes of JSON: characters beyond ASCII are themselves.
std::string json_escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    if (c == '\n') {
      escaped += "\\n";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

TEST(JsonFormat, AcceptsTheValidAndOnlyThem) {
  for (const FormatCase& one : format_cases()) {
    for (const TextForm form : {TextForm::utf8, TextForm::json}) {
      RegexSet regexes;
      const auto regex = json_format(regexes, one.name, form);
      ASSERT_TRUE(regex.has_value()) << one.name;
      const auto matches = [&](const std::string& text) {
        return regexes.matches(*regex, form == TextForm::json ? json_escaped(text) : text);
      };
      for (const std::string& text : one.valid) EXPECT_TRUE(matches(text)) << one.name << text;
      for (const std::string& text : one.invalid) EXPECT_FALSE(matches(text)) << one.name << text;
    }
  }
}

TEST(JsonFormat, HoldsTheLimitsOfNames) {
  RegexSet regexes;
  const RegexId host = *json_format(regexes, "hostname", TextForm::utf8);
  const std::string labels =
      std::string(62, 'a') + "." + std::string(62, 'b') + "." + std::string(62, 'c') + ".";
  EXPECT_TRUE(regexes.matches(host, labels + std::string(62, 'd') + ".e"));
  EXPECT_FALSE(regexes.matches(host, labels + std::string(62, 'd') + ".ef"));
  EXPECT_FALSE(regexes.matches(host, std::string(64, 'a')));
  const RegexId email = *json_format(regexes, "email", TextForm::utf8);
  EXPECT_TRUE(regexes.matches(email, std::string(64, 'a') + "@b.c"));
  EXPECT_FALSE(regexes.matches(email, std::string(65, 'a') + "@b.c"));
}

TEST(JsonFormat, EveryDayOfFourCenturies) {
  RegexSet regexes;
  const RegexId date = *json_format(regexes, "date", TextForm::utf8);
  constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  for (int year = 1801; year <= 2200; ++year) {
    const bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    for (int month = 1; month <= 12; ++month) {
      const int days = kDays[month - 1] + (month == 2 && is_leap ? 1 : 0);
      for (const int day : {1, 27, 28, 29, 30, 31, 32}) {
        const auto two = [](int number) {
          return (number < 10 ? "0" : "") + std::to_string(number);
        };
        const std::string text = std::to_string(year) + "-" + two(month) + "-" + two(day);
        ASSERT_EQ(regexes.matches(date, text), day <= days) << text;
      }
    }
  }
}

TEST(JsonFormat, OthersAreUnknown) {
  RegexSet regexes;
  for (const char* name : {"", "regex", "Date", "int32"}) {
    EXPECT_FALSE(json_format(regexes, name, TextForm::json).has_value()) << name;
  }
}

}  // namespace
}  // namespace paceline
