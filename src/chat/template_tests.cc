#include "chat/template_tests.h"

#include <fmt/format.h>

#include "chat/python_case.h"
#include "chat/template_arithmetic.h"
#include "chat/template_compare.h"
#include "chat/template_convert.h"
#include "chat/template_filters.h"
#include "chat/template_table.h"

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

template <CompareOperator kOp>
bool compares(Runtime&, const Value& value, Arguments& arguments) {
  return compare(kOp, value, arguments.required("other"));
}

struct TestDefinition {
  std::string_view name;
  bool (*test)(Runtime& runtime, const Value& value, Arguments& arguments);
};

constexpr TestDefinition kTests[] = {
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
       return equal(arithmetic(r, BinaryOperator::modulo, v, Value(int64_t{2})), Value(int64_t{1}));
     }},
    {"even",
     [](Runtime& r, const Value& v, Arguments&) { return is_divisible(r, v, Value(int64_t{2})); }},
    {"divisibleby", [](Runtime& r, const Value& v,
                       Arguments& a) { return is_divisible(r, v, a.required("num")); }},
    {"eq", compares<CompareOperator::eq>},
    {"equalto", compares<CompareOperator::eq>},
    {"==", compares<CompareOperator::eq>},
    {"ne", compares<CompareOperator::ne>},
    {"!=", compares<CompareOperator::ne>},
    {"lt", compares<CompareOperator::lt>},
    {"lessthan", compares<CompareOperator::lt>},
    {"<", compares<CompareOperator::lt>},
    {"gt", compares<CompareOperator::gt>},
    {"greaterthan", compares<CompareOperator::gt>},
    {">", compares<CompareOperator::gt>},
    {"le", compares<CompareOperator::le>},
    {"<=", compares<CompareOperator::le>},
    {"ge", compares<CompareOperator::ge>},
    {">=", compares<CompareOperator::ge>},
    {"in", [](Runtime&, const Value& v, Arguments& a) { return contains(a.required("seq"), v); }},
    {"sameas",
     [](Runtime&, const Value& v, Arguments& a) { return is_same(v, a.required("other")); }},
    {"filter",
     [](Runtime&, const Value& v, Arguments&) { return v.is_string() && is_filter(v.text()); }},
    {"test",
     [](Runtime&, const Value& v, Arguments&) { return v.is_string() && is_test(v.text()); }},
};

}  // namespace

bool is_test(std::string_view name) { return find_named(kTests, name) != nullptr; }

bool apply_test(TemplateRuntime& runtime, std::string_view name, const TemplateValue& value,
                TemplateArguments arguments) {
  runtime.step();
  const TestDefinition* test = find_named(kTests, name);
  if (test == nullptr) throw TemplateError("No test named '{}'", name);
  ArgumentReader reader(name, std::move(arguments));
  const bool result = test->test(runtime, value, reader);
  reader.finish();
  return result;
}

}  // namespace paceline
