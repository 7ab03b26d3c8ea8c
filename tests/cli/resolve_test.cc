#include "cli/resolve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli/usage_error.h"
#include "tests/test_directory.h"

namespace paceline {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ResolveTest : public testing::Test {
 protected:
  ResolvedSettings resolve(std::string_view command, const std::vector<std::string>& arguments,
                           const Environment& environment = {}) {
    return resolve_settings(find_command(command), arguments, environment);
  }

  Settings generate(const std::vector<std::string>& arguments,
                    const Environment& environment = {}) {
    return resolve("generate", arguments, environment).settings;
  }

  std::string error_of(std::string_view command, const std::vector<std::string>& arguments,
                       const Environment& environment = {}) {
    try {
      resolve(command, arguments, environment);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "no error";
  }

  std::string config(std::string_view text) {
    std::ofstream(config_) << text;
    return config_;
  }

  TestDirectory temporary_;
  std::string config_ = temporary_.path() / "options.toml";
};

TEST_F(ResolveTest, DefaultsLeaveTheModelItsOwn) {
  const Settings settings = generate({});
  EXPECT_FALSE(settings.generate.temperature.has_value());
  EXPECT_FALSE(settings.generate.max_tokens.has_value());
  EXPECT_TRUE(settings.generate.add_special_tokens);
  EXPECT_TRUE(settings.load.model.empty());
}

TEST_F(ResolveTest, EveryAliasMeansTheSame) {
  for (const char* flag : {"-n", "--max-tokens", "--n-predict"}) {
    EXPECT_EQ(generate({flag, "7"}).generate.max_tokens, 7) << flag;
  }
  for (const char* flag : {"-c", "--max-model-len", "--ctx-size"}) {
    EXPECT_EQ(generate({flag, "7"}).load.max_model_len, 7) << flag;
  }
  EXPECT_EQ(generate({"--temp", "0.25"}).generate.temperature, 0.25f);
  EXPECT_EQ(generate({"--repeat-penalty", "1.5"}).generate.repetition_penalty, 1.5f);
  EXPECT_EQ(generate({"-s", "9"}).generate.seed, 9u);
  EXPECT_EQ(generate({"-t", "3"}).load.num_threads, 3);
  EXPECT_EQ(generate({"-b", "64"}).load.max_num_batched_tokens, 64);
  EXPECT_EQ(generate({"-m", "x"}).load.model, "x");
}

TEST_F(ResolveTest, ValuesMayBeWrittenInEveryWay) {
  EXPECT_EQ(generate({"--max-tokens=7"}).generate.max_tokens, 7);
  EXPECT_EQ(generate({"-n7"}).generate.max_tokens, 7);
  EXPECT_EQ(generate({"-n=7"}).generate.max_tokens, 7);
  EXPECT_EQ(generate({"-vn", "7"}).generate.max_tokens, 7);
  EXPECT_EQ(generate({"-n", "1", "-n", "7"}).generate.max_tokens, 7);
  EXPECT_THAT(generate({"-p", "-x", "-p", "--help", "-p", "a=b"}).prompts,
              ElementsAre("-x", "--help", "a=b"));
  EXPECT_THAT(generate({"--prompt=a=b", "-p", ""}).prompts, ElementsAre("a=b", ""));
  EXPECT_THAT(generate({"--stop==", "-n", "5"}).generate.stop, ElementsAre("="));
  EXPECT_THAT(generate({"-p", "[1,2]"}).prompts, ElementsAre("[1,2]"));
  EXPECT_THAT(generate({"-p", "a,b", "-p", "--"}).prompts, ElementsAre("a,b", "--"));
  EXPECT_THAT(generate({"-p", "{}", "-p", "true"}).prompts, ElementsAre("{}", "true"));
  EXPECT_EQ(generate({"--frequency-penalty", "-1"}).generate.frequency_penalty, -1.0f);
  EXPECT_TRUE(generate({"-vn3"}).verbose);
  EXPECT_FALSE(generate({"--verbose=false"}).verbose);
}

TEST_F(ResolveTest, AdaptersMayFollowTheirFlagAsVllmTakesThem) {
  const auto adapters = [&](std::vector<std::string> arguments) {
    std::vector<std::string> names;
    for (const LoraSource& lora : resolve("serve", std::move(arguments)).settings.load.loras) {
      names.push_back(lora.name + " " + lora.path);
    }
    return names;
  };
  const auto both = ElementsAre("a x", "b y");
  EXPECT_THAT(adapters({"--lora-modules", "a=x", "b=y"}), both);
  EXPECT_THAT(adapters({"--lora-modules", "a=x", "b=y", "--port", "81"}), both);
  EXPECT_THAT(adapters({"--lora-modules", "a=x", "--lora-modules", "b=y"}), both);
  EXPECT_THAT(adapters({"--lora-modules", R"({"name": "a", "path": "x"})", "b=y", "-v"}), both);
  // The others take one value a flag: what follows is a model.
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--lora", "a=x", "b=y"},
        std::vector<std::string>{"--lora-modules=a=x", "b=y"},
        std::vector<std::string>{"--lora-modules", "a=x", "--", "b=y"}}) {
    EXPECT_THAT(adapters(arguments), ElementsAre("a x"));
    EXPECT_THAT(resolve("serve", arguments).settings.models, ElementsAre("b=y"));
  }
  EXPECT_EQ(error_of("serve", {"--lora-modules"}),
            "--lora-modules needs a value: --lora-modules NAME=DIR...");
}

