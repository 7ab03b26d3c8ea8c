// TextModel: the parts of a loaded model that process text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/siphash.h"
#include "paceline/chat_template.h"
#include "paceline/tokenizer.h"
#include "text/embedding_config.h"
#include "text/generation_config.h"
#include "text/sequence_labels.h"
#include "text/typed_specials.h"

namespace paceline {

class AdapterSet;
class ChatTurns;
class ConstraintCache;
class Engine;

// What descriptions say of a model's weights.
struct WeightFacts {
  std::string family;  // the config's model_type
  int64_t num_parameters = 0;
  int64_t num_layers = 0;
  int64_t width = 0;        // of the residual stream
  std::string type = {};    // "BF16", or "quantized"
  std::string digest = {};  // 32 hexadecimal digits; empty: unknown
  size_t num_bytes = 0;     // in memory
  bool is_on_device = false;
};

// All referenced objects must outlive it.
struct TextModel {
  std::string name;  // in messages: the model's directory
  Engine& engine;
  const Tokenizer* tokenizer = nullptr;         // nullptr: prompts are token ids
  const ChatTemplate* chat_template = nullptr;  // nullptr: `chat_problem` says why
  std::string chat_problem = {};
  TypedSpecials typed_specials = TypedSpecials::text;
  const ChatTurns* turns = nullptr;               // of the template; nullptr: none, or no tokenizer
  ConstraintCache* constraints = nullptr;         // nullptr: there is no tokenizer
  const AdapterSet* adapters = nullptr;           // nullptr: there are none
  std::optional<EmbeddingConfig> embedding = {};  // nothing: the model makes none
  std::optional<SequenceLabels> labels = {};      // of a head that classifies; nothing: none
  GenerationConfig generation = {};               // defaults of unset request fields
  size_t longest_token_bytes = 0;                 // longest text of one token; 0: unknown
  int64_t max_position = 0;                       // the context that the model was trained for
  WeightFacts weights = {};
  std::string device = {};  // of the processor or the GPU that computes, for people
  SipKey salt_key = {};     // of cache salts
};

}  // namespace paceline
