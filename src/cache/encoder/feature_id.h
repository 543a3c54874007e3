#pragma once

#include <cstdint>
#include <string_view>

#include "request/request.h"

namespace triptych {

/// All that the features of a media item depend on.
struct FeatureSource {
  MediaId pixels{};  ///< identity of what goes into the tower
  int64_t n_frames = 1;
  int64_t height = 0;
  int64_t width = 0;
  std::string_view tower;   ///< identity of tower and projector weights and their adapter
  std::string_view tenant;  ///< salt; two tenants share nothing
};

/// 256-bit identity of features: the link behind the pixels in the chain of docs/architecture.md,
/// every part framed by its length. The shape is part of it, whatever the pixels' id covers.
MediaId feature_id(const FeatureSource& source);

}  // namespace triptych
