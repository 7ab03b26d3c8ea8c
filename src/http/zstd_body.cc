#include "http/zstd_body.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <memory>
#include <new>

#include "base/request_error.h"

namespace paceline {

std::string decompress_zstd(std::string_view compressed, size_t max_bytes) {
  constexpr int kWindowLog = 23;
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(),
                                                                     ZSTD_freeDCtx);
  if (context == nullptr) throw std::bad_alloc();
  ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax, kWindowLog);
  std::string body;
  ZSTD_inBuffer in{compressed.data(), compressed.size(), 0};
  size_t missing = 1;  // 0 at the end of a frame
  bool is_full = false;
  while (in.pos < in.size || is_full) {
    const size_t begin = body.size();
    body.resize(std::min(begin + ZSTD_DStreamOutSize(), max_bytes + 1));
    ZSTD_outBuffer out{body.data() + begin, body.size() - begin, 0};
    missing = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(missing) != 0) {
      throw RequestError("", ErrorReason::malformed_request,
                         fmt::format("the request: not a body compressed with zstd ({})",
                                     ZSTD_getErrorName(missing)));
    }
    is_full = out.pos == out.size && missing != 0;
    body.resize(begin + out.pos);
    if (body.size() > max_bytes) {
      throw RequestError(
          "", ErrorReason::body_too_large,
          fmt::format("the request: more than {} bytes once decompressed (--max-body-size)",
                      max_bytes));
    }
  }
  if (missing == 0) return body;
  throw RequestError("", ErrorReason::malformed_request,
                     "the request: the body compressed with zstd is cut off");
}

}  // namespace paceline