TEST_F(ResolveTest, LogprobsMayStandAlone) {
  EXPECT_EQ(generate({"--logprobs"}).generate.logprobs, 0);
  EXPECT_EQ(generate({"--logprobs", "5"}).generate.logprobs, 5);
  EXPECT_EQ(generate({"--logprobs=5"}).generate.logprobs, 5);
  const Settings settings = generate({"--logprobs", "-p", "x"});
  EXPECT_EQ(settings.generate.logprobs, 0);
  EXPECT_THAT(settings.prompts, ElementsAre("x"));
  EXPECT_EQ(generate({"-p", "x"}).generate.logprobs, std::nullopt);
}

TEST_F(ResolveTest, MisspeltFlagsAreErrorsWithASuggestion) {
  EXPECT_EQ(error_of("generate", {"--max-tokns", "5"}),
            "unknown option --max-tokns; did you mean --max-tokens?");
  EXPECT_EQ(error_of("generate", {"--temprature=1"}),
            "unknown option --temprature; did you mean --temperature?");
  EXPECT_EQ(error_of("generate", {"--max_tokens", "5"}),
            "unknown option --max_tokens; did you mean --max-tokens?");
  EXPECT_EQ(error_of("generate", {"--banana"}), "unknown option --banana");
  EXPECT_EQ(error_of("generate", {"--max-tokens"}), "--max-tokens needs a value: --max-tokens N");
  EXPECT_EQ(error_of("generate", {"-vn"}), "-n needs a value: -n N");
  EXPECT_EQ(error_of("generate", {"-vz"}), "unknown option -z");
  EXPECT_EQ(error_of("generate", {"-model", "x"}), "unknown option -model; did you mean --model?");
  // Options of other commands are errors.
  EXPECT_THAT(error_of("tokenize", {"--temperature", "1"}),
              HasSubstr("unknown option --temperature"));
}

TEST_F(ResolveTest, OperandsAreTheOptionThatMayStandBare) {
  EXPECT_EQ(resolve("trace", {"run.jsonl", "--json"}).settings.file, "run.jsonl");
  EXPECT_EQ(resolve("trace", {"--json", "-"}).settings.file, "-");
  EXPECT_EQ(resolve("trace", {"--", "--json"}).settings.file, "--json");
  EXPECT_EQ(error_of("trace", {"a", "b"}),
            "unexpected argument \"b\"; --file FILE gives the input");
  EXPECT_THAT(error_of("trace", {"-f", "a", "b"}), HasSubstr("unexpected argument \"b\""));
  EXPECT_EQ(error_of("train", {"stray"}), "unexpected argument \"stray\"");
  EXPECT_THAT(generate({"--", "--verbose"}).prompts, ElementsAre("--verbose"));
}

TEST_F(ResolveTest, MisspeltCommandsAreErrorsWithASuggestion) {
  try {
    find_command("genrate");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "unknown command genrate; did you mean generate?");
  }
}

