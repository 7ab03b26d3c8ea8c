#include "protocol/embedding_request.h"

#include <bit>

#include "base/base64.h"

namespace paceline {
namespace {

constexpr uint64_t kMaxPromptName = 256;
constexpr std::string_view kFormats[] = {"float", "base64"};

constexpr FieldDef<EmbeddingRequest> kEmbeddingFields[] = {
    required("input", kInputs,
             "A string, an array of strings (up to 2048), of token ids, or of arrays of token ids.",
             [](const FieldValue& v, EmbeddingRequest& t) { t.input = read_prompts(v); }),
    field("encoding_format", word_type(kFormats),
          "float: an array of numbers; base64: of the elements as float32, lowest byte first.",
          {.by_default = "float"},
          [](const FieldValue& v, EmbeddingRequest& t) {
            t.format = v.text() == "base64" ? EmbeddingFormat::base64 : EmbeddingFormat::floats;
          }),
    field("dimensions", integer_type(1, kMaxDimensions),
          "Elements of an embedding, of models trained for several sizes.",
          store<&EmbeddingRequest::dimensions>),
    field("prompt_name", text_type(1, kMaxPromptName),
          "One of the model's prompts, which stands in front of a text.",
          store<&EmbeddingRequest::named_prompt>),
    field("add_special_tokens", kBoolean,
          "Encode a text with the special tokens that the tokenizer adds.", kOn,
          store<&EmbeddingRequest::add_special_tokens>),
};

// Their bytes as float32, the lowest first.
std::string bytes_of(const std::vector<float>& elements) {
  std::string bytes;
  bytes.reserve(elements.size() * sizeof(float));
  for (const float element : elements) {
    const auto bits = std::bit_cast<uint32_t>(element);
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(bits >> shift);
  }
  return bytes;
}

}  // namespace

EmbeddingRequest parse_embedding_request(const Json& body, const RequestTerms& terms) {
  return read_common_body<kEmbeddingFields>(body, terms);
}

FieldList embedding_request_fields() { return common_and_own_fields<kEmbeddingFields>(); }

int64_t embedding_json_bytes(EmbeddingFormat format, int64_t width) {
  constexpr int64_t kOther = 64, kBase64Bytes = 6;
  return kOther + width * (format == EmbeddingFormat::base64 ? kBase64Bytes : kJsonNumberBytes);
}

std::string embedding_response_json(const EmbeddingRequest& request, const ItemAnswer& answer) {
  const auto& embeddings = answer.embeddings;
  return list_json(answer, "data", embeddings.size(), [&](JsonWriter& writer, size_t i) {
    writer.member("object", "embedding").member("index", i).key("embedding");
    if (request.format == EmbeddingFormat::base64) {
      writer.string(base64_of_bytes(bytes_of(embeddings[i])));
    } else {
      writer.value(embeddings[i]);
    }
  });
}

}  // namespace paceline
