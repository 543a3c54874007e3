#include "cache/encoder/feature_id.h"

#include "cache/framed_hash.h"

namespace triptych {

MediaId feature_id(const FeatureSource& source) {
  return FramedHash("features 1")
      .add(source.pixels)
      .add(source.n_frames)
      .add(source.height)
      .add(source.width)
      .add(source.tower)
      .add(source.tenant)
      .hash();
}

}  // namespace triptych