TEST_F(ResolveTest, VariablesAreOptions) {
  const Settings settings = generate({}, {{"PACELINE_MAX_TOKENS", "11"},
                                          {"PACELINE_STOP", "END"},
                                          {"PACELINE_IGNORE_EOS", "1"},
                                          {"PACELINE_TOP_P", ""},
                                          {"OTHER", "x"}});
  EXPECT_EQ(settings.generate.max_tokens, 11);
  EXPECT_THAT(settings.generate.stop, ElementsAre("END"));
  EXPECT_TRUE(settings.generate.ignore_eos);
  EXPECT_FALSE(settings.generate.top_p.has_value());
}

TEST_F(ResolveTest, AVariableOfARepeatableOptionMayBeAnArray) {
  const auto labels = [&](std::string_view name, std::string_view value) {
    return resolve("classify", {}, {{std::string(name), std::string(value)}}).settings.labels;
  };
  EXPECT_THAT(labels("PACELINE_LABEL", R"([" good", "bad"])"), ElementsAre(" good", "bad"));
  EXPECT_THAT(labels("PACELINE_LABELS", R"(["good", "bad"])"), ElementsAre("good", "bad"));
  EXPECT_THAT(labels("PACELINE_LABEL", "good"), ElementsAre("good"));
  // Anything but an array of strings is a plain text.
  EXPECT_THAT(labels("PACELINE_LABEL", "[1,2]"), ElementsAre("[1,2]"));
  EXPECT_THAT(labels("PACELINE_LABEL", "[]"), ElementsAre("[]"));
  EXPECT_THAT(labels("PACELINE_LABEL", "[x"), ElementsAre("[x"));
  EXPECT_THAT(generate({}, {{"PACELINE_STOP_TOKEN_IDS", "[1, 2]"}}).generate.stop_token_ids,
              ElementsAre(1, 2));
}

TEST_F(ResolveTest, LongAliasesAreKeysAndVariables) {
  EXPECT_EQ(generate({}, {{"PACELINE_TEMP", "0.5"}}).generate.temperature, 0.5f);
  const std::string path = config("[classify]\nlabel = [\"good\", \"bad\"]\n");
  EXPECT_THAT(resolve("classify", {"--config", path}).settings.labels, ElementsAre("good", "bad"));
  EXPECT_THAT(error_of("classify", {"--config", config("label = 'a'\nlabels = 'b'\n")}),
              HasSubstr(".toml:2: labels was set before, as label or another name of it"));
}

TEST_F(ResolveTest, UnknownVariablesAreWarnings) {
  const auto warnings = [&](const Environment& environment) {
    return resolve("generate", {}, environment).warnings;
  };
  EXPECT_THAT(warnings({{"PACELINE_MAX_TOKEN", "5"}}),
              ElementsAre("unknown environment variable PACELINE_MAX_TOKEN; did you mean "
                          "PACELINE_MAX_TOKENS?"));
  EXPECT_THAT(warnings({{"PACELINE_BANANA", "5"}}),
              ElementsAre("unknown environment variable PACELINE_BANANA"));
  EXPECT_THAT(warnings({{"PACELINE_PORT", "tcp://10.0.0.1:80"},
                        {"PACELINE_ISA", "avx2"},
                        {"PACELINE_STREAMS", "1x8192"},
                        {"PACELINE_JSON", "1"},  // another command's
                        {"PACELINE_MAX_TOKENS", "5"}}),
              IsEmpty());
}

TEST_F(ResolveTest, WrongVariablesAreNamed) {
  EXPECT_EQ(error_of("generate", {}, {{"PACELINE_TOP_P", "3"}}),
            "PACELINE_TOP_P: found \"3\", expected a number from 0 to 1");
}

