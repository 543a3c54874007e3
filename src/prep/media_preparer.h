#pragma once

#include <memory>

#include "prep/media_flights.h"
#include "prep/pixel_cache.h"
#include "prep/preprocessor.h"
#include "request/request_preparer.h"

namespace triptych {

/// A Preprocessor as the engine's preparation threads call it: the same media in one request, in
/// several at once, or soon again, are prepared once.
class MediaPreparer final : public RequestPreparer {
 public:
  /// `registry` outlives the object. `context_limit` as for Preprocessor::prepare. Up to
  /// `pixel_cache_bytes` of pixels are kept.
  MediaPreparer(std::shared_ptr<const Preprocessor> preprocessor, int64_t context_limit,
                TensorRegistry& registry, uint64_t pixel_cache_bytes)
      : preprocessor_(std::move(preprocessor)),
        context_limit_(context_limit),
        registry_(&registry),
        cache_(pixel_cache_bytes) {}

  Result<RequestCost> cost(const Request& request) const override;
  Result<PreparedRequest> prepare(const Request& request,
                                  const PrepContext& context) const override;

 private:
  std::shared_ptr<const Preprocessor> preprocessor_;
  int64_t context_limit_;
  TensorRegistry* registry_;
  mutable MediaFlights flights_;
  mutable PixelCache cache_;
};

}  // namespace triptych
