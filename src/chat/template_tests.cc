#include "chat/template_tests.h"

#include <fmt/format.h>

#include <algorithm>

#include "chat/python_string.h"
#include "chat/template_arithmetic.h"
#include "chat/template_compare.h"
#include "chat/template_convert.h"
#include "chat/template_filters.h"

namespace paceline {
namespace {

using Runtime = TemplateRuntime;
using Value = TemplateValue;
using Arguments = ArgumentReader;

bool is_divisible(Runtime& runtime, const Value& value, const Value& by) {
  return equal(arithmetic(runtime, BinaryOperator::modulo, value, by), Value(int64_t{0}));
}

bool is_same(const Value& a, const Value& b) {
  if (a.is_sequence() && b.is_sequence()) return &a.sequence() == &b.sequence();
  if (a.is_mapping() && b.is_mapping()) return &a.members() == &b.members();
  return a.type_name() == b.type_name() && equal(a, b);
}

bool is_iterable(const Value& value) {
  return value.is_string() || value.is_sequence() || value.is_mapping() || value.is_stream() ||
         value.is_undefined();
}

struct Definition {
  std::string_view name;
  bool (*test)(Runtime& runtime, const Value& value, Arguments& arguments);
};

constexpr Definition kTests[] = {
    {"defined", [](Runtime&, const Value& v, Arguments&) { return !v.is_undefined(); }},
    {"undefined", [](Runtime&, const Value& v, Arguments&) { return v.is_undefined(); }},
    {"none", [](Runtime&, const Value& v, Arguments&) { return v.is_none(); }},
    {"boolean", [](Runtime&, const Value& v, Arguments&) { return v.is_bool(); }},
    {"true", [](Runtime&, const Value& v, Arguments&) { return v.is_bool() && v.as_bool(); }},
    {"false", [](Runtime&, const Value& v, Arguments&) { return v.is_bool() && !v.as_bool(); }},
    {"integer", [](Runtime&, const Value& v, Arguments&) { return v.is_int(); }},
    {"float", [](Runtime&, const Value& v, Arguments&) { return v.is_float(); }},
    {"number", [](Runtime&, const Value& v, Arguments&) { return v.is_number(); }},
    {"string", [](Runtime&, const Value& v, Arguments&) { return v.is_string(); }},
    {"mapping", [](Runtime&, const Value& v, Arguments&) { return v.is_mapping(); }},
    {"sequence",
     [](Runtime&, const Value& v, Arguments&) { return is_iterable(v) && !v.is_stream(); }},
    {"iterable", [](Runtime&, const Value& v, Arguments&) { return is_iterable(v); }},
    {"callable",
     [](Runtime&, const Value& v, Arguments&) {
       return v.is_undefined() || (v.is_object() && v.object().is_callable());
     }},
    {"escaped", [](Runtime&, const Value& v, Arguments&) { return v.is_safe(); }},
    {"lower", [](Runtime& r, const Value& v, Arguments&) { return is_lower_text(to_text(r, v)); }},
    {"upper", [](Runtime& r, const Value& v, Arguments&) { return is_upper_text(to_text(r, v)); }},
    {"odd",
     [](Runtime& r, const Value& v, Arguments&) {
       return !is_divisible(r, v, Value(int64_t{2})) &&
              equal(arithmetic(r, BinaryOperator::modulo, v, Value(int64_t{2})), Value(int64_t{1}));
     }},
    {"even",
     [](Runtime& r, const Value& v, Arguments&) { return is_divisible(r, v, Value(int64_t{2})); }},
    {"divisibleby", [](Runtime& r, const Value& v,
                       Arguments& a) { return is_divisible(r, v, a.required("num")); }},
    {"eq", [](Runtime&, const Value& v, Arguments& a) { return equal(v, a.required("other")); }},
    {"equalto",
     [](Runtime&, const Value& v, Arguments& a) { return equal(v, a.required("other")); }},
    {"==", [](Runtime&, const Value& v, Arguments& a) { return equal(v, a.required("other")); }},
    {"ne", [](Runtime&, const Value& v, Arguments& a) { return !equal(v, a.required("other")); }},
    {"!=", [](Runtime&, const Value& v, Arguments& a) { return !equal(v, a.required("other")); }},
    {"lt", [](Runtime&, const Value& v, Arguments& a) { return less(v, a.required("other")); }},
    {"lessthan",
     [](Runtime&, const Value& v, Arguments& a) { return less(v, a.required("other")); }},
    {"<", [](Runtime&, const Value& v, Arguments& a) { return less(v, a.required("other")); }},
    {"gt", [](Runtime&, const Value& v, Arguments& a) { return less(a.required("other"), v); }},
    {"greaterthan",
     [](Runtime&, const Value& v, Arguments& a) { return less(a.required("other"), v); }},
    {">", [](Runtime&, const Value& v, Arguments& a) { return less(a.required("other"), v); }},
    {"le",
     [](Runtime&, const Value& v, Arguments& a) {
       const Value o = a.required("other");
       return less(v, o) || equal(v, o);
     }},
    {"<=",
     [](Runtime&, const Value& v, Arguments& a) {
       const Value o = a.required("other");
       return less(v, o) || equal(v, o);
     }},
    {"ge",
     [](Runtime&, const Value& v, Arguments& a) {
       const Value o = a.required("other");
       return less(o, v) || equal(v, o);
     }},
    {">=",
     [](Runtime&, const Value& v, Arguments& a) {
       const Value o = a.required("other");
       return less(o, v) || equal(v, o);
     }},
    {"in", [](Runtime&, const Value& v, Arguments& a) { return contains(a.required("seq"), v); }},
    {"sameas",
     [](Runtime&, const Value& v, Arguments& a) { return is_same(v, a.required("other")); }},
    {"filter",
     [](Runtime&, const Value& v, Arguments&) { return v.is_string() && is_filter(v.text()); }},
    {"test",
     [](Runtime&, const Value& v, Arguments&) { return v.is_string() && is_test(v.text()); }},
};

const Definition* find_test(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kTests), std::end(kTests),
                   [&](const Definition& definition) { return definition.name == name; });
  return found == std::end(kTests) ? nullptr : found;
}

}  // namespace

bool is_test(std::string_view name) { return find_test(name) != nullptr; }

bool apply_test(TemplateRuntime& runtime, std::string_view name, const TemplateValue& value,
                TemplateArguments arguments) {
  runtime.step();
  const Definition* test = find_test(name);
  if (test == nullptr) throw TemplateError(fmt::format("No test named '{}'", name));
  ArgumentReader reader(name, std::move(arguments));
  const bool result = test->test(runtime, value, reader);
  reader.finish();
  return result;
}

}  // namespace paceline
