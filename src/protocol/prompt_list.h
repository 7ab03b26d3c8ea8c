// Prompts of a request: text or token ids, one or several.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "protocol/field_value.h"

namespace paceline {

constexpr uint64_t kMaxPrompts = 128;  // of a completion
constexpr uint64_t kMaxInputs = 2048;  // of a classification or a score

// Text, or token ids that are used as they are.
using PromptText = std::variant<std::string, std::vector<int32_t>>;

// A prompt made of text and token ids that follow one another. Special tokens are recognised in
// every text, and added before one that begins the prompt.
using PromptPiece = std::variant<std::string, int32_t>;
using MixedPrompt = std::vector<PromptPiece>;

struct PromptList {
  std::vector<PromptText> prompts;
  bool is_array = false;  // of prompts; then messages call them "prompt[0]", ...

  // The name of a prompt in messages; `field` is the request's.
  std::string name(std::string_view field, size_t index) const;
};

// `value` must match one of the types below.
PromptList read_prompts(const FieldValue& value);

inline constexpr FieldType kPromptTexts = array_type(kAnyText, 1, kMaxPrompts);
inline constexpr FieldType kPromptIds = array_type(kTokenIds, 1, kMaxPrompts);
inline constexpr FieldType kPromptKinds[] = {kAnyText, kPromptTexts, kTokenIds, kPromptIds};
inline constexpr FieldType kInputTexts = array_type(kAnyText, 1, kMaxInputs);
inline constexpr FieldType kInputIds = array_type(kTokenIds, 1, kMaxInputs);
inline constexpr FieldType kInputKinds[] = {kAnyText, kInputTexts, kTokenIds, kInputIds};
inline constexpr FieldType kOnePromptKinds[] = {kAnyText, kTokenIds};

inline constexpr std::string_view kAnyPrompts =
    "a string, an array of strings, of token ids, or of arrays of token ids";
inline constexpr FieldType kPrompts = one_of_type(kPromptKinds, kAnyPrompts);
inline constexpr FieldType kInputs = one_of_type(kInputKinds, kAnyPrompts);
inline constexpr FieldType kOnePrompt =
    one_of_type(kOnePromptKinds, "a string or an array of token ids");

}  // namespace paceline
