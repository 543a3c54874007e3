#include "prep/media_preparer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"

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
  // A token is about a byte of text at least, or a row of a media item.
  uint64_t text_bytes = request.raw_prompt.size();
  if (!request.tools.is_null()) text_bytes += request.tools.dump().size();
  for (const RequestMessage& message : request.messages) {
    if (!message.tool_calls.is_null()) text_bytes += message.tool_calls.dump().size();
    for (const RequestPart& part : message.parts) text_bytes += part.text.size();
  }
  out.host_bytes +=
      text_bytes + sizeof(int32_t) * (text_bytes + static_cast<uint64_t>(out.media_tokens));
  return out;
}

Result<PreparedRequest> MediaPreparer::prepare(const Request& request,
                                               const PrepContext& context) const {
  const double start = steady_ms();
  const Status ended(StatusCode::kCancelled, "the request has ended");
  if (!context.begin(PrepStage::kProcess)) return ended;
  TRIPTYCH_ASSIGN_OR_RETURN(PreparedRequest out,
                            preprocessor_->prepare_prompt(request, context_limit_));
  for (const MediaItem& item : request.media) {
    if (!context.begin(PrepStage::kProcess)) return ended;
    const MediaId id = preprocessor_->pixels_id(item);
    const auto same = std::find_if(out.media.begin(), out.media.end(),
                                   [&](const auto& media) { return media->id == id; });
    if (same != out.media.end()) {
      out.media.push_back(*same);
      continue;
    }
    const MediaFlights::Key key(context.tenant, id);
    if (PixelCache::Media kept = cache_.find(key)) {
      out.media.push_back(std::move(kept));
      continue;
    }
    if (!context.begin(PrepStage::kDecode)) return ended;
    auto media = flights_.run(
        key, [&] { return preprocessor_->prepare_media(item, id, context.pool, *registry_); });
    if (!media.is_ok()) return media.status().with_context(item.name);
    cache_.insert(key, *media);
    out.media.push_back(std::move(*media));
  }
  out.prep_ms = steady_ms() - start;
  return out;
}

}  // namespace triptych
