// The bodies of Ollama's POST /api/chat, /api/generate, /api/embed and /api/embeddings.
// Source: api/types.go of Ollama, and the types of its Python package.
#pragma once

#include <optional>
#include <string>

#include "protocol/dialect.h"

namespace paceline {

template <class Request>
struct AskedOfOllama {
  Request request;
  bool is_load = false;          // without messages, prompt or input it only loads the model
  std::string model = {};        // as asked, with its tag
  bool returns_context = false;  // the tokens of prompt and answer, in the last object
};
// A chat, or with `raw` or `suffix` a completion.
using OllamaRequest = AskedOfOllama<GenerationRequest>;
using OllamaEmbedRequest = AskedOfOllama<EmbeddingRequest>;

// Each throws RequestError naming the first field that is wrong, unknown or not supported.
OllamaRequest parse_ollama_chat(const Json& body, const RequestTerms& terms = {});
OllamaRequest parse_ollama_generate(const Json& body, const RequestTerms& terms = {});
OllamaEmbedRequest parse_ollama_embed(const Json& body, const RequestTerms& terms = {});
OllamaEmbedRequest parse_ollama_embeddings(const Json& body, const RequestTerms& terms = {});

// The name of the model that POST /api/show asks for; nothing: the server's first.
std::optional<std::string> parse_ollama_show(const Json& body, const RequestTerms& terms = {});

FieldList ollama_show_fields();
FieldList ollama_chat_fields();
FieldList ollama_generate_fields();
FieldList ollama_embed_fields();
FieldList ollama_embeddings_fields();

}  // namespace paceline
