#include "chat/template_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "chat/template_error.h"

namespace paceline {
namespace {

// Lists may share items, so that a walk takes far more steps than there are items.
class Comparison {
 public:
  bool equal(const TemplateValue& a, const TemplateValue& b) {
    step();
    if (a.is_number() && b.is_number())
      return compare_numbers(a, b) == 0 && !is_nan(a) && !is_nan(b);
    if (a.is_string() && b.is_string()) return a.text() == b.text();
    if (a.is_none() || b.is_none()) return a.is_none() && b.is_none();
    if (a.is_undefined() || b.is_undefined()) return a.is_undefined() && b.is_undefined();
    if (a.is_sequence() && b.is_sequence()) {
      return a.is_tuple() == b.is_tuple() && a.items().size() == b.items().size() &&
             std::equal(a.items().begin(), a.items().end(), b.items().begin(),
                        [&](const auto& x, const auto& y) { return equal(x, y); });
    }
    if (a.is_mapping() && b.is_mapping()) return equal_members(a.members(), b.members());
    if (a.is_object() && b.is_object()) return &a.object() == &b.object();
    return a.is_stream() && b.is_stream() && &a.stream_part() == &b.stream_part();
  }

  bool less(const TemplateValue& a, const TemplateValue& b) {
    step();
    for (const TemplateValue* side : {&a, &b}) {
      if (side->is_undefined()) throw TemplateError(side->why_undefined());
    }
    if (a.is_number() && b.is_number()) {
      return !is_nan(a) && !is_nan(b) && compare_numbers(a, b) < 0;
    }
    if (a.is_string() && b.is_string()) return a.text() < b.text();
    if (a.is_sequence() && b.is_sequence() && a.is_tuple() == b.is_tuple()) {
      for (size_t i = 0; i < std::min(a.items().size(), b.items().size()); ++i) {
        if (!equal(a.items()[i], b.items()[i])) return less(a.items()[i], b.items()[i]);
      }
      return a.items().size() < b.items().size();
    }
    throw TemplateError("'<' not supported between instances of '{}' and '{}'", a.type_name(),
                        b.type_name());
  }

 private:
  void step() {
    constexpr uint64_t kMost = 1'000'000;
    if (++steps_ > kMost) {
      throw TemplateError("a comparison takes more than 1,000,000 steps", ErrorCode::exhausted);
    }
  }

  static bool is_nan(const TemplateValue& value) {
    return value.is_float() && std::isnan(value.real());
  }

  static int sign(bool is_less, bool is_greater) { return is_less ? -1 : is_greater ? 1 : 0; }

  // Exact even for integers that no double represents.
  static int compare_numbers(const TemplateValue& a, const TemplateValue& b) {
    if (a.is_integral() && b.is_integral())
      return sign(a.integer() < b.integer(), a.integer() > b.integer());
    const auto x =
        static_cast<long double>(a.is_float() ? a.real() : static_cast<long double>(a.integer()));
    const auto y =
        static_cast<long double>(b.is_float() ? b.real() : static_cast<long double>(b.integer()));
    return sign(x<y, x> y);
  }

  bool equal_members(const TemplateMapping& a, const TemplateMapping& b) {
    return a.members().size() == b.members().size() &&
           std::all_of(a.members().begin(), a.members().end(), [&](const auto& member) {
             const TemplateValue* other = b.find(member.first);
             return other != nullptr && equal(member.second, *other);
           });
  }

  uint64_t steps_ = 0;
};

}  // namespace

bool equal(const TemplateValue& a, const TemplateValue& b) { return Comparison().equal(a, b); }

bool less(const TemplateValue& a, const TemplateValue& b) { return Comparison().less(a, b); }

bool contains(const TemplateValue& container, const TemplateValue& item) {
  if (container.is_string()) {
    if (item.is_undefined()) throw TemplateError(item.why_undefined());
    if (!item.is_string()) {
      throw TemplateError("'in <string>' requires string as left operand, not {}",
                          item.type_name());
    }
    return container.text().find(item.text()) != std::string::npos;
  }
  if (container.is_mapping()) {
    if (!is_hashable(item)) throw TemplateError("unhashable type: '{}'", item.type_name());
    return container.members().find(item) != nullptr;
  }
  if (container.is_undefined()) return false;
  const auto has = [&](const TemplateValues& items, size_t first) {
    return std::any_of(items.begin() + static_cast<std::ptrdiff_t>(first), items.end(),
                       [&](const TemplateValue& one) { return equal(one, item); });
  };
  if (container.is_sequence()) return has(container.items(), 0);
  if (container.is_stream()) {
    TemplateStream& stream = container.stream_part();
    while (stream.next < stream.items.size()) {
      if (equal(stream.items[stream.next++], item)) return true;
    }
    return false;
  }
  throw TemplateError("argument of type '{}' is not iterable", container.type_name());
}

bool compare(CompareOperator op, const TemplateValue& a, const TemplateValue& b) {
  switch (op) {
    case CompareOperator::eq:
      return equal(a, b);
    case CompareOperator::ne:
      return !equal(a, b);
    case CompareOperator::lt:
      return less(a, b);
    case CompareOperator::gt:
      return less(b, a);
    case CompareOperator::le:
      return less(a, b) || equal(a, b);
    case CompareOperator::ge:
      return less(b, a) || equal(a, b);
    case CompareOperator::in:
      return contains(b, a);
    default:
      return !contains(b, a);
  }
}

}  // namespace paceline
