// The keys of a GGUF file that hold a tokenizer: what gguf_tokenizer_json() reads.
#pragma once

#include <cstdint>

#include "load/model_source.h"
#include "weights/gguf_file_writer.h"

namespace paceline {

// Adds the tokenizer (byte-level BPE as "gpt2", sentencepiece's BPE with byte fallback as "llama")
// with a list of `vocab_size` tokens, the ids of named tokens, the default chat template and the
// sampling that generation_config.json recommends. Those of a GGUF file are copied. A model without
// a tokenizer gets none. Throws Error unsupported naming the part of the tokenizer that files can't
// have.
void add_tokenizer_keys(const ModelSource& source, int64_t vocab_size, GgufHeader& header);

// Throws Error unsupported when the tokenizer of `read`, the file that was written, gives other
// tokens than that of `source` for a text with words, digits, marks and blanks of many kinds.
void check_same_tokens(const ModelSource& source, const ModelSource& read);

}  // namespace paceline
