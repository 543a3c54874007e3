#pragma once

#include "base/thread_pool.h"
#include "request/request.h"

namespace triptych {

/// What a request will take, from the headers of its media alone.
struct RequestCost {
  int64_t n_media = 0;
  int64_t media_tokens = 0;
  uint64_t host_bytes = 0;  ///< encoded files, decoded pixels and tensors of all its media
};

/// From a request to what the engine takes. The engine knows preparation by this interface only.
/// Const and shared by threads.
class RequestPreparer {
 public:
  virtual ~RequestPreparer() = default;
  /// No pixel is decoded. Errors are the caller's fault and name the part.
  virtual Result<RequestCost> cost(const Request& request) const = 0;
  /// Decodes, preprocesses, tokenises; `pool` is the calling thread's own.
  virtual Result<PreparedRequest> prepare(const Request& request, ThreadPool& pool) const = 0;
};

}  // namespace triptych
