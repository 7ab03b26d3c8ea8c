// Changes one value of a JSON document, so that it stays JSON: plain mutations fail in the parser.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/json_writer.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* bytes, size_t size, size_t max_size);

namespace paceline::fuzz {

class JsonMutator {
 public:
  // `words`: strings and keys that mean something to the target.
  JsonMutator(std::span<const std::string_view> words, unsigned seed)
      : words_(words), random_(seed) {}

  // "" when the text isn't JSON.
  std::string mutated(std::string_view text) {
    try {
      Json document = parse_json(text, "input");
      countdown_ = draw(count(document));
      document = changed(document);
      std::string out;
      JsonWriter(out).tree(document);
      return out;
    } catch (const Error&) {
      return "";
    }
  }

 private:
  uint64_t draw(uint64_t below) { return random_() % below; }
  std::string word() { return std::string(words_[draw(words_.size())]); }

  static uint64_t count(const Json& value) {
    uint64_t sum = 1;
    if (value.is_array()) {
      for (const Json& item : value.as_array("")) sum += count(item);
    }
    if (value.is_object()) {
      for (const auto& [key, item] : value.as_object("")) sum += count(item);
    }
    return sum;
  }

  // A copy, with another value where the countdown reaches 0.
  Json changed(const Json& value) {
    if (countdown_-- == 0) return another(value);
    if (value.is_array()) {
      Json::Array items;
      for (const Json& item : value.as_array("")) items.push_back(changed(item));
      return Json(std::move(items));
    }
    if (!value.is_object()) return value;
    Json::Object members;
    for (const auto& [key, item] : value.as_object("")) members.emplace_back(key, changed(item));
    return Json(std::move(members));
  }

  Json another(const Json& value) {
    if (draw(12) == 0) return of_any_kind();
    if (value.is_object()) return another_object(value.as_object(""));
    if (value.is_array()) return another_array(value.as_array(""));
    if (value.is_integer() && !value.is_negative()) return another_number(value.as_uint(""));
    if (value.is_bool()) return Json(!value.as_bool(""));
    return value.is_string() ? Json(word()) : of_any_kind();
  }

  Json of_any_kind() {
    switch (draw(6)) {
      case 0:
        return {};
      case 1:
        return Json(draw(2) == 0);
      case 2:
        return Json(Json::Array{Json(draw(4)), Json(draw(9))});
      case 3:
        return Json(Json::Object{{word(), another_number(4)}});
      case 4:
        return Json(word());
      default:
        return draw(2) == 0 ? Json(-1.5) : Json(int64_t{-1});
    }
  }

  Json another_number(uint64_t old) {
    switch (draw(6)) {
      case 0:
        return Json(draw(10));
      case 1:
        return Json(uint64_t{1} << draw(64));
      case 2:
        return Json(old + 1);
      case 3:
        return Json(old - 1);
      case 4:
        return Json(old * 2);
      default:
        return Json(draw(2) == 0 ? old / 2 : 32 * draw(9));
    }
  }

  Json another_array(Json::Array items) {
    const uint64_t at = draw(items.size() + 1);
    if (at == items.size() || draw(2) == 0) {
      items.insert(items.begin() + static_cast<std::ptrdiff_t>(at), another_number(draw(200)));
    } else {
      items.erase(items.begin() + static_cast<std::ptrdiff_t>(at));
    }
    return Json(std::move(items));
  }

  // Removes, renames, replaces or adds a member.
  Json another_object(Json::Object members) {
    const uint64_t kind = members.empty() ? 3 : draw(4);
    const uint64_t at = members.empty() ? 0 : draw(members.size());
    if (kind == 0) members.erase(members.begin() + static_cast<std::ptrdiff_t>(at));
    if (kind == 1) rename(members, at, word());
    if (kind == 2) members[at].second = members[draw(members.size())].second;
    if (kind == 3) {
      members.emplace_back("", members.empty() ? of_any_kind() : Json(members[at].second));
      rename(members, members.size() - 1, word());
    }
    return Json(std::move(members));
  }

  // A duplicate key becomes another one, as our JSON has unique keys.
  static void rename(Json::Object& members, uint64_t at, std::string key) {
    for (const auto& [known, value] : members) {
      if (known == key) key += "_";
    }
    members[at].first = std::move(key);
  }

  std::span<const std::string_view> words_;
  std::mt19937_64 random_;
  uint64_t countdown_ = 0;
};

// What a target's LLVMFuzzerCustomMutator returns. One input in `plain_share`, and what isn't JSON,
// is changed as libFuzzer does; in the others a value of the JSON.
inline size_t mutate_json(std::span<const std::string_view> words, unsigned plain_share,
                          uint8_t* bytes, size_t size, size_t max_size, unsigned seed) {
  if (seed % plain_share != 0) {
    const std::string mutated =
        JsonMutator(words, seed).mutated({reinterpret_cast<const char*>(bytes), size});
    if (!mutated.empty() && mutated.size() <= max_size) {
      std::copy(mutated.begin(), mutated.end(), bytes);
      return mutated.size();
    }
  }
  return LLVMFuzzerMutate(bytes, size, max_size);
}

}  // namespace paceline::fuzz
