// Makes a tokenizer's files, as in a Hugging Face directory, from a GGUF's metadata.
#pragma once

#include <string>

#include "weights/gguf_metadata.h"

namespace paceline {

// Whether the file has a tokenizer.
bool has_gguf_tokenizer(const GgufMetadata& metadata);

// tokenizer.json: byte-level BPE (tokenizer.ggml.model "gpt2"), or sentencepiece's BPE ("llama")
// with merges made from the scores. Throws Error unsupported naming another model or split, corrupt
// "FILE: KEY: ..." for contradictory keys.
std::string gguf_tokenizer_json(const GgufMetadata& metadata);

// The two kinds.
std::string gguf_byte_level_json(const GgufMetadata& metadata);
std::string gguf_sentence_piece_json(const GgufMetadata& metadata);

// tokenizer_config.json: the named tokens and the chat templates.
std::string gguf_tokenizer_config_json(const GgufMetadata& metadata);

}  // namespace paceline
