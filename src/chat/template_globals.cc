#include "chat/template_globals.h"

#include <utility>

#include "chat/template_convert.h"
#include "chat/template_table.h"

namespace paceline {
namespace {

using Value = TemplateValue;

Value range(TemplateRuntime& runtime, TemplateArguments arguments) {
  ArgumentReader reader("range", std::move(arguments));
  int64_t start = 0;
  int64_t stop = reader.integer("stop");
  if (const auto second = reader.optional("stop")) {
    start = stop;
    require_defined(*second);
    if (!second->is_integral()) throw TemplateError("range: stop must be an integer");
    stop = second->integer();
  }
  const int64_t step = reader.integer("step", 1);
  reader.finish();
  if (step == 0) throw TemplateError("range() arg 3 must not be zero");
  TemplateValues items;
  for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (static_cast<int64_t>(items.size()) >= runtime.limits().range) {
      throw TemplateError("range has more than 10,000 items", ErrorCode::exhausted);
    }
    items.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return runtime.list(std::move(items));
}

// Pairs of a mapping, or of a list of pairs; then the named ones.
TemplateMapping mapping_of(TemplateRuntime& runtime, TemplateArguments arguments) {
  TemplateMapping members;
  if (arguments.positional.size() > 1) throw TemplateError("dict expected at most 1 argument");
  for (const Value& source : arguments.positional) {
    if (source.is_mapping()) {
      members = source.members();
      continue;
    }
    for (const Value& pair : to_items(runtime, source)) {
      TemplateValues both = to_items(runtime, pair);
      if (both.size() != 2) throw TemplateError("dict: expected pairs of a key and a value");
      members.set(std::move(both[0]), std::move(both[1]));
    }
  }
  for (auto& [name, value] : arguments.named) members.set(Value(name), std::move(value));
  runtime.charge_items(2 * members.members().size());
  return members;
}

Value make_dict(TemplateRuntime& runtime, TemplateArguments arguments) {
  return Value::mapping(mapping_of(runtime, std::move(arguments)));
}

Value make_namespace(TemplateRuntime& runtime, TemplateArguments arguments) {
  auto* const made = runtime.make<NamespaceObject>();
  const TemplateMapping members = mapping_of(runtime, std::move(arguments));
  for (const auto& [key, value] : members.members()) made->set(to_text(runtime, key), value);
  return Value(static_cast<TemplateObject*>(made));
}

Value raise_exception(TemplateRuntime& runtime, TemplateArguments arguments) {
  ArgumentReader reader("raise_exception", std::move(arguments));
  const Value message = reader.required("message");
  reader.finish();
  throw RaisedByTemplate(to_text(runtime, message));
}

Value strftime_now(TemplateRuntime& runtime, TemplateArguments arguments) {
  ArgumentReader reader("strftime_now", std::move(arguments));
  const std::string format = reader.text("format");
  reader.finish();
  runtime.charge(64 * format.size());
  return runtime.text(format_time(runtime.now(), format));
}

class Cycler final : public TemplateObject {
 public:
  explicit Cycler(TemplateRuntime& runtime, TemplateValues items)
      : runtime_(runtime), items_(std::move(items)) {}
  std::string_view type_name() const override { return "Cycler"; }
  std::optional<TemplateValue> attribute(std::string_view name) override {
    if (name == "current") return items_[at_];
    if (name != "next" && name != "reset") return std::nullopt;
    return runtime_.function(
        "method", [this, is_next = name == "next"](TemplateArguments arguments) -> Value {
          ArgumentReader(is_next ? "next" : "reset", std::move(arguments)).finish();
          const size_t now = std::exchange(at_, is_next ? (at_ + 1) % items_.size() : 0);
          return is_next ? items_[now] : Value();
        });
  }

 private:
  TemplateRuntime& runtime_;
  TemplateValues items_;
  size_t at_ = 0;
};

Value make_cycler(TemplateRuntime& runtime, TemplateArguments arguments) {
  if (arguments.positional.empty()) throw TemplateError("at least one item has to be provided");
  return Value(runtime.make<Cycler>(runtime, std::move(arguments.positional)));
}

Value make_joiner(TemplateRuntime& runtime, TemplateArguments arguments) {
  ArgumentReader reader("joiner", std::move(arguments));
  const std::string separator = reader.text("sep", ", ");
  reader.finish();
  const auto join = [separator, is_used = false](TemplateArguments none) mutable {
    ArgumentReader("joiner", std::move(none)).finish();
    return std::exchange(is_used, true) ? Value(separator) : Value(std::string());
  };
  return runtime.function("Joiner", join);
}

struct GlobalDefinition {
  std::string_view name;
  Value (*call)(TemplateRuntime& runtime, TemplateArguments arguments);
};

constexpr GlobalDefinition kGlobals[] = {{"range", range},
                                         {"dict", make_dict},
                                         {"namespace", make_namespace},
                                         {"cycler", make_cycler},
                                         {"joiner", make_joiner},
                                         {"raise_exception", raise_exception},
                                         {"strftime_now", strftime_now}};

}  // namespace

std::optional<TemplateValue> NamespaceObject::attribute(std::string_view name) {
  for (const auto& [known, value] : members_) {
    if (known == name) return value;
  }
  return std::nullopt;
}

void NamespaceObject::set(std::string name, TemplateValue value) {
  for (auto& [known, of_known] : members_) {
    if (known != name) continue;
    of_known = std::move(value);
    return;
  }
  members_.emplace_back(std::move(name), std::move(value));
}

std::optional<TemplateValue> find_global(TemplateRuntime& runtime, std::string_view name) {
  const GlobalDefinition* found = find_named(kGlobals, name);
  if (found == nullptr) return std::nullopt;
  return runtime.function("function", [&runtime, found](TemplateArguments arguments) {
    return found->call(runtime, std::move(arguments));
  });
}

}  // namespace paceline