TEST_F(ResolveTest, ConfigFilesAreOptions) {
  const std::string path = config(
      "temperature = 0.5  # for all\n"
      "json = true\n"  // another command's
      "[generate]\n"
      "max_tokens = 12\n"
      "stop = [\"a\", 'b']\n"
      "logit_bias = { 5 = -1.5, \"6\" = 2 }\n"
      "kv-cache-memory-bytes = \"1G\"\n"
      "[classify]\n"
      "temperature = 0.75\n");
  const Settings settings = generate({"--config", path});
  EXPECT_EQ(settings.generate.temperature, 0.5f);
  EXPECT_EQ(settings.generate.max_tokens, 12);
  EXPECT_THAT(settings.generate.stop, ElementsAre("a", "b"));
  EXPECT_THAT(settings.generate.logit_bias,
              ElementsAre(testing::Pair(5, -1.5f), testing::Pair(6, 2.0f)));
  EXPECT_EQ(settings.load.kv_cache_memory_bytes, size_t{1} << 30);
  const auto classify = resolve("classify", {}, {{"PACELINE_CONFIG", path}}).settings;
  EXPECT_EQ(classify.generate.temperature, 0.75f);
}

TEST_F(ResolveTest, WrongConfigFilesNameLineAndKey) {
  const auto error = [&](std::string_view text) {
    return error_of("generate", {"--config", config(text)});
  };
  EXPECT_THAT(error("\nmax_tokns = 5\n"), AllOf(HasSubstr(".toml:2: unknown key max_tokns"),
                                                HasSubstr("did you mean max_tokens?")));
  EXPECT_THAT(error("[genrate]\nmax_tokens = 5\n"), HasSubstr("did you mean generate?"));
  EXPECT_THAT(error("[tokenize]\nmax_tokens = 5\n"),
              HasSubstr("tokenize has no option max_tokens"));
  EXPECT_THAT(error("top_p = 3\n"),
              HasSubstr(".toml:1: top_p: found 3, expected a number from 0 to 1"));
  EXPECT_THAT(error("top_p = \n"),
              HasSubstr(".toml:1: Error while parsing key-value pair: expected value"));
  EXPECT_THAT(error("config = 'x'\n"), HasSubstr("can't name another"));
  EXPECT_THAT(error_of("generate", {"--config", "/nonexistent.toml"}),
              HasSubstr("/nonexistent.toml"));
}

TEST_F(ResolveTest, FlagWinsOverVariableOverFileOverDefault) {
  const std::string path = config("max_tokens = 1\ntop_k = 1\nmin_p = 0.5\n");
  const Environment environment = {{"PACELINE_MAX_TOKENS", "2"}, {"PACELINE_TOP_K", "2"}};
  const Settings settings = generate({"--config", path, "--max-tokens", "3"}, environment);
  EXPECT_EQ(settings.generate.max_tokens, 3);
  EXPECT_EQ(settings.generate.top_k, 2);
  EXPECT_EQ(settings.generate.min_p, 0.5f);
  EXPECT_FALSE(settings.generate.top_p.has_value());
}

TEST_F(ResolveTest, HelpWinsOverEverythingElse) {
  EXPECT_TRUE(generate({"--help", "--banana"}, {{"PACELINE_TOP_P", "3"}}).help);
  EXPECT_TRUE(generate({"--top-p", "3", "-h"}).help);
  EXPECT_TRUE(generate({"--banana", "stray", "--help"}).help);
  EXPECT_THAT(generate({"-p", "--help"}).prompts, ElementsAre("--help"));
}

TEST_F(ResolveTest, AWordWithoutAFlagIsThePromptOrTheModel) {
  EXPECT_THAT(generate({"hi there", "-n", "5"}).prompts, ElementsAre("hi there"));
  EXPECT_THAT(resolve("tokenize", {"--", "-x"}).settings.prompts, ElementsAre("-x"));
  EXPECT_THAT(resolve("detokenize", {"1,2", "3"}).settings.id_prompts,
              ElementsAre(ElementsAre(1, 2), ElementsAre(3)));
  EXPECT_EQ(resolve("serve", {"org/name", "--port", "1"}).settings.load.model, "org/name");
  EXPECT_EQ(resolve("inspect", {"x.gguf"}).settings.load.model, "x.gguf");
  EXPECT_THAT(resolve("serve", {"a", "-m", "b"}).settings.models,
              testing::UnorderedElementsAre("a", "b"));
  EXPECT_EQ(error_of("inspect", {"a", "b"}), "unexpected argument \"b\"");
}

