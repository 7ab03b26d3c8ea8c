// Parts of a tokenizer.json that HF tokenizers doesn't have. Only those made of another file
// (made_tokenizer.h) have them; they are never written to disk.
#pragma once

#include <string_view>

namespace paceline {

// sentencepiece's character for a space.
inline constexpr std::string_view kSpaceMark = "\u2581";

// A pattern {"Strings": [TEXT, ...]}: any of them.
inline constexpr std::string_view kStringsField = "Strings";

// A normalizer with `prefix` ("always", "first" or "never"), `remove_extra_whitespaces`, `charsmap`
// (base64, or null) and `kept` (texts that stay as they are): SentencePieceNormalizer.
inline constexpr std::string_view kSentencePieceType = "SentencePiece";

// Of a model, ids: pieces with the text of such a token are that token, whatever else they could
// be.
inline constexpr std::string_view kWholeTokensField = "whole_tokens";
// Of a Unigram model, ids: tokens that no text becomes.
inline constexpr std::string_view kUnmatchedTokensField = "unmatched_tokens";
// Of a Unigram model, ids: sentencepiece's user-defined tokens, whose score grows with their
// length.
inline constexpr std::string_view kUserDefinedField = "user_defined";
// Of a Unigram model: scores are added in float32, as sentencepiece does, not in float64.
inline constexpr std::string_view kSingleScoresField = "single_scores";

}  // namespace paceline
