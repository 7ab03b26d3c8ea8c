#include "protocol/dialect.h"

namespace paceline {
namespace {

template <class AnyCall>
auto& common_of(AnyCall& call) {
  const auto of_each = [](auto& request) -> auto& { return request.common; };
  return std::visit(
      [&](auto& one) -> auto& {
        if constexpr (requires { one.common; }) {
          return one.common;
        } else if constexpr (requires { one.request.common; }) {
          return one.request.common;
        } else {
          return std::visit(of_each, one.request);
        }
      },
      call);
}

constexpr const Dialect* kAll[] = {
    &kChatDialect,        &kCompletionDialect,       &kEmbeddingDialect,  &kLlamaDialect,
    &kInfillDialect,      &kClassificationDialect,   &kTokenScoreDialect, &kPairScoreDialect,
    &kGenerateDialect,    &kRerankDialect,           &kMessagesDialect,   &kMessageCountDialect,
    &kDecisionDialect,    &kSystemOneDialect,        &kOllamaChatDialect, &kOllamaGenerateDialect,
    &kOllamaEmbedDialect, &kOllamaEmbeddingsDialect, &kResponsesDialect,  &kCompactionDialect,
    &kInputTokensDialect,
};

}  // namespace

std::span<const Dialect* const> all_dialects() { return kAll; }

const CommonFields& common_fields_of(const Call& call) { return common_of(call); }
CommonFields& common_fields_of(Call& call) { return common_of(call); }

ErrorAnswer openai_error(const ApiError& error, std::string_view /*request_id*/) {
  return {.status = openai_kind(error.reason).status, .body = error_json(error)};
}

}  // namespace paceline
