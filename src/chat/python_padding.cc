#include "chat/python_padding.h"

#include "chat/python_string.h"

namespace paceline {
namespace {

int64_t padding_on_the_left(Alignment alignment, int64_t missing, int64_t width) {
  if (alignment == Alignment::left) return 0;
  return alignment == Alignment::right ? missing : missing / 2 + (missing & width & 1);
}

}  // namespace

std::string padded(TemplateRuntime& runtime, std::string_view text, int64_t width,
                   std::string_view fill, Alignment alignment) {
  const int64_t length = length_of(text);
  const int64_t missing = width > length ? width - length : 0;
  if (missing > kMaxPadding) {
    throw TemplateError("a width beyond 100,000 characters", ErrorCode::exhausted);
  }
  runtime.charge(text.size() + static_cast<size_t>(missing) * fill.size());
  const int64_t left = padding_on_the_left(alignment, missing, width);
  std::string out;
  for (int64_t i = 0; i < left; ++i) out += fill;
  out += text;
  for (int64_t i = left; i < missing; ++i) out += fill;
  return out;
}

}  // namespace paceline
