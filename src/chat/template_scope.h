// TemplateScope is the variables of one block; names are looked for from the inside out.
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/template_value.h"

namespace paceline {

class TemplateScope {
 public:
  explicit TemplateScope(TemplateScope* parent) : parent_(parent) {}

  // `name` must outlive the scope: it is the tree's or the input's.
  void set(std::string_view name, TemplateValue value) {
    for (auto& [known, of_known] : variables_) {
      if (known != name) continue;
      of_known = std::move(value);
      return;
    }
    variables_.emplace_back(name, std::move(value));
  }

  const TemplateValue* find(std::string_view name) const {
    for (const TemplateScope* scope = this; scope != nullptr; scope = scope->parent_) {
      for (const auto& [known, value] : scope->variables_) {
        if (known == name) return &value;
      }
    }
    return nullptr;
  }

  // A macro holds on to it and all around it: they live until the rendering ends.
  void keep() {
    for (TemplateScope* scope = this; scope != nullptr && !scope->is_kept_;
         scope = scope->parent_) {
      scope->is_kept_ = true;
    }
  }
  bool is_kept() const { return is_kept_; }

 private:
  TemplateScope* parent_;
  std::vector<std::pair<std::string_view, TemplateValue>> variables_;
  bool is_kept_ = false;
};

}  // namespace paceline
