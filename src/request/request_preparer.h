#pragma once

#include <functional>

#include "base/thread_pool.h"
#include "request/request.h"

namespace triptych {

/// What a request will take, from the headers of its media alone.
struct RequestCost {
  int64_t n_media = 0;
  int64_t media_tokens = 0;
  /// Encoded files, decoded pixels and tensors of all its media; texts and ids.
  uint64_t host_bytes = 0;
};

/// What preparation is at.
enum class PrepStage : uint8_t {
  kProcess,  ///< template, tokens, grammar, identities
  kDecode,   ///< a media item: decoding and its recipe, which run row by row in one pass
};

/// What prepare() has beside the request.
struct PrepContext {
  ThreadPool& pool;     ///< the calling thread's own
  uint32_t tenant = 0;  ///< tenants do not share media that are being prepared
  /// Told of each stage as it begins. False: nobody waits for the request any more, and prepare()
  /// ends with kCancelled.
  std::function<bool(PrepStage)> begin;
};

/// From a request to what the engine takes. The engine knows preparation by this interface only.
/// Const and shared by threads.
class RequestPreparer {
 public:
  virtual ~RequestPreparer() = default;
  /// No pixel is decoded. Errors are the caller's fault and name the part.
  virtual Result<RequestCost> cost(const Request& request) const = 0;
  /// Decodes, preprocesses, tokenises.
  virtual Result<PreparedRequest> prepare(const Request& request,
                                          const PrepContext& context) const = 0;
};

}  // namespace triptych
