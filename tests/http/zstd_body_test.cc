#include "http/zstd_body.h"

#include <gtest/gtest.h>
#include <zstd.h>

#include "base/random.h"
#include "base/request_error.h"

namespace paceline {
namespace {

std::string compress(const std::string& text, int window_log = 0) {
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  if (window_log > 0) {
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
    ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_log);
  }
  std::string out(ZSTD_compressBound(text.size()) + 64, '\0');
  ZSTD_outBuffer to{out.data(), out.size(), 0};
  ZSTD_inBuffer from{text.data(), text.size() / 2, 0};
  // What ends later keeps the window that was asked for.
  while (window_log > 0 && ZSTD_compressStream2(context, &to, &from, ZSTD_e_flush) != 0) {
  }
  from.size = text.size();
  while (ZSTD_compressStream2(context, &to, &from, ZSTD_e_end) != 0) {
  }
  ZSTD_freeCCtx(context);
  out.resize(to.pos);
  return out;
}

std::string mixed_text(size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(philox4x32(size, i / 3)[0] % 64);
  return text;
}

ErrorReason reason_of_failure(std::string_view compressed, size_t max_bytes) {
  try {
    decompress_zstd(compressed, max_bytes);
  } catch (const RequestError& error) {
    return error.reason();
  }
  return ErrorReason::internal_error;
}

TEST(ZstdBody, IsDecompressed) {
  for (const size_t size : {0, 1, 100, 131'072, 131'073, 1'000'000}) {
    const std::string text = mixed_text(size);
    EXPECT_EQ(decompress_zstd(compress(text), size), text) << size;
    EXPECT_EQ(decompress_zstd(compress(text, 20), size + 9), text) << size;
    EXPECT_EQ(decompress_zstd(compress(text) + compress("{}"), size + 2), text + "{}") << size;
  }
}

TEST(ZstdBody, StopsAtTheLimit) {
  const std::string text = mixed_text(200'000);
  EXPECT_EQ(reason_of_failure(compress(text), text.size() - 1), ErrorReason::body_too_large);
  const std::string bomb = compress(std::string(64 << 20, ' '));
  EXPECT_LT(bomb.size(), 10'000);
  EXPECT_EQ(reason_of_failure(bomb, 1 << 20), ErrorReason::body_too_large);
  EXPECT_EQ(reason_of_failure(compress(text) + compress(text), text.size() + 1),
            ErrorReason::body_too_large);
}

TEST(ZstdBody, MalformedOnesAreRefused) {
  constexpr size_t kMost = 1 << 20;
  const std::string good = compress(mixed_text(5000));
  for (size_t size = 0; size < good.size(); size += 1 + size / 7) {
    EXPECT_EQ(reason_of_failure(good.substr(0, size), kMost), ErrorReason::malformed_request);
  }
  EXPECT_EQ(reason_of_failure("{\"model\": \"x\"}", kMost), ErrorReason::malformed_request);
  EXPECT_EQ(reason_of_failure(good + "x", kMost), ErrorReason::malformed_request);
  // A window beyond that of RFC 9659, which would take as much memory.
  EXPECT_EQ(reason_of_failure(compress(mixed_text(5000), 27), kMost),
            ErrorReason::malformed_request);
}

}  // namespace
}  // namespace paceline
