#include "chat/template_value.h"

#include <algorithm>

#include "chat/template_compare.h"
#include "chat/template_error.h"
#include "chat/template_object.h"

namespace paceline {
namespace {

constexpr size_t kIndexFrom = 16;  // members

uint32_t deeper_than(uint32_t depth) {
  if (depth >= kMaxValueDepth) {
    throw TemplateError("lists and dicts are nested deeper than 128 levels", ErrorCode::exhausted);
  }
  return depth + 1;
}

TemplateValue make_sequence(TemplateValues items, bool is_tuple) {
  uint32_t depth = 0;
  for (const TemplateValue& item : items) depth = std::max(depth, item.depth());
  auto sequence = std::make_shared<TemplateSequence>();
  sequence->items = std::move(items);
  sequence->is_tuple = is_tuple;
  sequence->depth = deeper_than(depth);
  return std::shared_ptr<const TemplateSequence>(std::move(sequence));
}

}  // namespace

void TemplateMapping::set(TemplateValue key, TemplateValue value) {
  if (!is_hashable(key)) {
    throw TemplateError("unhashable type: '" + std::string(key.type_name()) + "'");
  }
  depth_ = std::max({depth_, deeper_than(value.depth()), deeper_than(key.depth())});
  if (const TemplateValue* known = find(key)) {
    const auto place = std::find_if(members_.begin(), members_.end(),
                                    [&](const Member& member) { return &member.second == known; });
    place->second = std::move(value);
    return;
  }
  members_.emplace_back(std::move(key), std::move(value));
  if (members_.size() < kIndexFrom) return;
  for (; num_indexed_ < members_.size(); ++num_indexed_) {
    const TemplateValue& added = members_[num_indexed_].first;
    if (added.is_string()) index_.emplace(added.text(), num_indexed_);
  }
}

const TemplateValue* TemplateMapping::find(std::string_view key) const {
  if (members_.size() < kIndexFrom) {
    for (const Member& member : members_) {
      if (member.first.is_string() && member.first.text() == key) return &member.second;
    }
    return nullptr;
  }
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : &members_[found->second].second;
}

const TemplateValue* TemplateMapping::find(const TemplateValue& key) const {
  if (key.is_string()) return find(std::string_view(key.text()));
  for (const Member& member : members_) {
    if (!member.first.is_string() && equal(member.first, key)) return &member.second;
  }
  return nullptr;
}

TemplateValue TemplateValue::undefined(std::string why) {
  TemplateValue value;
  value.value_ = Undefined{std::make_shared<const std::string>(std::move(why))};
  return value;
}

TemplateValue TemplateValue::list(TemplateValues items) {
  return make_sequence(std::move(items), false);
}

TemplateValue TemplateValue::tuple(TemplateValues items) {
  return make_sequence(std::move(items), true);
}

TemplateValue TemplateValue::stream(TemplateValues items) {
  auto stream = std::make_shared<TemplateStream>();
  for (const TemplateValue& item : items) deeper_than(item.depth());
  stream->items = std::move(items);
  return stream;
}

TemplateValue TemplateValue::mapping(TemplateMapping members) {
  return std::make_shared<const TemplateMapping>(std::move(members));
}

TemplateValue TemplateValue::safe(std::string text) {
  return std::make_shared<const TemplateText>(
      TemplateText{.bytes = std::move(text), .is_safe = true});
}

int64_t TemplateValue::integer() const {
  return is_bool() ? static_cast<int64_t>(as_bool()) : std::get<int64_t>(value_);
}

double TemplateValue::real() const {
  return is_float() ? std::get<double>(value_) : static_cast<double>(integer());
}

uint32_t TemplateValue::depth() const {
  if (is_sequence()) return sequence().depth;
  if (is_mapping()) return members().depth();
  if (!is_stream()) return 0;
  uint32_t depth = 0;
  for (const TemplateValue& item : stream_part().items) depth = std::max(depth, item.depth());
  return depth + 1;
}

bool TemplateValue::truth() const {
  if (is_undefined() || is_none()) return false;
  if (is_integral()) return integer() != 0;
  if (is_float()) return real() != 0;
  if (is_string()) return !text().empty();
  if (is_sequence()) return !items().empty();
  if (is_mapping()) return !members().members().empty();
  return true;
}

std::string_view TemplateValue::type_name() const {
  if (is_undefined()) return "Undefined";
  if (is_none()) return "NoneType";
  if (is_bool()) return "bool";
  if (is_int()) return "int";
  if (is_float()) return "float";
  if (is_string()) return "str";
  if (is_tuple()) return "tuple";
  if (is_sequence()) return "list";
  if (is_mapping()) return "dict";
  return is_stream() ? "generator" : object().type_name();
}

bool is_hashable(const TemplateValue& value) {
  if (value.is_mapping()) return false;
  if (!value.is_sequence()) return true;
  if (!value.is_tuple()) return false;
  return std::all_of(value.items().begin(), value.items().end(), is_hashable);
}

}  // namespace paceline
