// One model and many threads: calls share the engine's batch, can be cancelled from anywhere, and
// end when the model is closed.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include "paceline/llm.h"
#include "tests/expect_error.h"
#include "tests/source_path.h"

namespace paceline {
namespace {

LoadOptions one_thread() {
  return {
      .model = source_path("tests/goldens/models/qwen3_tied"), .max_num_seqs = 8, .num_threads = 1};
}

LLM load() { return LLM::load(one_thread()); }

// With a rotating window a generation of kEndless tokens ends when something ends it.
constexpr int64_t kEndless = int64_t{1} << 30;

LLM load_endless() {
  LoadOptions options = one_thread();
  options.max_kv_size = 64;
  return LLM::load(options);
}

std::vector<int32_t> prompt_of(int number) {
  std::vector<int32_t> ids(static_cast<size_t>(4 + number % 5));
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<int32_t>((static_cast<size_t>(number) * 37 + i * 11) % 256);
  }
  return ids;
}

GenerateOptions drawn(int number, int64_t max_tokens) {
  return {.max_tokens = max_tokens,
          .temperature = 0.8f,
          .seed = static_cast<uint64_t>(number),
          .ignore_eos = true};
}

void on_threads(int count, const std::function<void(int number)>& work) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) threads.emplace_back([&work, i] { work(i); });
  for (std::thread& thread : threads) thread.join();
}

// What a call said when it failed; nothing when it didn't.
std::optional<ErrorCode> failure(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return std::nullopt;
}

TEST(LlmThreads, CallsOfManyThreadsHaveTheResultsThatTheyHaveAlone) {
  constexpr int kThreads = 12;
  std::vector<std::vector<int32_t>> tokens(kThreads);
  std::vector<std::optional<int32_t>> classes(kThreads);
  std::vector<std::vector<float>> vectors(kThreads), scores(kThreads);
  const auto score = [](LLM& llm, int i) {
    std::vector<float> found;
    for (const Logprob& token : llm.score(prompt_of(i))) found.push_back(token.logprob.value_or(1));
    return found;
  };
  const auto first_class = [](LLM& llm, int i) {
    return llm.classify(prompt_of(i), {.sampling = drawn(i, 1)}).token_id;
  };
  {
    LLM alone = load();
    for (int i = 0; i < kThreads; ++i) {
      const auto k = static_cast<size_t>(i);
      tokens[k] = alone.generate(prompt_of(i), drawn(i, 24)).completion().token_ids;
      classes[k] = first_class(alone, i);
      vectors[k] = alone.embed(prompt_of(i)).values;
      scores[k] = score(alone, i);
    }
  }
  LLM llm = load();
  on_threads(kThreads, [&](int i) {
    const auto k = static_cast<size_t>(i);
    EXPECT_EQ(llm.generate(prompt_of(i), drawn(i, 24)).completion().token_ids, tokens[k]);
    EXPECT_EQ(first_class(llm, i), classes[k]);
    EXPECT_EQ(llm.embed(prompt_of(i)).values, vectors[k]);
    EXPECT_EQ(score(llm, i), scores[k]);
    EXPECT_GT(llm.metrics().prompt_tokens, 0);
    EXPECT_GT(llm.memory_use().active_bytes, 0u);
  });
}

TEST(LlmThreads, CloseEndsTheCallsOfOtherThreads) {
  LLM llm = load_endless();
  std::atomic<int> num_begun = 0, num_failed = 0;
  std::thread closer([&] {
    while (num_begun < 8) std::this_thread::yield();
    llm.close();
  });
  on_threads(8, [&](int i) {
    const auto failed = failure([&] {
      GenerationStream stream = llm.generate(prompt_of(i), drawn(i, kEndless));
      ++num_begun;
      EXPECT_EQ(stream.completion().finish_reason, "cancelled");
      llm.embed(prompt_of(i));
    });
    // A call that is inside ends as cancelled, a later one finds the model closed: completion(), or
    // what follows it.
    if (failed == ErrorCode::invalid) ++num_failed;
  });
  closer.join();
  EXPECT_EQ(num_failed, 8);
  expect_error(ErrorCode::invalid, {"closed"}, [&] { llm.metrics(); });
}

TEST(LlmThreads, AStreamOutlivesItsModel) {
  std::optional<LLM> llm = load_endless();
  GenerationStream running = llm->generate(prompt_of(1), drawn(1, kEndless));
  GenerationStream ended = llm->generate(prompt_of(2), drawn(2, 3));
  ended.completion();
  llm.reset();
  EXPECT_EQ(ended.completion().token_ids.size(), 3u);
  running.cancel();
  expect_error(ErrorCode::invalid, {"closed"}, [&] { running.completion(); });
}

TEST(LlmThreads, AnyThreadCancelsAGeneration) {
  LLM llm = load_endless();
  GenerationStream stream = llm.generate(prompt_of(1), drawn(1, kEndless));
  std::thread other([&] { stream.cancel(); });
  const Completion& completion = stream.completion();
  other.join();
  EXPECT_EQ(completion.finish_reason, "cancelled");
}

TEST(LlmThreads, AnyThreadCancelsABatch) {
  LLM llm = load_endless();
  std::stop_source stop;
  std::vector<LLM::Request> requests;
  for (int i = 0; i < 20; ++i) {
    requests.push_back({.prompt = prompt_of(i), .options = drawn(i, kEndless)});
    requests.back().options.cancelled = stop.get_token();
  }
  std::thread other([&] { stop.request_stop(); });
  const auto results = llm.batch_generate(requests);
  other.join();
  for (const auto& result : results) {
    ASSERT_TRUE(std::holds_alternative<Completion>(result));
    EXPECT_EQ(std::get<Completion>(result).finish_reason, "cancelled");
  }
}

// A reader with a loop of its own: it sleeps until a listener calls, then polls every stream.
TEST(LlmThreads, AListenerLetsOneThreadReadManyStreams) {
  LLM llm = load();
  std::mutex mutex;
  std::condition_variable came;
  bool is_ready = false;
  std::vector<GenerationStream> streams;
  constexpr int kStreams = 10;
  for (int i = 0; i < kStreams; ++i) {
    streams.push_back(llm.generate(prompt_of(i), drawn(i, 12), [&] {
      const std::lock_guard lock(mutex);
      is_ready = true;
      came.notify_one();
    }));
  }
  int num_finished = 0;
  std::vector<bool> finished(kStreams);
  while (num_finished < kStreams) {
    {
      std::unique_lock lock(mutex);
      came.wait(lock, [&] { return is_ready; });
      is_ready = false;
    }
    for (size_t i = 0; i < kStreams; ++i) {
      while (!finished[i]) {
        const auto progress = streams[i].poll();
        if (progress == GenerationStream::Progress::waiting) break;
        if (progress != GenerationStream::Progress::finished) continue;
        finished[i] = true;
        ++num_finished;
      }
    }
  }
  for (int i = 0; i < kStreams; ++i) {
    EXPECT_EQ(streams[static_cast<size_t>(i)].completion().token_ids,
              llm.generate(prompt_of(i), drawn(i, 12)).completion().token_ids);
  }
}

TEST(LlmThreads, TheDeviceIsDescribedBeforeAModelIsLoaded) {
  const DeviceInfo before = LLM::device_info(LoadOptions{.device = "cpu", .num_threads = 1});
  EXPECT_EQ(before.num_threads, 1);
  EXPECT_EQ(before.instruction_set, load().device_info().instruction_set);
  EXPECT_GT(before.total_memory_bytes, 0u);
}

}  // namespace
}  // namespace paceline