TEST_F(ResolveTest, SeveralWordsAreNoPrompt) {
  constexpr auto kExpected =
      "unexpected argument \"upon\"; quote a text of several words, or repeat --prompt for several "
      "texts";
  EXPECT_EQ(error_of("generate", {"Once", "upon", "a", "time"}), kExpected);
  EXPECT_EQ(error_of("chat", {"-p", "Once", "upon", "a", "time"}), kExpected);
  EXPECT_THAT(resolve("embed", {"Once", "upon"}).settings.prompts, ElementsAre("Once", "upon"));
}

TEST_F(ResolveTest, AModelIsNotTakenForAPrompt) {
  std::ofstream(temporary_.path() / "config.json") << "{}";
  const std::string model = temporary_.path();
  EXPECT_EQ(error_of("chat", {model}), "\"" + model + "\" is a model: name it with -m " + model +
                                           "; --prompt takes it as a text");
  EXPECT_THAT(resolve("chat", {"-p", model}).settings.prompts, ElementsAre(model));
  EXPECT_THAT(resolve("chat", {model, "-m", "other"}).settings.prompts, ElementsAre(model));
}

TEST_F(ResolveTest, UnderAnAliasTheModelComesFirst) {
  const auto run = [](const std::vector<std::string>& arguments) {
    return resolve_settings(find_command("run"), arguments, {}, find_command("run").alias_takes)
        .settings;
  };
  EXPECT_EQ(run({"org/name"}).load.model, "org/name");
  EXPECT_THAT(run({"org/name"}).prompts, IsEmpty());
  EXPECT_EQ(run({"org/name", "hi"}).load.model, "org/name");
  EXPECT_THAT(run({"org/name", "hi"}).prompts, ElementsAre("hi"));
  EXPECT_THAT(run({"hi", "-m", "org/name"}).prompts, ElementsAre("hi"));
}

TEST_F(ResolveTest, AnOptionWithoutEffectIsAWarning) {
  const auto warnings = [&](std::string_view command, const std::vector<std::string>& arguments) {
    return resolve(command, arguments).warnings;
  };
  EXPECT_THAT(warnings("classify", {"--with-logits"}),
              ElementsAre("--with-logits: no effect without --jsonl"));
  EXPECT_THAT(warnings("classify", {"--with-logits", "--jsonl"}), IsEmpty());
  EXPECT_THAT(warnings("classify", {"--with-logits=false"}), IsEmpty());
  EXPECT_THAT(warnings("generate", {"--max-run-steps", "4", "--device", "cpu"}),
              ElementsAre("--max-run-steps: no effect beside --device cpu"));
  EXPECT_THAT(warnings("generate", {"--max-run-steps", "4"}), IsEmpty());
  EXPECT_THAT(warnings("generate", {"--max-run-steps", "4", "--device", "cuda:1"}), IsEmpty());
  EXPECT_THAT(warnings("serve", {"--allowed-host", "x", "--api-key", "k"}),
              ElementsAre("--allowed-host: no effect beside --api-key"));
  EXPECT_THAT(warnings("train", {"--lora-rank", "9", "--fine-tune-type", "full"}),
              ElementsAre("--lora-rank: no effect beside --fine-tune-type full"));
  EXPECT_THAT(warnings("train", {"--lora-rank", "9", "--fine-tune-type", "lora"}), IsEmpty());
  EXPECT_THAT(resolve("classify", {}, {{"PACELINE_WITH_LOGITS", "true"}}).warnings,
              ElementsAre("--with-logits: no effect without --jsonl"));
}

TEST_F(ResolveTest, OptionsThatContradictEachOtherAreRefused) {
  EXPECT_EQ(error_of("serve", {"--port", "1", "--unix-socket", "s"}),
            "--port and --unix-socket exclude each other: give one of them");
  EXPECT_EQ(error_of("generate", {"-qv"}),
            "--quiet and --verbose exclude each other: give one of them");
  const Settings settings = generate({"-q"}, {{"PACELINE_VERBOSE", "1"}});  // the flag is stronger
  EXPECT_TRUE(settings.quiet);
  EXPECT_FALSE(settings.verbose);
  EXPECT_TRUE(generate({"--quiet=false"}, {{"PACELINE_VERBOSE", "1"}}).verbose);
}

TEST_F(ResolveTest, ParallelSequencesHaveLlamaCppsName) {
  EXPECT_EQ(resolve("serve", {"-np", "4"}).settings.load.max_num_seqs, 4);
}

}  // namespace
}  // namespace paceline
