#include "protocol/field_list.h"

#include <algorithm>
#include <vector>

#include "protocol/anthropic_request.h"
#include "protocol/chat_request.h"
#include "protocol/classification_request.h"
#include "protocol/completion_request.h"
#include "protocol/embedding_request.h"
#include "protocol/llama_request.h"
#include "protocol/pair_score_request.h"
#include "protocol/text_requests.h"
#include "protocol/token_score_request.h"

namespace paceline {

bool is_request_field(std::string_view name) {
  static const FieldList all_fields = [] {
    FieldList all;
    for (const auto& fields :
         {completion_request_fields(), chat_request_fields(), classification_request_fields(),
          token_score_request_fields(), pair_score_request_fields(), rerank_request_fields(),
          embedding_request_fields(), tokenize_request_fields(), detokenize_request_fields(),
          template_request_fields(), anthropic::request_fields(), llama_request_fields(),
          infill_request_fields()}) {
      all.insert(all.end(), fields.begin(), fields.end());
    }
    return all;
  }();
  return std::any_of(all_fields.begin(), all_fields.end(),
                     [&](const auto& field) { return field.name == name; });
}

}  // namespace paceline
