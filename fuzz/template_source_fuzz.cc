// Any bytes are either a chat template that renders UTF-8 within its budget, or an Error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/utf8.h"
#include "chat/template_renderer.h"
#include "paceline/error.h"

namespace {

using namespace paceline;

constexpr std::string_view kVariables = R"({
  "messages": [{"role": "user", "content": "Hi é", "x": 1}, {"role": "assistant", "content": [{"type": "text"}]}],
  "l": [1, 2, "a", null, 2.5], "d": {"a": 1, "b": [1]}, "s": "Hello World", "n": 3, "t": true, "tools": null})";

const NamedJson& variables() {
  static const NamedJson all = [] {
    NamedJson named;
    const Json json = parse_json(kVariables, "variables");
    for (const auto& [name, value] : json.as_object("variables")) named.emplace_back(name, value);
    return named;
  }();
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr TemplateLimits kLimits{
      .steps = 20'000, .output_bytes = 1 << 16, .made_bytes = 1 << 22, .range = 1000};
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  try {
    const std::string text =
        TemplateRenderer(source, "input").render(variables(), CivilTime{.year = 2026}, kLimits);
    if (!is_valid_utf8(text) || text.size() > kLimits.output_bytes) std::abort();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal) std::abort();
  }
  return 0;
}
