// ResultStore owns what a result of the C API points at; Owned is a result with its store.
#pragma once

#include <any>
#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace paceline::capi {

class ResultStore {
 public:
  const char* keep(std::string text) {
    return std::any_cast<std::string&>(kept_.emplace_back(std::move(text))).c_str();
  }
  // NULL for an empty one.
  template <class T>
  const T* keep(std::vector<T> values) {
    if (values.empty()) return nullptr;
    return std::any_cast<std::vector<T>&>(kept_.emplace_back(std::move(values))).data();
  }
  // Texts, as an array of pointers to them.
  const char* const* keep_texts(const std::vector<std::string>& texts) {
    std::vector<const char*> pointers;
    pointers.reserve(texts.size());
    for (const std::string& text : texts) pointers.push_back(keep(text));
    return keep(std::move(pointers));
  }

 private:
  std::deque<std::any> kept_;  // its elements stay where they are
};

// A structure of the C API, which the caller gets as a pointer to its base.
template <class Result>
struct Owned final : Result {
  Owned() : Result{} {}
  ResultStore store;
};

// The caller frees it.
template <class Result>
void free_owned(const Result* result) {
  delete static_cast<const Owned<Result>*>(result);
}

}  // namespace paceline::capi
