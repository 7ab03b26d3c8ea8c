#include "tokenizer/json_field.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/utf8.h"

namespace paceline {
namespace {

constexpr size_t kQuotedBytes = 60;

}  // namespace

const std::string& JsonField::string() const {
  if (!value_->is_string()) mismatch("a string");
  return value_->as_string(path_);
}

bool JsonField::boolean() const {
  if (!value_->is_bool()) mismatch("a boolean");
  return value_->as_bool(path_);
}

int64_t JsonField::integer() const {
  constexpr double kLimit = 9.2e18;  // whole numbers beyond int64_t are kept as uint64_t
  if (!value_->is_integer() || value_->as_double(path_) > kLimit) mismatch("an integer below 2^63");
  return value_->as_int(path_);
}

size_t JsonField::num_items() const {
  if (!value_->is_array()) mismatch("an array");
  return value_->as_array(path_).size();
}

JsonField JsonField::item(size_t index) const {
  return below(value_->as_array(path_)[index], fmt::format("[{}]", index));
}

JsonField JsonField::member(std::string_view key) const {
  if (!value_->is_object()) mismatch("an object");
  const Json* value = value_->find(key);
  if (value == nullptr) corrupt(fmt::format("{} is missing", key));
  return below(*value, key);
}

std::optional<JsonField> JsonField::find(std::string_view key) const {
  if (!value_->is_object()) mismatch("an object");
  const Json* value = value_->find_value(key);
  if (value == nullptr) return std::nullopt;
  return below(*value, key);
}

bool JsonField::boolean_or(std::string_view key, bool otherwise) const {
  const auto field = find(key);
  return field ? field->boolean() : otherwise;
}

std::vector<std::pair<std::string, JsonField>> JsonField::members() const {
  if (!value_->is_object()) mismatch("an object");
  std::vector<std::pair<std::string, JsonField>> result;
  for (const auto& [key, value] : value_->as_object(path_)) {
    result.emplace_back(key, below(value, key));
  }
  return result;
}

std::string JsonField::name() const {
  return path_.empty() ? file_ : fmt::format("{}: {}", file_, path_);
}

void JsonField::corrupt(std::string_view what) const {
  throw Error(ErrorCode::corrupt, fmt::format("{}: {}", name(), what));
}

void JsonField::unsupported(std::string_view what) const {
  throw Error(ErrorCode::unsupported, fmt::format("{}: {} isn't supported", file_, what));
}

void JsonField::mismatch(std::string_view expected) const {
  corrupt(fmt::format("expected {}, found {}", expected, value_->kind()));
}

JsonField JsonField::below(const Json& value, std::string_view step) const {
  const bool dot = !path_.empty() && !step.starts_with('[');
  return {value, file_, fmt::format("{}{}{}", path_, dot ? "." : "", step)};
}

std::string in_quotes(std::string_view text) {
  if (text.size() <= kQuotedBytes) return fmt::format("\"{}\"", text);
  std::string_view head = text.substr(0, kQuotedBytes);
  head.remove_suffix(incomplete_utf8_suffix(head));
  return fmt::format("\"{}...\"", head);
}

}  // namespace paceline
