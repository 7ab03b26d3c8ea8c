

#include "base/json_writer.h"
#include "cli/chat_input.h"
#include "cli/command.h"
#include "cli/items.h"
#include "cli/line_fields.h"
#include "cli/model_opening.h"
#include "cli/text_file.h"
#include "load/chat_setup.h"
#include "load/model_source.h"
#include "paceline/chat_template.h"

namespace paceline {
namespace {

constexpr std::string_view kRenderFields[] = {
    "messages",       "tools", "documents", "kwargs", "add_generation_prompt",
    "special_tokens", "now",   "template"};

// Renders with one template for all items, or with the template of each line.
class Renderer {
 public:
  explicit Renderer(const Settings& settings) : settings_(settings) {
    if (!settings.template_file.empty()) {
      template_ =
          ChatTemplate::parse(read_whole_file(settings.template_file), settings.template_file);
    }
  }

  std::string render(const Item& item) {
    const Json* const line = item.line();
    if (line == nullptr) return render_text(item.text());
    check_line_keys(*line, {kRenderFields});
    const ChatInput input = read_input(*line);
    if (const auto source = line_cursor(*line).find("template")) {
      return ChatTemplate::parse(source->string(), "template").render(input);
    }
    return chat_template().render(input);
  }

 private:
  const ChatTemplate& chat_template() {
    if (!template_) {
      const ModelSource source(model_path(settings_));
      const Tokenizer tokenizer = Tokenizer::load(source.files());
      ChatSetup setup = set_up_chat(source.files(), settings_.load.chat_template, tokenizer);
      if (!setup.chat_template) throw Error(ErrorCode::not_found, setup.problem);
      special_tokens_ = tokenizer.special_tokens();
      template_ = std::move(*setup.chat_template);
    }
    return *template_;
  }

  std::string render_text(const std::string& text) {
    const ChatTemplate& chosen = chat_template();
    ChatInput input{.kwargs_json = settings_.chat_template_kwargs,
                    .special_tokens = special_tokens_};
    if (!settings_.system.empty()) input.messages.push_back({"system", settings_.system});
    input.messages.push_back({"user", text});
    return chosen.render(input);
  }

  ChatInput read_input(const Json& object) {
    const JsonCursor line = line_cursor(object);
    ChatInput input = read_chat_input(object, "kwargs", settings_);
    input.add_generation_prompt = line.boolean_or("add_generation_prompt", false);
    if (const auto now = line.find("now")) input.now = now->string();
    if (const auto tokens = line.find("special_tokens")) {
      for (const auto& [name, token] : tokens->members()) {
        input.special_tokens.emplace_back(name, tokens->below(name, token).string());
      }
    } else if (settings_.template_file.empty() && !line.find("template")) {
      chat_template();  // also loads the model's tokens
      input.special_tokens = special_tokens_;
    }
    return input;
  }

  const Settings& settings_;
  std::optional<ChatTemplate> template_;
  std::vector<std::pair<std::string, std::string>> special_tokens_;
};

}  // namespace

int run_render(const Settings& settings, Session& session) {
  ItemSource items(settings);
  Renderer renderer(settings);
  return for_each_item(items, settings, session, [&](const Item& item) {
    const std::string rendered = renderer.render(item);
    if (settings.jsonl) {
      write_json_line(session,
                      object_json([&](JsonWriter& json) { json.member("rendered", rendered); }));
    } else {
      session.out().print(rendered.ends_with('\n') ? rendered : rendered + "\n");
    }
  });
}

}  // namespace paceline
