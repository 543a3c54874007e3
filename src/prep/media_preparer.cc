#include "prep/media_preparer.h"

#include <fmt/format.h>

namespace triptych {

Result<RequestCost> MediaPreparer::cost(const Request& request) const {
  RequestCost out;
  for (const MediaItem& item : request.media) {
    TRIPTYCH_ASSIGN_OR_RETURN(const ImageCost image, preprocessor_->cost(item));
    ++out.n_media;
    out.media_tokens += image.n_tokens;
    const auto decoded = static_cast<uint64_t>(image.header.width) * image.header.height * 3;
    const auto pixels = static_cast<uint64_t>(image.plan.width) * image.plan.height * 3;
    out.host_bytes += item.bytes->size() + decoded + pixels * sizeof(float);
  }
  if (out.media_tokens >= context_limit_) {
    return out_of_range(fmt::format("the request's media take {} tokens, the context holds {}",
                                    out.media_tokens, context_limit_));
  }
  return out;
}

}  // namespace triptych
