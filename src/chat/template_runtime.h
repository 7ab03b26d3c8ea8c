// TemplateRuntime is the shared state of one rendering: budget, clock, and the objects it made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/strftime.h"
#include "chat/switched.h"
#include "chat/template_error.h"
#include "chat/template_object.h"

namespace paceline {

// The limits of one rendering, for any template and input.
struct TemplateLimits {
  uint64_t steps = 1'000'000;
  size_t output_bytes = size_t{4} << 20;
  size_t made_bytes = size_t{256} << 20;  // of all strings and lists
  int64_t range = 10'000;
  int call_depth = 64;
};

class TemplateRuntime {
 public:
  TemplateRuntime(TemplateLimits limits, CivilTime now) : limits_(limits), now_(now) {}

  const TemplateLimits& limits() const { return limits_; }
  const CivilTime& now() const { return now_; }

  void step(uint64_t count = 1) {
    if (count > limits_.steps - steps_) {
      throw TemplateError("the template takes more than 1,000,000 steps", ErrorCode::exhausted);
    }
    steps_ += count;
  }
  // Call it before making a string or list of this size.
  void charge(size_t bytes) {
    if (bytes > limits_.made_bytes - made_bytes_) {
      throw TemplateError("the template makes more than 256 MiB of strings", ErrorCode::exhausted);
    }
    made_bytes_ += bytes;
  }
  void charge_items(size_t count) { charge(count * sizeof(TemplateValue)); }

  // Charges for a string and makes a value of it.
  TemplateValue text(std::string bytes) {
    charge(bytes.size());
    return TemplateValue(std::move(bytes));
  }
  TemplateValue list(TemplateValues items) {
    charge_items(items.size());
    return TemplateValue::list(std::move(items));
  }

  template <class Object, class... Arguments>
  Object* make(Arguments&&... arguments) {
    charge(sizeof(Object) + 64);
    auto object = std::make_unique<Object>(std::forward<Arguments>(arguments)...);
    Object* const made = object.get();
    objects_.push_back(std::move(object));
    return made;
  }
  TemplateValue function(std::string_view type_name, FunctionObject::Function function) {
    return TemplateValue(make<FunctionObject>(type_name, std::move(function)));
  }

  // Held while a macro or a nested walk runs; throws when they are nested too deeply.
  [[nodiscard]] Switched<int> nest() {
    if (depth_ >= limits_.call_depth) {
      throw TemplateError("calls are nested deeper than 64 levels", ErrorCode::exhausted);
    }
    return {depth_, depth_ + 1};
  }

 private:
  TemplateLimits limits_;
  CivilTime now_;
  uint64_t steps_ = 0;
  size_t made_bytes_ = 0;
  int depth_ = 0;
  std::vector<std::unique_ptr<TemplateObject>> objects_;
};

}  // namespace paceline
