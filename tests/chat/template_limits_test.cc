// No template or input makes rendering crash, hang or use unbounded memory.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "tests/chat/rendering.h"
#include "tests/expect_error.h"

namespace paceline {
namespace {

std::string repeated(std::string_view text, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += text;
  return all;
}

void expect_exhausted(const std::string& source) {
  const auto begin = std::chrono::steady_clock::now();
  expect_error(ErrorCode::exhausted, {"test:"}, [&] { render(source); });
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(took.count(), 30) << source.substr(0, 100);  // far below a second without a sanitizer
}

TEST(TemplateLimits, NestingOfTheSourceIsLimited) {
  for (const char* open : {"not ", "-", "1 if 1 else "}) {
    expect_exhausted("{{ " + repeated(open, 60'000) + "1 }}");
  }
  expect_exhausted("{{ " + repeated("(", 60'000) + "1" + repeated(")", 60'000) + " }}");
  expect_exhausted("{{ " + repeated("[", 60'000) + repeated("]", 60'000) + " }}");
  expect_exhausted("{{ " + repeated("{1:", 60'000) + "1" + repeated("}", 60'000) + " }}");
  expect_exhausted(repeated("{% if 1 %}", 60'000));
  expect_exhausted(repeated("{% for x in y %}", 10'000));
  expect_exhausted("{{ a" + repeated("[b", 10'000) + repeated("]", 10'000) + " }}");
  expect_exhausted("{{ a" + repeated("(b", 10'000) + repeated(")", 10'000) + " }}");
}

TEST(TemplateLimits, LongChainsAreNotDeep) {
  EXPECT_EQ(render("{{ 0" + repeated(" + 1", 60'000) + " }}"), "60000");
  EXPECT_EQ(render("{{ 'a'" + repeated("|trim", 60'000) + " }}"), "a");
  EXPECT_EQ(render("{{ 'a'" + repeated("[0]", 60'000) + " }}"), "a");
  EXPECT_EQ(render("{{ 1" + repeated(" and 1", 60'000) + " }}"), "1");
  EXPECT_EQ(render("{{ ''" + repeated(" ~ ''", 60'000) + " }}"), "");
}

TEST(TemplateLimits, StepsAreLimited) {
  const std::string loop =
      "{% for a in range(10000) %}{% for b in range(10000) %}{% endfor %}{% endfor %}";
  expect_exhausted(loop);
  expect_exhausted("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}");
  expect_exhausted("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}");
}

TEST(TemplateLimits, SizesAreLimited) {
  expect_exhausted("{{ range(1000000000) }}");
  expect_exhausted("{{ range(10001)|length }}");
  expect_exhausted("{{ ('a' * 1000000000)|length }}");
  expect_exhausted("{{ ([0] * 1000000000)|length }}");
  expect_exhausted("{{ 'a'.center(1000000000) }}");
  expect_exhausted(
      "{% set ns = namespace(s='ab') %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s %}{% "
      "endfor %}");
  expect_exhausted(
      "{% set ns = namespace(l=[1]) %}{% for i in range(100) %}{% set ns.l = ns.l + ns.l %}{% "
      "endfor %}");
  expect_exhausted(
      "{% set ns = namespace(l=[]) %}{% for i in range(1000) %}{% set ns.l = [ns.l] %}{% endfor "
      "%}");
  expect_exhausted("{% for i in range(10000) %}{{ 'abcdefghij' * 100 }}{% endfor %}");
  const std::string shared =
      "{% set ns = namespace(l=[]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% "
      "endfor %}";
  expect_exhausted(shared + "{{ ns.l }}");
  expect_exhausted(shared + "{{ ns.l|tojson }}");
  expect_exhausted(shared + "{% set a = ns.l %}{{ [ns.l, 1] == [a, 2] }}");
}

TEST(TemplateLimits, ANamespaceInItselfDoesNoHarm) {
  EXPECT_EQ(render("{% set ns = namespace() %}{% set ns.me = [ns] %}{{ ns.me[0].me|length }}"),
            "1");
}

TEST(TemplateLimits, AMacroOutlivesTheBlockThatDefinedIt) {
  EXPECT_EQ(render("{% set ns = namespace() %}{% for i in [1, 2] %}{% set v = i * 10 %}{% macro "
                   "m() %}{{ v }}{{ i }}"
                   "{% endmacro %}{% set ns.m = m %}{% endfor %}{{ ns.m() }}"),
            "202");
}

}  // namespace
}  // namespace paceline
